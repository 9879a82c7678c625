"""Derived names: the vectors other programs rely on, round trips, and the limits of Kubernetes for any input."""

import re
from uuid import UUID

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from applecart.api import labels, names
from applecart.errors import BadInput

DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
QUALIFIED_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")

GOLDEN_IMAGE = "ghcr.io/tuist/tuist-runner@sha256:" + "a" * 64
SERVER = UUID("6b2c9f4e-0d3a-4c55-9a4e-1f0a7c3b2d10")

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"
dns_labels = st.text(LETTERS, min_size=1, max_size=63).filter(DNS_LABEL.fullmatch)
group_names = st.text(LETTERS + ".", min_size=1, max_size=63).filter(DNS_SUBDOMAIN.fullmatch)
object_names = st.lists(dns_labels, min_size=1, max_size=3).map(".".join)
suffixes = st.binary(min_size=4, max_size=4)
zones = st.sampled_from(["fr-par-1", "fr-par-3", "nl-ams-1", "pl-waw-12"])
images = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=300)

AT_ANY_PACE = settings(deadline=None)  # a busy machine is no reason to fail

DERIVED_FROM_A_MACHINE = (names.bootstrap_secret, names.node_identity, names.node_identity_token)
DERIVED_FROM_A_FLEET = (names.fleet_ssh_secret, names.fleet_ssh_key_comment, names.github_app_secret)
REFUSED_AS_NAME = ("", "Upper", "under_score", "-leading", "trailing-", "a..b", "a b", "ünicode", "a\n", "x" * 254)


def is_object_name(name: str) -> bool:
    return len(name) <= 253 and DNS_SUBDOMAIN.fullmatch(name) is not None


def is_label_key(key: str) -> bool:
    prefix, _, name = key.rpartition("/")
    return (not prefix or is_object_name(prefix)) and QUALIFIED_NAME.fullmatch(name) is not None


def test_the_golden_label_of_the_published_vector() -> None:
    assert names.golden_label(GOLDEN_IMAGE) == "tuist.dev/golden-9c8af651fdf30b10"
    assert names.golden_vm(GOLDEN_IMAGE) == "tuist-golden-9c8af651fdf30b10"


def test_the_vm_name_of_the_published_vector() -> None:
    vm = names.pod_vm("tuist-runners", "runner-" + "x" * 60)
    assert vm == "tuist-runners-runner-" + "x" * 33 + "-b8984ac0"
    assert len(vm) == 63


def test_a_short_vm_name_is_namespace_and_pod() -> None:
    assert names.pod_vm("tuist-runners", "mac-runner-0a1b2c3d") == "tuist-runners-mac-runner-0a1b2c3d"


def test_the_secrets_and_accounts_of_a_machine() -> None:
    assert names.bootstrap_secret("fleet-abcde-h4np6") == "fleet-abcde-h4np6-bootstrap"
    assert names.node_identity("fleet-abcde-h4np6") == "tart-kubelet-fleet-abcde-h4np6"
    assert names.node_identity_token("fleet-abcde-h4np6") == "tart-kubelet-fleet-abcde-h4np6-token"


def test_the_secrets_of_a_fleet_and_a_cluster() -> None:
    assert names.fleet_ssh_secret("tuist-tuist-runners-fleet") == "tuist-tuist-runners-fleet-ssh"
    assert names.fleet_ssh_key_comment("runners") == "tuist-capi-runners"
    assert names.github_app_secret("builders") == "builders-gh-app"
    assert names.cluster_kubeconfig_secret("tuist-tuist-capi") == "tuist-tuist-capi-kubeconfig"


def test_a_machine_without_a_fleet_has_a_key_of_its_own() -> None:
    assert names.fleet_key_group("runners", "tuist", "mac-7") == "runners"
    assert names.fleet_key_group("", "tuist", "mac-7") == "tuist-mac-7"


def test_the_addresses_of_a_host_over_the_tailnet() -> None:
    assert names.egress_host("mac-7", "tailscale-operator") == "mac-7.tailscale-operator.svc.cluster.local"
    assert names.egress_placeholder("tailscale-operator") == "placeholder.tailscale-operator.svc.cluster.local"


def test_the_names_of_a_server_in_the_pool_and_while_it_is_claimed() -> None:
    assert names.pool_server("tuist-pool-", SERVER) == f"tuist-pool-{SERVER}"
    assert names.pending_server(SERVER) == f"tuist-claim-pending-{SERVER}"


def test_an_empty_pool_prefix_is_refused_because_it_would_match_every_server() -> None:
    with pytest.raises(BadInput, match=r"spec\.adoptPoolPrefix or --default-adopt-pool-prefix"):
        names.pool_server("", SERVER)


