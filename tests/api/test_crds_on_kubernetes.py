"""The definitions on a real API server: it accepts them, keeps every field, and refuses bad values with a sentence."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from applecart.api import crd, generate
from applecart.api.infrastructure import ScalewayAppleSiliconMachine, ScalewayAppleSiliconMachineTemplate
from applecart.api.meta import Resource
from applecart.api.runners import RunnerPool
from tests.api.examples import FULL, MACHINE_SPEC, PROVIDER_ID, SERVER_ID, SMALLEST_POOL_SPEC, document
from tests.api.raw_api import RawApi, causes
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

ROOT = Path(__file__).parents[2]
RESOURCES = {definition.kind.__name__: definition.kind.resource for definition in crd.DEFINITIONS}
MACHINE = ScalewayAppleSiliconMachine.resource
TEMPLATE = ScalewayAppleSiliconMachineTemplate.resource
POOL = RunnerPool.resource

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def api(real_cluster: FullCluster) -> RawApi:
    """The API server with our definitions on it, installed as people install them."""
    real_cluster.kubectl("apply", "-f", str(ROOT / generate.CRD_FOLDER))
    names = [f"crd/{resource.label}" for resource in RESOURCES.values()]
    real_cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    return RawApi(real_cluster)


def create(api: RawApi, resource: Resource, namespace: str, doc: dict[str, Any]) -> dict[str, Any]:
    """Create, status included: an API server takes it only at its own door."""
    code, stored = api.create(resource, namespace, doc)
    assert code == 201, stored
    if "status" in doc:
        code, stored = api.merge(resource, namespace, doc["metadata"]["name"], {"status": doc["status"]}, "status")
        assert code == 200, stored
    return stored


def test_the_server_finds_nothing_to_complain_about_in_the_schemas(api: RawApi) -> None:
    for resource in RESOURCES.values():
        _, definition = api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{resource.label}")
        status = {condition["type"]: condition["status"] for condition in definition["status"]["conditions"]}
        assert status["Established"] == "True"
        assert status["NamesAccepted"] == "True"
        assert "NonStructuralSchema" not in status


@pytest.mark.parametrize("doc", FULL, ids=lambda doc: doc["kind"])
def test_every_field_of_the_examples_comes_back_as_it_was_sent(api: RawApi, namespace: str, doc: dict[str, Any]) -> None:
    stored = create(api, RESOURCES[doc["kind"]], namespace, doc)
    assert {part: stored.get(part) for part in ("spec", "status")} == {part: doc.get(part) for part in ("spec", "status")}


def test_a_machine_without_a_spec_gets_the_defaults_of_the_contract(api: RawApi, namespace: str) -> None:
    stored = create(api, MACHINE, namespace, document("ScalewayAppleSiliconMachine"))
    assert stored["spec"] == {"type": "M2-L", "zone": "fr-par-1", "os": "Tahoe"}


def test_a_builder_gets_the_defaults_of_the_contract(api: RawApi, namespace: str) -> None:
    runner = {"ghRunnerVersion": "2.330.0", "ghAppSecretName": "app"}
    stored = create(api, MACHINE, namespace, document("ScalewayAppleSiliconMachine", spec={"ghActionsRunner": runner}))
    assert stored["spec"]["ghActionsRunner"] == {
        **runner,
        "ghOrg": "tuist",
        "ghRunnerLabels": "self-hosted,macos,bare-metal,vm-image-builder",
    }


def test_a_pool_gets_the_defaults_of_the_contract_and_only_in_blocks_it_has(api: RawApi, namespace: str) -> None:
    stored = create(api, POOL, namespace, document("RunnerPool", "plain", spec=SMALLEST_POOL_SPEC))
    defaults = {"replicas": 0, "os": "darwin", "podCPUMilli": 8000, "podMemoryMB": 14336}
    assert stored["spec"] == {**SMALLEST_POOL_SPEC, **defaults}
    blocks: dict[str, Any] = {"provisioning": {}, "autoscaling": {}, "rollout": {}}
    stored = create(api, POOL, namespace, document("RunnerPool", "blocks", spec={**SMALLEST_POOL_SPEC, **blocks}))
    assert {block: stored["spec"][block] for block in blocks} == {
        "provisioning": {"maxConcurrentPerFleetSelector": 4, "startTimeoutSeconds": 300},
        "autoscaling": {"enabled": False, "minWarmPoolFloor": 1, "maxReplicas": 0, "scaleDownCooldownSeconds": 300},
        "rollout": {"maxConcurrentPercent": 5},
    }


def put(path: str, value: Any) -> Edit:
    def edit(spec: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            spec = spec.setdefault(name, {})
        spec[last] = value

    return edit


def drop(path: str) -> Edit:
    def edit(spec: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            spec = spec[name]
        del spec[last]

    return edit


BAD_MACHINES = [
    (put("os", "macos-tahoe-26.3"), "os", "os must be a macOS family without a version, such as Tahoe"),
    (put("os", "Tahoe 26"), "os", "os must be a macOS family"),
    (put("os", ""), "os", "os must be a macOS family"),
    (put("os", 26), "os", "must be of type string"),
    (put("providerID", "aws:///i-1"), "providerID", "providerID must be scw-applesilicon://ZONE/SERVER-UUID"),
    (put("providerID", ""), "providerID", "leave it out and the provider writes it"),
    (put("providerID", PROVIDER_ID.upper()), "providerID", "in lower case"),
    (put("fleetName", "f" * 64), "fleetName", "63"),
    (put("hostCPU", "eight"), "hostCPU", "must be of type integer"),
    (drop("ghActionsRunner.ghRunnerVersion"), "ghActionsRunner.ghRunnerVersion", "Required value"),
    (put("ghActionsRunner.ghRunnerVersion", ""), "ghActionsRunner.ghRunnerVersion", "write the version of the runner"),
    (drop("ghActionsRunner.ghAppSecretName"), "ghActionsRunner.ghAppSecretName", "must name the Secret"),
    (put("ghActionsRunner.ghAppSecretName", ""), "ghActionsRunner.ghAppSecretName", "must name the Secret"),
]
BAD_POOLS = [
    (drop("image"), "image", "Required value"),
    (put("image", ""), "image", "image must not be empty; write the reference"),
    (drop("fleetSelector"), "fleetSelector", "Required value"),
    (put("fleetSelector", ""), "fleetSelector", "fleetSelector must not be empty; write the name of the fleet"),
    (drop("dispatchLabel"), "dispatchLabel", "Required value"),
    (put("dispatchLabel", ""), "dispatchLabel", "dispatchLabel must not be empty; write the label"),
    (drop("runnerLabels"), "runnerLabels", "Required value"),
    (put("runnerLabels", []), "runnerLabels", "runnerLabels must hold at least one label"),
    (put("runnerLabels", ["macOS", ""]), "runnerLabels", "no empty one; write for example self-hosted"),
    (put("runnerLabels", "macOS"), "runnerLabels", "must be of type array"),
    (put("os", "windows"), "os", "Unsupported value"),
    (put("replicas", -1), "replicas", "greater than or equal to 0"),
    (put("rollout.maxConcurrentPercent", 0), "rollout.maxConcurrentPercent", "must be a percentage from 1 to 100"),
    (put("rollout.maxConcurrentPercent", 101), "rollout.maxConcurrentPercent", "must be a percentage from 1 to 100"),
    (put("rollout.maxConcurrentPercent", "5%"), "rollout.maxConcurrentPercent", "must be of type integer"),
    (put("provisioning.maxConcurrentPerFleetSelector", 0), "provisioning.maxConcurrentPerFleetSelector", "equal to 1"),
    (put("provisioning.startTimeoutSeconds", -1), "provisioning.startTimeoutSeconds", "equal to 0"),
    (put("autoscaling.minWarmPoolFloor", -1), "autoscaling.minWarmPoolFloor", "equal to 0"),
    (put("autoscaling.maxReplicas", -1), "autoscaling.maxReplicas", "equal to 0"),
    (put("autoscaling.scaleDownCooldownSeconds", -1), "autoscaling.scaleDownCooldownSeconds", "equal to 0"),
]


def assert_refused(answer: tuple[int, dict[str, Any]], field: str, words: str) -> None:
    code, status = answer
    assert code == 422, status
    assert any(name.startswith(field) and words in text for name, text in causes(status).items()), status


@pytest.mark.parametrize(("edit", "field", "words"), BAD_MACHINES)
def test_a_bad_machine_is_refused_with_its_field_and_a_sentence(
    api: RawApi, namespace: str, edit: Edit, field: str, words: str
) -> None:
    spec = copy.deepcopy(MACHINE_SPEC)
    edit(spec)
    answer = api.create(MACHINE, namespace, document("ScalewayAppleSiliconMachine", spec=spec))
    assert_refused(answer, f"spec.{field}", words)


@pytest.mark.parametrize(("edit", "field", "words"), BAD_MACHINES)
def test_a_bad_template_is_refused_before_anything_is_cloned_from_it(
    api: RawApi, namespace: str, edit: Edit, field: str, words: str
) -> None:
    spec = copy.deepcopy(MACHINE_SPEC)
    edit(spec)
    doc = document("ScalewayAppleSiliconMachineTemplate", spec={"template": {"spec": spec}})
    assert_refused(api.create(TEMPLATE, namespace, doc), f"spec.template.spec.{field}", words)


@pytest.mark.parametrize(("edit", "field", "words"), BAD_POOLS)
def test_a_bad_pool_is_refused_with_its_field_and_a_sentence(
    api: RawApi, namespace: str, edit: Edit, field: str, words: str
) -> None:
    spec = copy.deepcopy(SMALLEST_POOL_SPEC)
    edit(spec)
    assert_refused(api.create(POOL, namespace, document("RunnerPool", spec=spec)), f"spec.{field}", words)


OTHER = {
    "type": "M2-XL",
    "zone": "fr-par-2",
    "os": "Sonoma",
    "adoptPoolPrefix": "other-pool-",
    "fleetName": "other",
}
CLAIMS: list[tuple[str, dict[str, Any], str]] = [
    ("server id", {"status": {"serverID": SERVER_ID}}, "status"),
    ("provider id", {"spec": {"providerID": PROVIDER_ID}}, ""),
]


@pytest.fixture
def machine(api: RawApi, namespace: str) -> Callable[[dict[str, Any], str], tuple[int, dict[str, Any]]]:
    """A machine nobody has claimed yet, as a function that patches it."""
    create(api, MACHINE, namespace, document("ScalewayAppleSiliconMachine", spec={"fleetName": "first"}))

    def patch(body: dict[str, Any], subresource: str = "") -> tuple[int, dict[str, Any]]:
        return api.merge(MACHINE, namespace, "mac-1", body, subresource)

    return patch


Patch = Callable[..., tuple[int, dict[str, Any]]]


@pytest.mark.parametrize("field", OTHER)
def test_what_identifies_a_host_can_change_before_the_claim(machine: Patch, field: str) -> None:
    code, stored = machine({"spec": {field: OTHER[field]}})
    assert (code, stored["spec"][field]) == (200, OTHER[field])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim[0])
def test_what_identifies_a_host_is_fixed_once_it_is_claimed(machine: Patch, claim: tuple[str, Any, str]) -> None:
    """A zone edited after the claim made the release look in the wrong zone, find nothing, and call that success."""
    assert machine(claim[1], claim[2])[0] == 200
    for field, value in OTHER.items():
        answer = machine({"spec": {field: value}})
        assert_refused(answer, f"spec.{field}", f"spec.{field} cannot change while the machine holds a host")
    for field in ("type", "zone", "fleetName"):
        code, stored = machine({"spec": {field: None}})
        assert code == (422 if field == "fleetName" else 200), f"{field}: taking it out means its default: {stored}"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim[0])
def test_the_rest_of_a_claimed_machine_can_change(machine: Patch, claim: tuple[str, Any, str]) -> None:
    assert machine(claim[1], claim[2])[0] == 200
    assert machine({"spec": {"hostCPU": 6}, "metadata": {"labels": {"a": "b"}}})[0] == 200
    assert machine({"status": {"phase": "Bootstrapping", "bootstrapAttempts": 2}}, "status")[0] == 200


def test_an_operator_can_take_a_machine_off_its_host_and_then_change_it(machine: Patch) -> None:
    """Pause, clear both ids, then edit: the way out of a duplicate claim."""
    assert machine({"spec": {"providerID": PROVIDER_ID}})[0] == 200
    assert machine({"status": {"serverID": SERVER_ID}}, "status")[0] == 200
    assert machine({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})[0] == 200
    assert machine({"status": {"serverID": ""}}, "status")[0] == 200
    assert machine({"spec": {"zone": "fr-par-2"}})[0] == 422
    assert machine({"spec": {"providerID": None}})[0] == 200
    assert machine({"spec": {"zone": "fr-par-2"}})[0] == 200


def test_claiming_and_changing_the_identity_in_one_write_is_allowed_because_nothing_was_held(machine: Patch) -> None:
    assert machine({"spec": {"providerID": PROVIDER_ID, "zone": "fr-par-2"}})[0] == 200


def test_an_object_from_before_a_rule_can_still_be_worked_with(api: RawApi, real_cluster: FullCluster, namespace: str) -> None:
    """A tightened rule must not lock anybody out of a machine that was stored before it: only a new value is judged."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{MACHINE.label}"
    _, definition = api.call("GET", path)
    loose = copy.deepcopy(definition)
    spec = loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["os"]["x-kubernetes-validations"]
    assert api.call("PUT", path, loose)[0] == 200
    try:
        old = document("ScalewayAppleSiliconMachine", spec={"os": "macos-tahoe-26.3"})
        _until(lambda: api.create(MACHINE, namespace, old)[0] in (201, 409), "the loosened definition is in force")
    finally:
        real_cluster.kubectl("apply", "-f", str(ROOT / generate.CRD_FOLDER))
    bad = document("ScalewayAppleSiliconMachine", "mac-2", spec={"os": "macos-tahoe-26.3"})
    _until(lambda: api.create(MACHINE, namespace, bad)[0] in (422, 409), "the definition is in force again")
    code, stored = api.merge(MACHINE, namespace, "mac-1", {"spec": {"hostCPU": 4}, "metadata": {"finalizers": ["a.b/c"]}})
    assert code == 200, stored
    assert api.merge(MACHINE, namespace, "mac-1", {"status": {"serverID": SERVER_ID}}, "status")[0] == 200


