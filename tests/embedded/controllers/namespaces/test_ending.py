"""The end of a namespace behind failing servers and networks: late, but never too early."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from applecart.api.core import ConfigMap, Namespace, Secret
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.controllers.namespaces.conditions import Survey
from applecart.embedded.controllers.namespaces.ending import finalizers_of, status_after
from applecart.embedded.controllers.namespaces.run import run_namespaces
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.transport import Request
from tests.embedded.controllers.namespaces.scenarios import ConditionedNamespace
from tests.embedded.controllers.stages import CA_PEM, api_in_memory
from tests.kube.faults import Fault, FaultyTransport, Lost, Refused, Says, always
from tests.virtual_time import elapse

LONG_S = 600.0
GOING = Key("", "going")


class Ended:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.network = FaultyTransport(client.transport)

    async def make(self) -> Namespace:
        made = await self.client.create(Namespace(metadata=ObjectMeta(name=GOING.name)))
        for kind in (ConfigMap, Secret):
            await self.client.create(kind(metadata=ObjectMeta(name="a", namespace=GOING.name)))
        return made

    async def is_there(self) -> bool:
        try:
            await self.client.get(Namespace, GOING)
        except NotFound:
            return False
        return True

    async def says(self, type: str) -> tuple[str, str, str]:
        return (await self.client.get(ConditionedNamespace, GOING)).says(type)


@pytest.fixture
async def ended(clock: Clock) -> AsyncIterator[Ended]:
    async with api_in_memory(clock) as (client, _):
        made = Ended(client)
        task = asyncio.create_task(run_namespaces(Client(made.network, clock), clock, CA_PEM))
        yield made
        task.cancel()
        await asyncio.wait([task])


async def test_a_kind_that_refuses_keeps_the_namespace_and_says_so(ended: Ended) -> None:
    def refuse_secrets(request: Request) -> Fault | None:
        return Says(403) if request.method == "DELETE" and request.path.endswith("/secrets") else None

    await ended.make()
    ended.network.plan = refuse_secrets
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    assert await ended.is_there()
    status, reason, message = await ended.says("NamespaceDeletionContentFailure")
    assert (status, reason) == ("True", "ContentDeletionFailed")
    assert message.startswith("Failed to delete all resource types, 1 remaining: DELETE ")
    ended.network.heal()
    await elapse(LONG_S)
    assert not await ended.is_there()


@pytest.mark.parametrize("fault", [Refused(), Lost(), Says(500), Says(409), Says(429, 1)], ids=repr)
async def test_an_outage_only_delays_the_end(ended: Ended, fault: Fault) -> None:
    await ended.make()
    ended.network.plan = always(fault)
    ended.network.sever()
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    ended.network.heal()
    await elapse(LONG_S)
    assert not await ended.is_there()


async def test_a_namespace_that_lives_is_never_emptied(ended: Ended) -> None:
    await ended.make()
    await elapse(LONG_S)
    assert [obj.name for obj in await ended.client.list(Secret, GOING.name)] == ["a"]
    assert not [call for call in ended.network.calls if call.method == "DELETE"]


async def test_a_namespace_made_again_under_the_same_name_is_another_one(ended: Ended) -> None:
    await ended.make()
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    again = await ended.make()
    await elapse(LONG_S)
    assert (await ended.client.get(Namespace, GOING)).uid == again.uid
    assert [obj.name for obj in await ended.client.list(Secret, GOING.name)] == ["a"]


async def test_a_stuck_namespace_is_looked_at_ever_less_often(ended: Ended) -> None:
    await ended.make()
    await ended.client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=GOING.name, finalizers=("x.test/hold",))))
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    rounds = sum(call.path == "/apis" for call in ended.network.calls)
    assert LONG_S / 10 <= rounds < LONG_S / 4


def test_the_status_keeps_what_it_does_not_know(clock: Clock) -> None:
    status = status_after({"phase": "Active", "future": 1}, Survey(), clock.now())
    assert (status["phase"], status["future"], len(status["conditions"])) == ("Terminating", 1, 5)


@pytest.mark.parametrize("document", [{}, {"spec": None}, {"spec": {}}, {"spec": {"finalizers": None}}])
def test_a_namespace_without_finalizers(document: dict[str, object]) -> None:
    assert finalizers_of(document) == []
