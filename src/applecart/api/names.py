"""Names derived from other names: Secrets of a machine, VMs of a Pod, labels of an image, names on Scaleway and GitHub.

Every function is pure, checks what it is given and answers bad input with a sentence, so that a name which Kubernetes would
refuse is refused before anything is claimed. Randomness is an argument. What a derived name means to its readers stands in
its docstring; docs/reference/wire-names.md is generated from those. Nothing here looks anything up: a name alone never
proves who owns a VM or a host (I1, I3).
"""

import re
from hashlib import sha256
from typing import Final
from uuid import UUID

from msgspec import Struct

from applecart.api import labels
from applecart.errors import BadInput

LABEL_LIMIT: Final = 63  # Kubernetes: a DNS label, and every label value
SUBDOMAIN_LIMIT: Final = 253  # Kubernetes: an object name
GITHUB_RUNNER_LIMIT: Final = 64  # GitHub: a runner name
SUFFIX_BYTES: Final = 4  # eight hex digits tell the runners of a pool apart
IMAGE_HASH_BYTES: Final = 8  # short enough for a label key; existing installations agree on it
SHORTENED_HASH_DIGITS: Final = 8  # as above, at the end of a shortened name

CLAIM_PENDING_PREFIX: Final = "tuist-claim-pending-"
GOLDEN_VM_PREFIX: Final = "tuist-golden-"
PROVIDER_ID_SCHEME: Final = "scw-applesilicon://"
SERVICE_DOMAIN: Final = "svc.cluster.local"

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_ZONE: Final = re.compile(r"[a-z]+(-[a-z]+)*-[0-9]+")
_GOLDEN_VM: Final = re.compile(rf"{GOLDEN_VM_PREFIX}[0-9a-f]{{{2 * IMAGE_HASH_BYTES}}}")
_CACHE_MASTER: Final = re.compile(rf"{re.escape(labels.CACHE_MASTER_PREFIX)}(0|[1-9][0-9]{{0,18}})")
_ACCOUNT_ID_BELOW: Final = 10**19  # more digits would make a key that fails the whole write of a Node


def _label(what: str, value: str) -> str:
    if len(value) > LABEL_LIMIT or not _LABEL.fullmatch(value):
        raise BadInput(
            f"{what} {value!r} is not a DNS label: use at most {LABEL_LIMIT} lower-case letters, digits and '-', "
            "starting and ending with a letter or digit"
        )
    return value


def _subdomain(what: str, value: str, limit: int = SUBDOMAIN_LIMIT) -> str:
    if len(value) > limit or not _SUBDOMAIN.fullmatch(value):
        raise BadInput(
            f"{what} {value!r} is not a DNS name: use at most {limit} lower-case letters, digits, '-' and '.', "
            "every part starting and ending with a letter or digit"
        )
    return value


def _shortened(joined: str, identity: str) -> str:
    """`joined` if it fits a label, else its beginning and a hash of `identity`, so that two long names stay apart."""
    if len(joined) <= LABEL_LIMIT:
        return joined
    kept = LABEL_LIMIT - 1 - SHORTENED_HASH_DIGITS
    return f"{joined[:kept]}-{sha256(identity.encode()).hexdigest()[:SHORTENED_HASH_DIGITS]}"


def _suffix(random: bytes) -> str:
    if len(random) != SUFFIX_BYTES:
        raise BadInput(f"a runner's suffix is made of {SUFFIX_BYTES} random bytes, not {len(random)}")
    return random.hex()


def fleet_key_group(fleet: str, namespace: str, machine: str) -> str:
    """`<fleet>` or `<namespace>-<machine>`. SSH keys, by provider: the hosts that share one key; a machine without a fleet
    has its own."""
    if fleet:
        return _subdomain("fleet name", fleet, LABEL_LIMIT)
    parts = _label("namespace", namespace), _label("machine name", machine)
    return _shortened("-".join(parts), "/".join(parts))


def fleet_ssh_secret(group: str) -> str:
    """`<fleet>-ssh`. Secret, by provider or a person: the SSH key of a fleet's hosts."""
    return _subdomain("fleet name", group, LABEL_LIMIT) + "-ssh"


def fleet_ssh_key_comment(group: str) -> str:
    """`tuist-capi-<fleet>`. Comment of an SSH key, by provider or a person: which fleet the key opens."""
    return "tuist-capi-" + _subdomain("fleet name", group, LABEL_LIMIT)


def github_app_secret(fleet: str) -> str:
    """`<fleet>-gh-app`. Secret, by a person or the chart: GitHub App of a builder fleet, unless the machine names another."""
    return _subdomain("fleet name", fleet, LABEL_LIMIT) + "-gh-app"


def bootstrap_secret(machine: str) -> str:
    """`<machine>-bootstrap`. Secret, by provider: password, SSH user and pinned host key of one host."""
    return _label("machine name", machine) + "-bootstrap"


def node_identity(machine: str) -> str:
    """`tart-kubelet-<machine>`. ServiceAccount and ClusterRoleBinding, by provider: what one host's agent signs in as."""
    return "tart-kubelet-" + _label("machine name", machine)


def node_identity_token(machine: str) -> str:
    """`tart-kubelet-<machine>-token`. Secret, by provider: the token of that ServiceAccount."""
    return node_identity(machine) + "-token"


def cluster_kubeconfig_secret(cluster: str) -> str:
    """`<cluster>-kubeconfig`. Secret, by a person or the chart: how Cluster API reaches the cluster's nodes."""
    return _label("cluster name", cluster) + "-kubeconfig"