def test_a_runner_is_named_after_its_pool_and_four_random_bytes() -> None:
    assert names.runner("xcode-26-6", bytes.fromhex("0a1b2c3d")) == "xcode-26-6-runner-0a1b2c3d"


def test_a_runner_at_github_is_cut_to_64_characters() -> None:
    name = names.github_runner("p" * 63 + "-runner-0a1b2c3d", bytes.fromhex("ffeeddcc"))
    assert name == "p" * 55 + "-ffeeddcc"
    assert len(name) == 64


def test_a_runner_suffix_of_another_length_is_refused() -> None:
    with pytest.raises(BadInput, match="4 random bytes, not 3"):
        names.runner("pool", b"abc")


def test_a_container_id_names_the_vm() -> None:
    assert names.container_id("tuist-runners-a") == "tart://tuist-runners-a"


@pytest.mark.parametrize("vm", ["", "a/b"])
def test_a_container_id_of_no_vm_is_refused(vm: str) -> None:
    with pytest.raises(BadInput, match="VM name"):
        names.container_id(vm)


def test_a_provider_id_is_written_as_cluster_api_expects_it() -> None:
    assert str(names.ProviderId("fr-par-1", str(SERVER))) == f"scw-applesilicon://fr-par-1/{SERVER}"


@AT_ANY_PACE
@given(zones, st.uuids())
def test_a_provider_id_survives_text_and_back(zone: str, server: UUID) -> None:
    provider_id = names.ProviderId(zone, str(server))
    assert names.ProviderId.parse(str(provider_id)) == provider_id


