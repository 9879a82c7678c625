"""The official Python client: typed, custom objects, dynamic, watch and leader election."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.clients.connection import VERSIONED, WIDGETS

# Its types cover a part of it and call the rest objects.
client: Any = importlib.import_module("kubernetes.client")
config: Any = importlib.import_module("kubernetes.config")
dynamic: Any = importlib.import_module("kubernetes.dynamic")
watch: Any = importlib.import_module("kubernetes.watch")
election: Any = importlib.import_module("kubernetes.leaderelection.leaderelection")
election_config: Any = importlib.import_module("kubernetes.leaderelection.electionconfig")
lease_lock: Any = importlib.import_module("kubernetes.leaderelection.resourcelock.leaselock")

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]

WIDGET = (WIDGETS, "v1")


@pytest.fixture
def api(kubeconfig: Path) -> Iterator[Any]:
    with config.new_client_from_config(str(kubeconfig)) as connected:
        yield connected


@pytest.fixture
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def pod(name: str = "") -> Any:
    metadata = client.V1ObjectMeta(name=name) if name else client.V1ObjectMeta(generate_name="pod-")
    container = client.V1Container(name="main", image="example.test/image:1", env=[client.V1EnvVar(name="A", value="1")])
    return client.V1Pod(metadata=metadata, spec=client.V1PodSpec(containers=[container]))


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": VERSIONED, "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def test_a_pod_is_created_listed_patched_and_deleted(core: Any, place: str) -> None:
    made = core.create_namespaced_pod(place, pod())
    name = made.metadata.name
    assert name.startswith("pod-")
    assert made.spec.containers[0].env[0].value == "1"
    assert [one.metadata.name for one in core.list_namespaced_pod(place, label_selector="!absent", limit=5).items] == [name]
    # The client sends a strategic merge for a dict and a JSON patch for a list.
    patch = {"spec": {"containers": [{"name": "main", "image": "example.test/image:2"}]}}
    assert core.patch_namespaced_pod(name, place, patch).spec.containers[0].image == "example.test/image:2"
    added = [{"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}]
    assert core.patch_namespaced_pod(name, place, added).metadata.labels == {"l": "1"}
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert core.patch_namespaced_pod_status(name, place, status).status.phase == "Running"
    deleted = core.delete_namespaced_pod(name, place, grace_period_seconds=0)
    assert deleted.metadata.name == name
    with pytest.raises(client.ApiException) as refused:
        core.read_namespaced_pod(name, place)
    assert refused.value.status == 404


def test_an_update_of_an_old_revision_conflicts(core: Any, place: str) -> None:
    old = core.create_namespaced_config_map(place, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"n": "0"}))
    core.patch_namespaced_config_map("a", place, {"data": {"n": "1"}})
    old.data["n"] = "2"
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map("a", place, old)
    assert refused.value.status == 409


def test_a_watch_shows_an_object_come_change_and_go(core: Any, place: str) -> None:
    start = core.list_namespaced_config_map(place).metadata.resource_version
    core.create_namespaced_config_map(place, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a")))
    core.patch_namespaced_config_map("a", place, {"data": {"n": "1"}})
    core.delete_namespaced_config_map("a", place)
    stream = watch.Watch().stream(core.list_namespaced_config_map, place, resource_version=start, timeout_seconds=20)
    seen = []
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break
    stream.close()
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_custom_object_has_a_status_and_a_scale(api: Any, place: str) -> None:
    objects = client.CustomObjectsApi(api)
    made = objects.create_namespaced_custom_object(*WIDGET, place, "widgets", widget("a", size=1))
    assert made["spec"] == {"size": 1, "color": "red"}
    changed = objects.patch_namespaced_custom_object(*WIDGET, place, "widgets", "a", {"spec": {"color": "blue"}})
    assert changed["metadata"]["generation"] == 2
    status = objects.patch_namespaced_custom_object_status(*WIDGET, place, "widgets", "a", {"status": {"size": 7}})
    assert (status["status"], status["metadata"]["generation"]) == ({"size": 7}, 2)
    scaled = objects.patch_namespaced_custom_object_scale(*WIDGET, place, "widgets", "a", {"spec": {"replicas": 5}})
    assert (scaled["kind"], scaled["spec"], scaled["status"]["replicas"]) == ("Scale", {"replicas": 5}, 7)
    assert [one["spec"]["size"] for one in objects.list_namespaced_custom_object(*WIDGET, place, "widgets")["items"]] == [5]
    assert objects.delete_collection_namespaced_custom_object(*WIDGET, place, "widgets")["kind"] in ("WidgetList", "Status")


def test_a_token_speaks_for_its_service_account(api: Any, core: Any, place: str) -> None:
    core.create_namespaced_service_account(place, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    token = core.create_namespaced_service_account_token("robot", place, request).status.token
    review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    status = client.AuthenticationV1Api(api).create_token_review(review).status
    assert (status.authenticated, status.user.username) == (True, f"system:serviceaccount:{place}:robot")


def test_the_dynamic_client_discovers_applies_and_watches(api: Any, place: str) -> None:
    maps = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}}
    applied = maps.server_side_apply(body=body, namespace=place, name="a", field_manager="one")
    assert applied.data.n == "1"
    with pytest.raises(client.ApiException) as refused:
        maps.server_side_apply(body=body | {"data": {"n": "2"}}, namespace=place, name="a", field_manager="two")
    assert refused.value.status == 409
    patched = maps.patch(body={"data": {"m": "2"}}, name="a", namespace=place, content_type="application/merge-patch+json")
    assert patched.data.to_dict() == {"m": "2", "n": "1"}
    events = list(maps.watch(namespace=place, timeout=1, field_selector="metadata.name=a"))
    assert [(event["type"], event["object"].metadata.name) for event in events] == [("ADDED", "a")]
    assert maps.delete(name="a", namespace=place).status == "Success"


def test_the_dynamic_client_finds_kinds_of_ones_own(api: Any, place: str) -> None:
    widgets = dynamic.DynamicClient(api).resources.get(api_version=VERSIONED, kind="Widget")
    widgets.create(body=widget("a", size=1), namespace=place)
    assert widgets.get(name="a", namespace=place).spec.color == "red"
    assert widgets.subresources["scale"].get(name="a", namespace=place).spec.replicas == 1


def test_a_candidate_leads_by_a_lease(api: Any, place: str) -> None:
    lock = lease_lock.LeaseLock("leader", place, "first")
    lock.api_instance = client.CoordinationV1Api(api)
    told: list[str] = []

    def lead() -> None:
        told.append("leads")
        raise RuntimeError("the work is over")  # the only way to make this client stop leading

    settings = election_config.Config(lock, 3, 2, 1, lead, lambda: told.append("stopped"))
    election.LeaderElection(settings).run()
    assert told == ["leads", "stopped"]
    assert lock.api_instance.read_namespaced_lease("leader", place).spec.holder_identity == "first"