def _until(holds: Callable[[], bool], what: str) -> None:
    """A definition is in force a moment after it was accepted; each look is a request, so a bound on looks is a deadline."""
    assert any(holds() for _ in range(500)), what


def test_kubectl_shows_the_columns_and_knows_the_short_names(api: RawApi, real_cluster: FullCluster, namespace: str) -> None:
    for doc in FULL:
        create(api, RESOURCES[doc["kind"]], namespace, doc)
    shown = {name: real_cluster.kubectl("get", "-n", namespace, name) for name in ("samm", "sammt", "tcl", "rpool")}
    assert shown["samm"].split()[:5] == ["NAME", "PHASE", "PROVIDERID", "READY", "AGE"]
    assert f"mac-1   Ready   {PROVIDER_ID}   true" in shown["samm"]
    assert shown["tcl"].split() == ["NAME", "ENDPOINT", "READY", "mac-1", "127.0.0.1", "true"]
    assert shown["rpool"].split()[:5] == ["NAME", "REPLICAS", "OBSERVED", "DISPATCHLABEL", "AGE"]
    everything = real_cluster.kubectl("get", "-n", namespace, "cluster-api")
    assert "scalewayapplesiliconmachinetemplate" in everything
    assert "tuistcluster" in everything


def test_kubectl_scales_a_pool(api: RawApi, real_cluster: FullCluster, namespace: str) -> None:
    create(api, POOL, namespace, document("RunnerPool", "pool", spec=SMALLEST_POOL_SPEC))
    real_cluster.kubectl("scale", "-n", namespace, "rpool/pool", "--replicas=7")
    assert real_cluster.kubectl("get", "-n", namespace, "rpool/pool", "-o", "jsonpath={.spec.replicas}") == "7"


def test_kubectl_explains_a_field(api: RawApi, real_cluster: FullCluster) -> None:
    assert "macOS family" in real_cluster.kubectl("explain", "samm.spec.os")