@AT_ANY_PACE
@given(st.text())
@example("")
@example("scw-applesilicon://")
@example("scw-applesilicon://fr-par-1")
@example(f"scw-applesilicon://fr-par-1/{SERVER}/")
@example(f"scw-applesilicon://fr-par-1//{SERVER}")
@example(f"scw-applesilicon:///{SERVER}")
@example(f"scw-applesilicon://FR-PAR-1/{SERVER}")
@example(f"scw-applesilicon://fr-par-1/{str(SERVER).upper()}")
@example(f"scw-applesilicon://fr-par-1/{SERVER.hex}")
@example(f"scw-applesilicon://fr-par-1/{SERVER}\n")
@example(f"hcloud://fr-par-1/{SERVER}")
def test_text_that_is_no_provider_id_is_refused_and_what_is_accepted_is_canonical(text: str) -> None:
    try:
        parsed = names.ProviderId.parse(text)
    except BadInput:
        return
    assert str(parsed) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mac-7", "provider id 'mac-7' is not of the form scw-applesilicon://<zone>/<server uuid>"),
        (f"scw-applesilicon://paris/{SERVER}", "zone 'paris' is not of the form region-number"),
        ("scw-applesilicon://fr-par-1/7", "server id '7' is not a UUID"),
    ],
)
def test_a_bad_provider_id_is_answered_with_what_is_wrong_in_it(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        names.ProviderId.parse(text)


@AT_ANY_PACE
@given(dns_labels)
def test_whatever_is_derived_from_a_machine_is_an_object_name(machine: str) -> None:
    for derive in DERIVED_FROM_A_MACHINE:
        assert is_object_name(derive(machine))
    assert is_object_name(names.egress_host(machine, "tailscale-operator"))


@AT_ANY_PACE
@given(group_names)
def test_whatever_is_derived_from_a_fleet_is_an_object_name(fleet: str) -> None:
    for derive in DERIVED_FROM_A_FLEET:
        assert is_object_name(derive(fleet))


@AT_ANY_PACE
@given(dns_labels, dns_labels)
def test_the_key_group_of_a_lone_machine_fits_a_label_value_and_a_secret(namespace: str, machine: str) -> None:
    group = names.fleet_key_group("", namespace, machine)
    assert DNS_LABEL.fullmatch(group)
    assert is_object_name(names.fleet_ssh_secret(group))


@AT_ANY_PACE
@given(group_names, suffixes)
def test_a_runner_is_an_object_name_and_at_github_at_most_64_characters(pool: str, random: bytes) -> None:
    name = names.runner(pool, random)
    assert is_object_name(name)
    assert len(names.github_runner(name, random)) <= 64


@AT_ANY_PACE
@given(group_names, suffixes, suffixes)
def test_two_registrations_of_one_runner_never_share_a_name(pool: str, first: bytes, second: bytes) -> None:
    assume(first != second)
    service_account = names.runner(pool, first)
    assert names.github_runner(service_account, first) != names.github_runner(service_account, second)


@AT_ANY_PACE
@given(dns_labels, object_names)
def test_a_vm_name_is_at_most_63_characters_and_begins_with_its_namespace(namespace: str, pod: str) -> None:
    vm = names.pod_vm(namespace, pod)
    assert len(vm) <= 63
    assert vm.startswith(namespace[:54])
    assert names.container_id(vm).endswith(vm)


@AT_ANY_PACE
@given(dns_labels, st.sets(object_names, min_size=2, max_size=8))
def test_pods_of_one_namespace_never_share_a_vm(namespace: str, pods: set[str]) -> None:
    assert len({names.pod_vm(namespace, pod) for pod in pods}) == len(pods)


def test_long_pods_that_differ_only_at_the_end_do_not_share_a_vm() -> None:
    """Names were once cut at 63 characters, and two Pods of a long pool fought over one VM."""
    assert names.pod_vm("tuist-runners", "p" * 80 + "a") != names.pod_vm("tuist-runners", "p" * 80 + "b")


@AT_ANY_PACE
@given(images)
def test_a_golden_is_known_by_its_name_and_its_label_key_is_valid(image: str) -> None:
    assert names.is_golden_vm(names.golden_vm(image))
    assert is_label_key(names.golden_label(image))
    assert names.golden_label(image).removeprefix(labels.GOLDEN_PREFIX) == names.image_hash(image)


@AT_ANY_PACE
@given(images, images)
def test_two_image_references_never_share_a_golden(first: str, second: str) -> None:
    assume(first != second)
    assert names.golden_vm(first) != names.golden_vm(second)


@AT_ANY_PACE
@given(object_names)
def test_the_vm_of_a_runner_pod_is_never_taken_for_a_golden(pod: str) -> None:
    assert not names.is_golden_vm(names.pod_vm("tuist-runners", pod))


@pytest.mark.parametrize("image", ["", " ", "repo:tag\n", "repo : tag"])
def test_an_image_that_is_no_reference_is_refused(image: str) -> None:
    with pytest.raises(BadInput, match="is not an image reference"):
        names.golden_label(image)


@AT_ANY_PACE
@given(st.integers(min_value=0, max_value=10**19 - 1))
def test_a_cache_label_survives_text_and_back_and_is_a_valid_key(account_id: int) -> None:
    key = names.cache_master_label(account_id)
    assert is_label_key(key)
    assert names.cache_master_account(key) == account_id


@pytest.mark.parametrize("account_id", [-1, 10**19])
def test_an_account_that_fits_no_label_is_refused(account_id: int) -> None:
    """One invalid key makes the API refuse the whole write of a Node."""
    with pytest.raises(BadInput, match="at most 19 digits"):
        names.cache_master_label(account_id)


@AT_ANY_PACE
@given(st.text())
@example(labels.CACHE_MASTER_PREFIX)
@example(labels.CACHE_MASTER_PREFIX + "007")
@example(labels.CACHE_MASTER_PREFIX + "٣")
@example(labels.CACHE_MASTER_PREFIX + "1" * 20)
@example(labels.GOLDEN_PREFIX + "1")
def test_only_a_label_we_would_write_is_read_as_an_account(key: str) -> None:
    account_id = names.cache_master_account(key)
    assert account_id is None or names.cache_master_label(account_id) == key


@pytest.mark.parametrize("name", [*REFUSED_AS_NAME, "has.dot", "x" * 64])
def test_a_machine_name_that_cannot_be_a_host_name_is_refused(name: str) -> None:
    for derive in DERIVED_FROM_A_MACHINE:
        with pytest.raises(BadInput, match=r"machine name .* is not a DNS label: use at most 63"):
            derive(name)


@pytest.mark.parametrize("name", [*REFUSED_AS_NAME, "x" * 64])
def test_a_fleet_or_pool_name_that_fits_no_label_value_is_refused(name: str) -> None:
    for derive in DERIVED_FROM_A_FLEET:
        with pytest.raises(BadInput, match=r"fleet name .* is not a DNS name: use at most 63"):
            derive(name)
    with pytest.raises(BadInput, match=r"pool name .* is not a DNS name: use at most 63"):
        names.runner(name, b"abcd")


@pytest.mark.parametrize("name", REFUSED_AS_NAME)
def test_a_pod_name_that_kubernetes_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"Pod name .* is not a DNS name: use at most 253"):
        names.pod_vm("tuist-runners", name)
    with pytest.raises(BadInput, match=r"ServiceAccount name .* is not a DNS name"):
        names.github_runner(name, b"abcd")


@AT_ANY_PACE
@given(st.text(max_size=80))
def test_no_text_ever_leads_to_a_name_kubernetes_refuses_or_to_another_error(text: str) -> None:
    for derive in (*DERIVED_FROM_A_MACHINE, *DERIVED_FROM_A_FLEET, names.cluster_kubeconfig_secret):
        try:
            outcome = derive(text)
        except BadInput as refusal:
            outcome = str(refusal)
        assert is_object_name(outcome) or repr(text) in outcome
