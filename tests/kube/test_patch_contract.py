"""Changing objects: the four patch kinds, preconditions, and the subresources, on every API server."""

import pytest

from applecart.api.autoscaling import Scale
from applecart.api.core import ConfigMap
from applecart.api.meta import Key, Object, Resource
from applecart.api.pods import Pod
from applecart.api.runners import RunnerPool
from applecart.kube.errors import Conflict, Invalid, NotFound
from applecart.kube.patch import Apply, Json, Merge, Patch, Strategic
from applecart.kube.transport import Request
from tests.kube.backends import Backend
from tests.kube.objects import config_map, pod, runner_pool


class Narrow(Object):
    """A config map of which we know next to nothing."""

    resource = Resource("", "v1", "ConfigMap", "configmaps")

    data: dict[str, str] = {}


async def test_a_merge_patch_changes_adds_and_removes(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a", keep="1", change="2", drop="3"))
    changed = await api.client.patch(ConfigMap, created.key, Merge({"data": {"change": "two", "drop": None, "new": "4"}}))
    assert changed.data == {"keep": "1", "change": "two", "new": "4"}
    assert changed.revision != created.revision
    assert await api.client.get(ConfigMap, created.key) == changed


async def test_a_json_patch_acts_on_single_elements_under_a_test(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a", labels={"a": "b"}, colour="green", size="1"))
    operations = [
        {"op": "test", "path": "/data/colour", "value": "green"},
        {"op": "replace", "path": "/data/colour", "value": "red"},
        {"op": "remove", "path": "/data/size"},
        {"op": "add", "path": "/metadata/labels/applecart.dev~1pool", "value": "one"},
        {"op": "copy", "from": "/data/colour", "path": "/data/copied"},
        {"op": "move", "from": "/data/copied", "path": "/data/moved"},
    ]
    changed = await api.client.patch(ConfigMap, created.key, Json(operations))
    assert changed.data == {"colour": "red", "moved": "red"}
    assert changed.labels == {"a": "b", "applecart.dev/pool": "one"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/colour", "value": "red"},
        {"op": "replace", "path": "/nowhere/missing", "value": "1"},
        {"op": "remove", "path": "/data/missing"},
    ],
)
async def test_a_json_patch_that_does_not_fit_changes_nothing(api: Backend, operation: dict[str, str]) -> None:
    created = await api.client.create(config_map(api.namespace, "a", colour="green"))
    with pytest.raises(Invalid):
        await api.client.patch(ConfigMap, created.key, Json([{"op": "add", "path": "/data/new", "value": "1"}, operation]))
    assert await api.client.get(ConfigMap, created.key) == created


async def test_a_strategic_patch_joins_lists_by_key(api: Backend) -> None:
    created = await api.client.create(pod(api.namespace, "a"))
    patch = Strategic({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    await api.client.patch_status(Pod, created.key, patch)
    second = Strategic({"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}})
    changed = await api.client.patch_status(Pod, created.key, second)
    assert {condition.type for condition in changed.status.conditions} == {"Ready", "PodScheduled"}


async def test_an_applied_field_belongs_to_its_manager_until_it_stops_applying_it(api: Backend) -> None:
    key = Key(api.namespace, "a")

    def applied(manager: str, force: bool = False, **data: str) -> Apply:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name}, "data": data}
        return Apply(body, manager=manager, force=force)

    created = await api.client.patch(ConfigMap, key, applied("one", colour="green", size="1"))
    assert created.data == {"colour": "green", "size": "1"}
    with pytest.raises(Conflict, match='conflict with "one"'):
        await api.client.patch(ConfigMap, key, applied("two", colour="red"))
    assert (await api.client.patch(ConfigMap, key, applied("two", force=True, colour="red"))).data["colour"] == "red"
    assert (await api.client.patch(ConfigMap, key, applied("one"))).data == {"colour": "red"}


@pytest.mark.parametrize(
    "patch",
    [Merge({"data": {"colour": "red"}}), Json([{"op": "replace", "path": "/data/colour", "value": "red"}])],
    ids=["merge", "json"],
)
async def test_a_patch_of_a_revision_that_passed_is_a_conflict_and_changes_nothing(api: Backend, patch: Patch) -> None:
    created = await api.client.create(config_map(api.namespace, "a", colour="green"))
    changed = await api.client.patch(ConfigMap, created.key, Merge({"data": {"size": "1"}}), if_revision=created.revision)
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.client.patch(ConfigMap, created.key, patch, if_revision=created.revision)
    assert await api.client.get(ConfigMap, created.key) == changed
    patched = await api.client.patch(ConfigMap, created.key, patch, if_revision=changed.revision)
    assert patched.data == {"colour": "red", "size": "1"}


async def test_a_patch_that_changes_nothing_leaves_the_revision(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a", colour="green"))
    same = await api.client.patch(ConfigMap, created.key, Merge({"data": {"colour": "green"}}))
    assert same.revision == created.revision


async def test_a_rehearsed_patch_changes_nothing(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a", colour="green"))
    rehearsed = await api.client.patch(ConfigMap, created.key, Merge({"data": {"colour": "red"}}), dry_run=True)
    assert rehearsed.data == {"colour": "red"}
    assert await api.client.get(ConfigMap, created.key) == created


async def test_patching_what_does_not_exist_is_not_found(api: Backend) -> None:
    with pytest.raises(NotFound):
        await api.client.patch(ConfigMap, Key(api.namespace, "nowhere"), Merge({"data": {"a": "b"}}))


async def test_fields_that_our_struct_does_not_know_survive_a_patch_of_the_decoded_object(api: Backend) -> None:
    whole = ConfigMap(metadata=config_map(api.namespace, "a").metadata, data={"a": "1"}, binary_data={"b": "AAEC"})
    created = await api.client.create(whole)
    decoded = await api.client.get(Narrow, created.key)
    await api.client.patch(Narrow, decoded.key, Merge({"data": {**decoded.data, "c": "3"}}), if_revision=decoded.revision)
    changed = await api.client.get(ConfigMap, created.key)
    assert changed.binary_data == {"b": "AAEC"}
    assert changed.data == {"a": "1", "c": "3"}


async def test_the_identity_of_an_object_cannot_be_patched(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a"))
    with pytest.raises(Invalid, match=r"metadata\.uid"):
        await api.client.patch(
            ConfigMap, created.key, Merge({"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}, "data": {"a": "1"}})
        )
    kept = await api.client.patch(ConfigMap, created.key, Merge({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}))
    assert kept.metadata.creation_timestamp == created.metadata.creation_timestamp


# Status and scale


async def test_status_changes_only_through_its_subresource(api: Backend, pools: None) -> None:
    created = await api.client.create(runner_pool(api.namespace, "a"))
    body = {"spec": {"replicas": 3}, "status": {"observedReplicas": 3}}
    outside = await api.client.patch(RunnerPool, created.key, Merge(body))
    assert (outside.spec.replicas, outside.status.observed_replicas) == (3, 0)
    body["spec"] = {"replicas": 7}
    inside = await api.client.patch_status(RunnerPool, created.key, Merge(body))
    assert (inside.spec.replicas, inside.status.observed_replicas) == (3, 3)
    assert await api.client.get(RunnerPool, created.key, subresource="status") == inside


async def test_the_generation_counts_changes_of_the_spec_and_not_of_status_or_labels(api: Backend, pools: None) -> None:
    created = await api.client.create(runner_pool(api.namespace, "a"))
    assert created.metadata.generation == 1
    await api.client.patch_status(RunnerPool, created.key, Merge({"status": {"observedReplicas": 1}}))
    labelled = await api.client.patch(RunnerPool, created.key, Merge({"metadata": {"labels": {"a": "b"}}}))
    assert labelled.metadata.generation == 1
    scaled = await api.client.patch(RunnerPool, created.key, Merge({"spec": {"replicas": 2}}))
    assert scaled.metadata.generation == 2


async def test_a_stale_status_patch_is_a_conflict(api: Backend, pools: None) -> None:
    created = await api.client.create(runner_pool(api.namespace, "a"))
    await api.client.patch(RunnerPool, created.key, Merge({"spec": {"replicas": 2}}))
    with pytest.raises(Conflict):
        await api.client.patch_status(
            RunnerPool, created.key, Merge({"status": {"observedReplicas": 1}}), if_revision=created.revision
        )


async def test_pods_take_labels_through_their_status(api: Backend) -> None:
    """Kinds differ in this, and an agent that writes status relies on it."""
    created = await api.client.create(pod(api.namespace, "a"))
    body = {"metadata": {"labels": {"seen": "yes"}}, "status": {"message": "hello"}}
    changed = await api.client.patch_status(Pod, created.key, Merge(body))
    assert (changed.labels["seen"], changed.status.message) == ("yes", "hello")


async def test_scaling_changes_the_replicas_and_nothing_else(api: Backend, pools: None) -> None:
    created = await api.client.create(runner_pool(api.namespace, "a", replicas=1))
    scale = await api.client.scale(RunnerPool, created.key, 4)
    assert (scale.spec.replicas, scale.name) == (4, "a")
    after = await api.client.get(RunnerPool, created.key)
    assert after.spec.replicas == 4
    assert after.spec.image == created.spec.image
    path = f"/apis/tuist.dev/v1alpha1/namespaces/{api.namespace}/runnerpools/a/scale"
    assert Scale.resource.kind.encode() in (await api.client.call(Request("GET", path))).body


async def test_a_negative_scale_is_invalid(api: Backend, pools: None) -> None:
    created = await api.client.create(runner_pool(api.namespace, "a"))
    with pytest.raises(Invalid, match=r"spec\.replicas"):
        await api.client.scale(RunnerPool, created.key, -1)
