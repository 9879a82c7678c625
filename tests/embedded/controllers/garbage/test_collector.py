"""The collector in the moments that matter: races, outages, and kinds that come and go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta, OwnerReference
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.run import run_garbage_collector
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.owners import owner_reference
from applecart.kube.patch import Merge
from applecart.kube.transport import Request, Transport
from tests.embedded.controllers.garbage.scenarios import THINGS, Thing, ensure_things
from tests.embedded.controllers.meddling import Meddler
from tests.embedded.controllers.scene import Scene, scene
from tests.embedded.controllers.stages import CA_PEM, api_in_memory
from tests.kube.faults import FaultyTransport, Refused, always
from tests.virtual_time import elapse

LONG_S = 300.0  # beyond every backoff


@asynccontextmanager
async def collecting(clock: Clock, network: Callable[[Transport], Transport] = lambda inner: inner) -> AsyncIterator[Scene]:
    """A scene whose own connection is sound; the collector's goes through `network`."""
    async with api_in_memory(clock) as (client, _), scene(client, "test", CA_PEM) as stage:
        task = asyncio.create_task(run_garbage_collector(Client(network(client.transport), clock), clock))
        try:
            yield stage
        finally:
            task.cancel()
            await asyncio.wait([task])


async def exists(stage: Scene, obj: ConfigMap) -> bool:
    try:
        return (await stage.client.get(ConfigMap, obj.key)).uid == obj.uid
    except NotFound:
        return False


def is_deletion_of(name: str) -> Callable[[Request], bool]:
    return lambda request: request.method == "DELETE" and request.path.endswith(f"/{name}")


async def test_an_object_that_finds_a_new_owner_at_the_last_moment_stays(clock: Clock) -> None:
    stages: list[Scene] = []

    async def adopt(_: Request) -> None:
        [stage] = stages
        owner = await stage.config_map("new-owner")
        references = [msgspec.to_builtins(owner_reference(owner))]
        await stage.client.patch(ConfigMap, stage.key("dependent"), Merge({"metadata": {"ownerReferences": references}}))

    meddlers: list[Meddler] = []

    def network(inner: Transport) -> Transport:
        meddlers.append(Meddler(inner, is_deletion_of("dependent"), adopt))
        return meddlers[0]

    async with collecting(clock, network) as stage:
        stages.append(stage)
        owner = await stage.config_map("owner")
        dependent = await stage.config_map("dependent", [owner_reference(owner)])
        await stage.delete(owner)
        await elapse(LONG_S)
        assert meddlers[0].has_meddled
        assert await exists(stage, dependent)


async def test_an_object_that_took_a_deleted_ones_name_at_the_last_moment_stays(clock: Clock) -> None:
    stages: list[Scene] = []
    made: list[ConfigMap] = []

    async def replace(_: Request) -> None:
        [stage] = stages
        await stage.client.delete(ConfigMap, stage.key("dependent"))
        made.append(await stage.config_map("dependent"))

    async with collecting(clock, lambda inner: Meddler(inner, is_deletion_of("dependent"), replace)) as stage:
        stages.append(stage)
        owner = await stage.config_map("owner")
        await stage.config_map("dependent", [owner_reference(owner)])
        await stage.delete(owner)
        await elapse(LONG_S)
        assert await exists(stage, made[0])


async def test_an_owner_that_appears_after_all_keeps_its_dependent(clock: Clock) -> None:
    """A dependent may be seen before its owner: lists and watches of two kinds are not in step."""
    async with collecting(clock) as stage:
        owner = await stage.config_map("owner")
        dependent = await stage.config_map("dependent", [owner_reference(owner)])
        await elapse(LONG_S)
        assert await exists(stage, dependent)


@pytest.mark.parametrize("outage_s", [1.0, 100.0])
async def test_what_was_deleted_during_an_outage_has_its_consequences_after_it(clock: Clock, outage_s: float) -> None:
    networks: list[FaultyTransport] = []

    def network(inner: Transport) -> Transport:
        networks.append(FaultyTransport(inner))
        return networks[0]

    async with collecting(clock, network) as stage:
        owner, other = await stage.config_map("owner"), await stage.config_map("other")
        dependent = await stage.config_map("dependent", [owner_reference(owner)])
        kept = await stage.config_map("kept", [owner_reference(other)])
        await elapse(LONG_S)
        networks[0].plan = always(Refused())
        networks[0].sever()
        await stage.delete(owner)
        late = await stage.config_map("late", [owner_reference(owner)])
        await elapse(outage_s)
        assert await exists(stage, dependent)
        networks[0].heal()
        await elapse(LONG_S)
        assert [await exists(stage, obj) for obj in (dependent, late, kept)] == [False, False, True]


async def test_a_collector_that_starts_during_an_outage_begins_when_it_is_over(clock: Clock) -> None:
    networks: list[FaultyTransport] = []

    def network(inner: Transport) -> Transport:
        networks.append(FaultyTransport(inner, always(Refused())))
        return networks[0]

    async with collecting(clock, network) as stage:
        owner = await stage.config_map("owner")
        dependent = await stage.config_map("dependent", [owner_reference(owner)])
        await stage.delete(owner)
        await elapse(LONG_S)
        assert await exists(stage, dependent)
        networks[0].heal()
        await elapse(LONG_S)
        assert not await exists(stage, dependent)


async def test_a_reference_to_an_unknown_kind_is_judged_once_the_kind_is_served(clock: Clock) -> None:
    reference = OwnerReference(
        api_version="applecart.test/v1", kind="Thing", name="x", uid="00000000-0000-4000-8000-00000000000a"
    )
    async with collecting(clock) as stage:
        dependent = await stage.config_map("dependent", [reference])
        await elapse(LONG_S)
        assert await exists(stage, dependent)
        await ensure_things(stage)
        await elapse(LONG_S)
        assert not await exists(stage, dependent)


async def test_a_kind_that_is_taken_away_costs_nobody_who_has_another_owner(clock: Clock) -> None:
    async with collecting(clock) as stage:
        await ensure_things(stage)
        thing = await stage.client.create(Thing(metadata=ObjectMeta(name="thing", namespace="test")))
        other = await stage.config_map("other")
        kept = await stage.config_map(
            "kept", [msgspec.structs.replace(owner_reference(thing), controller=None), owner_reference(other)]
        )
        await elapse(LONG_S)
        await stage.client.delete(CustomResourceDefinition, Key("", THINGS))
        await elapse(LONG_S)
        assert await exists(stage, kept)
        owner = await stage.config_map("owner")
        dependent = await stage.config_map("dependent", [owner_reference(owner)])
        await stage.delete(owner)
        await elapse(LONG_S)
        assert not await exists(stage, dependent)


async def test_owners_that_wait_for_each_other_in_a_circle_all_go(clock: Clock) -> None:
    """Kubernetes' own collector leaves these two forever: each is deleted in foreground and blocked by the other."""
    async with collecting(clock) as stage:
        first = await stage.config_map("first")
        second = await stage.config_map("second", [owner_reference(first)])
        back = [msgspec.to_builtins(owner_reference(second))]
        await stage.client.patch(ConfigMap, first.key, Merge({"metadata": {"ownerReferences": back}}))
        await elapse(LONG_S)
        await stage.delete(first, "Foreground")
        await stage.delete(second, "Foreground")
        await elapse(LONG_S)
        assert [await exists(stage, obj) for obj in (first, second)] == [False, False]
