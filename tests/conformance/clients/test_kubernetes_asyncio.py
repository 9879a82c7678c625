"""The asyncio client that is generated from the official one; it spells booleans as Python does."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio import client, config, dynamic, watch

from tests.conformance.clients.connection import VERSIONED, WIDGETS

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Any]:
    connected = await config.new_client_from_config(str(kubeconfig))
    async with connected:
        yield connected


def config_map(**metadata: Any) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(**metadata), data={"n": "0"})


async def test_objects_are_created_listed_patched_and_deleted(api: Any, place: str) -> None:
    core = client.CoreV1Api(api)
    name = (await core.create_namespaced_config_map(place, config_map(generate_name="some-"))).metadata.name
    assert (await core.patch_namespaced_config_map(name, place, {"data": {"m": "1"}})).data == {"n": "0", "m": "1"}
    replaced = [{"op": "replace", "path": "/data/n", "value": "2"}]
    assert (await core.patch_namespaced_config_map(name, place, replaced)).data == {"n": "2", "m": "1"}
    listed = await core.list_namespaced_config_map(place, field_selector=f"metadata.name={name}")
    assert len(listed.items) == 1
    await core.delete_namespaced_config_map(name, place)
    with pytest.raises(client.ApiException) as refused:
        await core.read_namespaced_config_map(name, place)
    assert refused.value.status == 404


async def test_a_watch_sends_a_boolean_in_capitals_and_is_served(api: Any, place: str) -> None:
    core = client.CoreV1Api(api)
    start = (await core.list_namespaced_config_map(place)).metadata.resource_version
    await core.create_namespaced_config_map(place, config_map(name="a"))
    await core.delete_namespaced_config_map("a", place)
    seen = []
    async with watch.Watch().stream(
        core.list_namespaced_config_map, place, resource_version=start, timeout_seconds=20
    ) as events:
        async for event in events:
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                break
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_pod_takes_a_status_and_an_eviction(api: Any, place: str) -> None:
    core = client.CoreV1Api(api)
    container = client.V1Container(name="main", image="example.test/image:1")
    body = client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=client.V1PodSpec(containers=[container]))
    await core.create_namespaced_pod(place, body)
    status = await core.patch_namespaced_pod_status("p", place, {"status": {"phase": "Running"}})
    assert status.status.phase == "Running"
    await core.create_namespaced_pod_eviction("p", place, client.V1Eviction(metadata=client.V1ObjectMeta(name="p")))
    with pytest.raises(client.ApiException):
        await core.read_namespaced_pod("p", place)


async def test_a_custom_object_has_a_status_and_a_scale(api: Any, place: str) -> None:
    objects = client.CustomObjectsApi(api)
    where = (WIDGETS, "v1", place, "widgets")
    body = {"apiVersion": VERSIONED, "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    assert (await objects.create_namespaced_custom_object(*where, body))["spec"]["color"] == "red"
    merge: dict[str, Any] = {
        "_content_type": "application/merge-patch+json"
    }  # it would call any patch of a custom object a JSON patch
    await objects.patch_namespaced_custom_object_status(*where, "a", {"status": {"phase": "Up"}}, **merge)
    scale = await objects.patch_namespaced_custom_object_scale(*where, "a", {"spec": {"replicas": 3}}, **merge)
    assert scale["spec"]["replicas"] == 3
    got = await objects.get_namespaced_custom_object(*where, "a")
    assert (got["spec"]["size"], got["status"]["phase"]) == (3, "Up")


async def test_a_token_is_asked_for(api: Any, place: str) -> None:
    core = client.CoreV1Api(api)
    await core.create_namespaced_service_account(place, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    answer = await core.create_namespaced_service_account_token("robot", place, request)
    assert answer.status.token.count(".") == 2


async def test_the_dynamic_client_discovers_and_applies(api: Any, place: str) -> None:
    async with dynamic.DynamicClient(api) as connected:
        maps = await connected.resources.get(api_version="v1", kind="ConfigMap")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}}
        applied = await maps.server_side_apply(body=body, namespace=place, name="a", field_manager="one")
        assert applied.data.n == "1"
        assert (await maps.get(name="a", namespace=place)).data.n == "1"