def egress_host(machine: str, namespace: str) -> str:
    """`<machine>.<namespace>.svc.cluster.local`. Address, by provider: the host over the tailnet, when its public port is
    dead."""
    return f"{_label('machine name', machine)}.{_label('namespace', namespace)}.{SERVICE_DOMAIN}"


def egress_placeholder(namespace: str) -> str:
    """`placeholder.<namespace>.svc.cluster.local`. `spec.externalName` of a new egress Service, by provider: stands until
    the Tailscale operator writes the real one."""
    return egress_host("placeholder", namespace)


def pool_server(prefix: str, unique: UUID) -> str:
    """`<prefix><uuid>`. Scaleway server, by provider: free, in the pool of that prefix."""
    if not prefix:
        raise BadInput("the pool prefix is empty: set spec.adoptPoolPrefix or --default-adopt-pool-prefix")
    return f"{prefix}{unique}"


def pending_server(claim: UUID) -> str:
    """`tuist-claim-pending-<uuid>`. Scaleway server, by provider: being claimed; proof is to read the name back unchanged."""
    return f"{CLAIM_PENDING_PREFIX}{claim}"


class ProviderId(Struct, frozen=True):
    """`scw-applesilicon://<zone>/<uuid>`. `spec.providerID` of machine and Node, by provider and kubelet: ties a Machine to
    its Node."""

    zone: str
    server_id: str

    def __post_init__(self) -> None:
        if not _ZONE.fullmatch(self.zone):
            raise BadInput(f"Scaleway zone {self.zone!r} is not of the form region-number, such as fr-par-1")
        if not is_uuid(self.server_id):
            raise BadInput(f"Scaleway server id {self.server_id!r} is not a UUID in lower case")

    def __str__(self) -> str:
        return f"{PROVIDER_ID_SCHEME}{self.zone}/{self.server_id}"

    @classmethod
    def parse(cls, text: str) -> "ProviderId":
        zone, slash, server_id = text.removeprefix(PROVIDER_ID_SCHEME).partition("/")
        if not text.startswith(PROVIDER_ID_SCHEME) or not slash:
            raise BadInput(f"provider id {text!r} is not of the form {PROVIDER_ID_SCHEME}<zone>/<server uuid>")
        return cls(zone, server_id)


def is_uuid(text: str) -> bool:
    """In canonical form only: provider ids are compared as text, so one server must have one spelling."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def image_hash(image: str) -> str:
    """Of the reference exactly as the Pod spells it: kubelet and runners must agree without asking each other."""
    if not image or any(character.isspace() for character in image):
        raise BadInput(f"image {image!r} is not an image reference: it must be non-empty and without spaces")
    return sha256(image.encode()).digest()[:IMAGE_HASH_BYTES].hex()


def golden_vm(image: str) -> str:
    """`tuist-golden-<16 hex>`. Tart VM, by kubelet: golden of an image; never booted, only cloned."""
    return GOLDEN_VM_PREFIX + image_hash(image)


def is_golden_vm(vm: str) -> bool:
    return _GOLDEN_VM.fullmatch(vm) is not None


def golden_label(image: str) -> str:
    """`tuist.dev/golden-<16 hex>`. Label key of a Node, by kubelet: the host holds the golden of an image."""
    return labels.GOLDEN_PREFIX + image_hash(image)


def cache_master_label(account_id: int) -> str:
    """`tuist.dev/cache-master-<account id>`. Label key of a Node, by kubelet: the host holds the cache of an account."""
    if not 0 <= account_id < _ACCOUNT_ID_BELOW:
        raise BadInput(f"account id {account_id} does not fit a label: it must be a number of at most 19 digits")
    return f"{labels.CACHE_MASTER_PREFIX}{account_id}"


def cache_master_account(label_key: str) -> int | None:
    """The account of a cache label, or None for any other label."""
    match = _CACHE_MASTER.fullmatch(label_key)
    return int(match[1]) if match else None


def pod_vm(namespace: str, pod: str) -> str:
    """`<namespace>-<pod>`, shortened with a hash above 63 characters. Tart VM, by kubelet: the guest of a Pod; the mark
    inside it, not this name, says whose it is."""
    _label("namespace", namespace)
    _subdomain("Pod name", pod)
    return _shortened(f"{namespace}-{pod}", f"{namespace}/{pod}")


def container_id(vm: str) -> str:
    """`tart://<vm>`. `containerID` in a Pod's status, by kubelet: the VM behind the container."""
    if not vm or "/" in vm:
        raise BadInput(f"VM name {vm!r} is not one Tart accepts: it must be non-empty and without '/'")
    return f"tart://{vm}"


def runner(pool: str, random: bytes) -> str:
    """`<pool>-runner-<8 hex>`. Pod and ServiceAccount, by runners: one runner; both bear the same name, so a token proves
    which Pod asks."""
    return f"{_subdomain('pool name', pool, LABEL_LIMIT)}-runner-{_suffix(random)}"


def github_runner(service_account: str, random: bytes) -> str:
    """`<runner>-<8 hex>`, the runner cut to fit 64 characters. Runner at GitHub, by dispatch: new for every registration,
    because GitHub refuses a name it knows."""
    _subdomain("ServiceAccount name", service_account)
    suffix = _suffix(random)
    return f"{service_account[: GITHUB_RUNNER_LIMIT - 1 - len(suffix)]}-{suffix}"
