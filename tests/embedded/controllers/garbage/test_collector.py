"""Whether an owner is there, and the collector at work on the embedded API in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.core import ConfigMap
from applecart.api.finalizers import FOREGROUND_DELETION
from applecart.api.meta import Key, ObjectMeta, OwnerReference, Resource
from applecart.api.rbac import ClusterRole
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.collector import (
    REMEMBERED_ABSENTEES,
    Collector,
    Owners,
    Unserved,
    WrongScope,
)
from applecart.embedded.controllers.garbage.decide import OwnerState
from applecart.embedded.controllers.garbage.graph import Graph
from applecart.kube.client import Client
from applecart.kube.discovery import discover
from applecart.kube.errors import NotFound
from applecart.kube.metadata_only import MetadataClient
from applecart.kube.owners import owner_reference
from applecart.kube.patch import Merge
from applecart.kube.transport import Request, Transport
from tests.embedded.controllers.garbage.owned import CLUSTER_ROLES, owned, refers_to
from tests.embedded.controllers.garbage.scenarios import THINGS, Thing, ensure_things
from tests.embedded.controllers.meddling import Meddler
from tests.embedded.controllers.scene import Scene, scene
from tests.embedded.controllers.stages import CA_PEM, api_in_memory, run_alone
from tests.kube.faults import FaultyTransport, Refused, always
from tests.virtual_time import elapse

NAMESPACE = "default"

LONG_S = 300.0  # beyond every backoff


class Asked:
    """Owners on the API in memory, and how often the API was asked."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.network = FaultyTransport(client.transport)
        self.graph = Graph()
        self.owners = Owners(MetadataClient(self.network, clock), self.graph)

    @property
    def questions(self) -> int:
        return len(self.network.calls)

    async def config_map(self, name: str) -> ConfigMap:
        return await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=NAMESPACE)))


@pytest.fixture
async def asked(clock: Clock) -> AsyncIterator[Asked]:
    async with api_in_memory(clock) as (client, _):
        made = Asked(client, clock)
        made.owners.discovery = await discover(client)
        yield made


async def test_an_owner_that_was_seen_is_not_asked_for(asked: Asked) -> None:
    asked.graph.observe(owned("a"))
    asked.graph.observe(owned("b", finalizers=[FOREGROUND_DELETION], is_deleted=True))
    assert await asked.owners.standing(refers_to("a"), owned("x")) == (OwnerState.SOLID, True)
    assert await asked.owners.standing(refers_to("b"), owned("x")) == (OwnerState.WAITING, True)
    assert asked.questions == 0


async def test_an_owner_that_was_not_seen_is_asked_for_and_its_end_will_not_be_told(asked: Asked) -> None:
    owner = await asked.config_map("late")
    standing = await asked.owners.standing(owner_reference(owner), owned("x", namespace=NAMESPACE))
    assert standing == (OwnerState.SOLID, False)
    assert asked.questions == 1


async def test_an_absent_owner_is_asked_for_once(asked: Asked) -> None:
    for name in "xyz":
        assert await asked.owners.standing(refers_to("gone"), owned(name)) == (OwnerState.DANGLING, True)
    assert asked.questions == 1


async def test_a_namespace_without_the_owner_says_nothing_about_another(asked: Asked) -> None:
    owner = await asked.config_map("here")
    reference = owner_reference(owner)
    assert (await asked.owners.standing(reference, owned("x", namespace="elsewhere")))[0] is OwnerState.DANGLING
    assert (await asked.owners.standing(reference, owned("y", namespace=NAMESPACE)))[0] is OwnerState.SOLID


async def test_another_uid_under_the_owners_name_is_not_the_owner(asked: Asked) -> None:
    owner = await asked.config_map("owner")
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name=owner.name, uid="other")
    assert (await asked.owners.standing(reference, owned("x", namespace=NAMESPACE)))[0] is OwnerState.DANGLING


async def test_an_owner_of_the_cluster_is_asked_for_there(asked: Asked) -> None:
    role = await asked.client.create(ClusterRole(metadata=ObjectMeta(name="role")))
    assert (await asked.owners.standing(owner_reference(role), owned("x")))[0] is OwnerState.SOLID


@pytest.mark.parametrize(("api_version", "kind"), [("nobody.test/v1", "Ghost"), ("v2", "ConfigMap"), ("v1", "Configmap")])
async def test_a_kind_that_is_not_served_cannot_be_judged(asked: Asked, api_version: str, kind: str) -> None:
    reference = OwnerReference(api_version=api_version, kind=kind, name="x", uid="u")
    with pytest.raises(Unserved, match="does not serve"):
        await asked.owners.standing(reference, owned("x"))
    assert asked.questions == 0


async def test_an_object_of_the_cluster_cannot_be_owned_from_a_namespace(asked: Asked) -> None:
    with pytest.raises(WrongScope):
        await asked.owners.standing(refers_to("a"), owned("x", resource=CLUSTER_ROLES))


async def test_an_owner_seen_in_another_namespace_is_elsewhere(asked: Asked) -> None:
    asked.graph.observe(owned("a", namespace="far"))
    asked.graph.observe(owned("r", resource=CLUSTER_ROLES))
    assert asked.owners.is_elsewhere(refers_to("a"), owned("x"))
    assert not asked.owners.is_elsewhere(refers_to("a"), owned("x", namespace="far"))
    assert not asked.owners.is_elsewhere(refers_to("r", resource=CLUSTER_ROLES), owned("x"))
    assert not asked.owners.is_elsewhere(refers_to("nobody"), owned("x"))


async def test_absentees_are_forgotten_before_they_fill_the_memory(asked: Asked) -> None:
    secrets = Resource("", "v1", "Secret", "secrets")
    for number in range(REMEMBERED_ABSENTEES + 1):
        await asked.owners.standing(refers_to(str(number), resource=secrets), owned("x"))
    before = asked.questions
    await asked.owners.standing(refers_to("1", resource=secrets), owned("x"))
    assert asked.questions == before
    await asked.owners.standing(refers_to("0", resource=secrets), owned("x"))
    assert asked.questions == before + 1


@asynccontextmanager
async def collecting(clock: Clock, network: Callable[[Transport], Transport] = lambda inner: inner) -> AsyncIterator[Scene]:
    """A scene whose own connection is sound; the collector's goes through `network`."""
    async with api_in_memory(clock) as (client, _), scene(client, "test", CA_PEM) as stage:
        task = asyncio.create_task(run_alone(Collector, Client(network(client.transport), clock)))
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
