"""lightkube: typed and generic objects over httpx."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType, PatchType

from tests.conformance.clients.connection import WIDGETS

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]

Widget = create_namespaced_resource(WIDGETS, "v1", "Widget", "widgets")


@pytest.fixture
def client(kubeconfig: Path, place: str) -> Iterator[Client]:
    connected = Client(KubeConfig.from_file(kubeconfig).get(), namespace=place, field_manager="one", trust_env=False)
    yield connected
    connected.close()


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def test_objects_are_created_patched_listed_and_deleted(client: Client) -> None:
    made = client.create(ConfigMap(metadata=ObjectMeta(generateName="some-"), data={"n": "0"}))
    assert made.metadata is not None
    name = made.metadata.name
    assert name is not None
    assert client.patch(ConfigMap, name, {"data": {"m": "1"}}).data == {"n": "0", "m": "1"}
    assert client.patch(ConfigMap, name, {"data": {"m": None}}, patch_type=PatchType.MERGE).data == {"n": "0"}
    operations = [{"op": "replace", "path": "/data/n", "value": "2"}]
    assert client.patch(ConfigMap, name, operations, patch_type=PatchType.JSON).data == {"n": "2"}
    listed = [one.metadata.name for one in client.list(ConfigMap, fields={"metadata.name": name}) if one.metadata]
    assert listed == [name]
    client.delete(ConfigMap, name, cascade=CascadeType.BACKGROUND)
    with pytest.raises(ApiError) as refused:
        client.get(ConfigMap, name)
    assert refused.value.status.code == 404


def test_an_apply_creates_and_conflicts(client: Client) -> None:
    assert client.apply(config_map("a", n="1")).data == {"n": "1"}
    with pytest.raises(ApiError) as refused:
        client.apply(config_map("a", n="2"), field_manager="two")
    assert refused.value.status.code == 409
    assert client.apply(config_map("a", n="2"), field_manager="two", force=True).data == {"n": "2"}


def test_a_replace_of_an_old_revision_conflicts(client: Client) -> None:
    old = client.create(config_map("a", n="0"))
    client.patch(ConfigMap, "a", {"data": {"n": "1"}})
    with pytest.raises(ApiError) as refused:
        client.replace(old)
    assert refused.value.status.code == 409


def test_a_watch_shows_what_happens_after_a_revision(client: Client) -> None:
    made = client.create(config_map("a"))
    assert made.metadata is not None
    client.patch(ConfigMap, "a", {"data": {"n": "1"}})
    client.delete(ConfigMap, "a")
    seen = []
    for kind, _ in client.watch(ConfigMap, fields={"metadata.name": "a"}, resource_version=made.metadata.resourceVersion):
        seen.append(kind)
        if kind == "DELETED":
            break
    assert seen == ["MODIFIED", "DELETED"]


def test_a_pod_has_a_status_and_is_waited_for(client: Client) -> None:
    client.create(
        Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[Container(name="main", image="example.test/image:1")]))
    )
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    client.patch(Pod.Status, "p", status)
    ready = client.wait(Pod, "p", for_conditions=["Ready"])
    assert isinstance(ready.status, PodStatus)
    client.deletecollection(Pod)


def test_a_kind_of_ones_own_has_a_status_and_a_scale(client: Client, place: str) -> None:
    made = client.create(Widget(metadata=ObjectMeta(name="a"), spec={"size": 1}))
    assert made["spec"]["color"] == "red"
    status = client.patch(Widget.Status, "a", {"status": {"phase": "Up"}}, patch_type=PatchType.MERGE)
    assert status["status"] == {"phase": "Up"}
    scaled = client.replace(Widget.Scale(metadata=ObjectMeta(name="a", namespace=place), spec=ScaleSpec(replicas=4)))
    assert scaled.spec is not None
    assert scaled.spec.replicas == 4
