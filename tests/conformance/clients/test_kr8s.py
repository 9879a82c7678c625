"""kr8s: objects that know how to patch, scale, watch and delete themselves."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import kr8s
import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import ConfigMap, Pod, new_class

from tests.conformance.clients.connection import VERSIONED

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.real_time,
    # It knows the minors of its own release only, and says so of every newer one.
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]

POD = {"containers": [{"name": "main", "image": "example.test/image:1"}]}


@pytest.fixture
async def api(kubeconfig: Path, place: str) -> AsyncIterator[Any]:
    connected = await kr8s.asyncio.api(kubeconfig=str(kubeconfig), namespace=place)
    yield connected
    if connected._session:  # it never closes its connections by itself
        await connected._session.aclose()


def of(kind: str, name: str, place: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": place}, **rest}


async def test_objects_are_created_patched_listed_and_deleted(api: Any, place: str) -> None:
    made = await ConfigMap(of("ConfigMap", "a", place, data={"n": "0"}), api=api)
    await made.create()
    await made.patch({"data": {"m": "1"}})
    assert made.raw["data"] == {"n": "0", "m": "1"}
    await made.patch([{"op": "replace", "path": "/data/n", "value": "2"}], type="json")
    assert made.raw["data"]["n"] == "2"
    await made.label({"l": "1"})
    await made.annotate({"note": "x"})
    found = [one async for one in api.get("configmaps", namespace=place, label_selector={"l": "1"})]
    assert [one.name for one in found] == ["a"]
    await made.delete()
    assert not await made.exists()


async def test_a_watch_shows_what_is_there(api: Any, place: str) -> None:
    await (await ConfigMap(of("ConfigMap", "a", place), api=api)).create()
    async with aclosing(api.watch("configmaps", namespace=place)) as events:
        async for kind, one in events:
            assert kind == "ADDED"
            if one.name == "a":
                break


async def test_a_pod_is_waited_for(api: Any, place: str) -> None:
    pod = await Pod(of("Pod", "p", place, spec=POD), api=api)
    await pod.create()
    await pod.patch({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, subresource="status")
    await pod.wait("condition=Ready", timeout=20)
    assert pod.status.phase == "Pending"


async def test_a_kind_of_ones_own_is_scaled(api: Any, place: str) -> None:
    kind = new_class("Widget", VERSIONED, asyncio=True, scalable=True, scalable_spec="size", plural="widgets")
    made = await kind({**of("Widget", "a", place, spec={"size": 1}), "apiVersion": VERSIONED}, api=api)
    await made.create()
    await made.scale(3)
    await made.refresh()
    assert made.raw["spec"] == {"size": 3, "color": "red"}


async def test_the_server_and_its_kinds_are_asked_for(api: Any) -> None:
    assert (await api.version())["major"] == "1"
    kinds = {one["kind"] for one in await api.api_resources()}
    assert {"Pod", "Lease", "Widget", "CustomResourceDefinition"} <= kinds
    assert (await api.whoami()) is not None
