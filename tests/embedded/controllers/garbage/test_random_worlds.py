"""Random worlds of owners on the API in memory: whatever is deleted, what is left is what the model says.

Also behind a network that fails all the time: a fault may delay the collector, never mislead it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from applecart.api.core import ConfigMap, Namespace
from applecart.api.meta import Key, ObjectMeta, OwnerReference
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.collector import Collector
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.garbage.model import GHOST, Model, random_owners
from tests.embedded.controllers.stages import api_in_memory, run_alone
from tests.kube.faults import Cut, Fault, FaultyTransport, Lost, Plan, Refused, Says
from tests.soak import seeds
from tests.virtual_time import elapse

WORLDS = 15
OBJECTS = 8
STEPS = 4
SETTLED_AFTER_S = 20.0
HEALED_AFTER_S = 600.0  # beyond the longest backoff of a collector that failed many times in a row
TROUBLED_S = 30.0
GHOST_UID = "00000000-0000-4000-8000-00000000dead"
PROPAGATIONS = ("Background", "Background", "Foreground", "Orphan")


class World:
    """Objects in a namespace, and the model of them."""

    def __init__(self, client: Client, namespace: str, chance: Random) -> None:
        self.client = client
        self.namespace = namespace
        self.chance = chance
        self.told = [f"{namespace}:"]

    async def build(self) -> None:
        await self.client.create(Namespace(metadata=ObjectMeta(name=self.namespace)))
        owners = random_owners(self.chance, OBJECTS)
        self.told.append(str(owners))
        uids = {GHOST: GHOST_UID}
        for name in owners:
            made = await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=self.namespace)))
            uids[name] = made.uid
        for name, named in owners.items():
            references = [self._reference(owner, uids[owner]) for owner in sorted(named)]
            await self.client.patch(
                ConfigMap, Key(self.namespace, name), Merge({"metadata": {"ownerReferences": references or None}})
            )
        self.owners = owners

    def _reference(self, owner: str, uid: str) -> OwnerReference:
        blocks = self.chance.choice([None, True, False])
        return OwnerReference(api_version="v1", kind="ConfigMap", name=owner, uid=uid, block_owner_deletion=blocks)

    def begin(self) -> None:
        self.model = Model(self.owners)

    async def step(self) -> None:
        if not self.model.owners:
            return
        name, propagation = self.chance.choice(sorted(self.model.owners)), self.chance.choice(PROPAGATIONS)
        self.told.append(f"delete {name} {propagation}")
        self.model.delete(name, propagation)
        await self.client.delete(ConfigMap, Key(self.namespace, name), propagation=propagation)

    async def check(self) -> None:
        left = await self.client.list(ConfigMap, self.namespace)
        found = {obj.name: {reference.name for reference in obj.metadata.owner_references} for obj in left}
        assert found == self.model.owners, self.told


@asynccontextmanager
async def collected(client: Client, clock: Clock) -> AsyncIterator[None]:
    task = asyncio.create_task(run_alone(Collector, client))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def play(
    client: Client, seed: int, settle_s: float, network: FaultyTransport, clock: Clock, trouble: Random | None
) -> None:
    worlds = [World(client, f"world-{number}", Random(f"{seed}-{number}")) for number in range(WORLDS)]
    for world in worlds:
        await world.build()
        world.begin()
    async with collected(Client(network, clock), clock):
        for _ in range(STEPS + 1):
            await elapse(settle_s)
            for world in worlds:
                await world.check()
            for world in worlds:
                await world.step()
            if trouble is not None:
                network.plan = faults(trouble)
                network.sever()
                await elapse(TROUBLED_S)
                network.heal()


def faults(chance: Random) -> Plan:
    def plan(request: Request) -> Fault | None:
        return chance.choice([None, None, Refused(), Lost(), Says(500), Says(409), Says(429, 1), Cut(chance.randrange(400))])

    return plan


@pytest.mark.parametrize("seed", seeds(2, soak=50))
async def test_what_is_left_is_what_the_model_says(seed: int, clock: Clock) -> None:
    async with api_in_memory(clock) as (client, _):
        await play(client, seed, SETTLED_AFTER_S, FaultyTransport(client.transport), clock, None)


@pytest.mark.parametrize("seed", seeds(2, soak=50))
async def test_a_failing_network_changes_nothing_of_it(seed: int, clock: Clock) -> None:
    async with api_in_memory(clock) as (client, _):
        await play(client, seed, HEALED_AFTER_S, FaultyTransport(client.transport), clock, Random(seed))
