"""What every namespace has, and what it never costs."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from applecart.api.core import ConfigMap, Namespace, ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.controllers.namespaces.belongings import (
    CA_KEY,
    DESCRIBED,
    DESCRIPTION,
    Belongings,
    mended_root_ca,
    root_ca,
)
from applecart.embedded.controllers.namespaces.ending import Ending
from applecart.kube.client import Client
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from tests.embedded.controllers.stages import CA_PEM, api_in_memory, run_alone
from tests.kube.faults import FaultyTransport
from tests.virtual_time import elapse

CA = CA_PEM.decode()


@pytest.mark.parametrize(
    ("data", "annotations", "expected"),
    [
        ({CA_KEY: CA}, {DESCRIPTION: DESCRIBED}, None),
        ({CA_KEY: CA}, {DESCRIPTION: "words of another minor"}, None),
        ({CA_KEY: CA}, {}, {CA_KEY: CA}),
        ({CA_KEY: "old"}, {DESCRIPTION: DESCRIBED}, {CA_KEY: CA}),
        ({CA_KEY: CA, "x": "y"}, {DESCRIPTION: DESCRIBED}, {CA_KEY: CA, "x": None}),
        ({}, {}, {CA_KEY: CA}),
    ],
    ids=["right", "another text", "no text", "an old CA", "something else", "empty"],
)
def test_a_root_ca_is_set_right(data: dict[str, str], annotations: dict[str, str], expected: dict[str, str | None]) -> None:
    change = mended_root_ca(ConfigMap(metadata=ObjectMeta(annotations=annotations), data=data), CA)
    wanted = {"metadata": {"annotations": {DESCRIPTION: DESCRIBED}}, "data": expected} if expected else {}
    assert change == wanted


def test_a_new_root_ca_is_right() -> None:
    assert mended_root_ca(root_ca("ci", CA), CA) == {}


def add_both(manager: Manager, ca_pem: bytes) -> None:
    Belongings(manager, ca_pem)
    Ending(manager)


@pytest.fixture
async def network(clock: Clock) -> AsyncIterator[tuple[Client, FaultyTransport]]:
    async with api_in_memory(clock) as (client, _):
        watched = FaultyTransport(client.transport)
        task = asyncio.create_task(run_alone(add_both, Client(watched, clock), CA_PEM))
        yield client, watched
        task.cancel()
        await asyncio.wait([task])


def writes(network: FaultyTransport) -> list[str]:
    return [str(call) for call in network.calls if call.method != "GET"]


async def test_namespaces_that_have_everything_cost_no_write(network: tuple[Client, FaultyTransport]) -> None:
    client, watched = network
    await elapse(60)
    assert len(writes(watched)) == 2 * len(await client.list(Namespace))
    watched.calls.clear()
    await client.patch(Namespace, Key("", "default"), Merge({"metadata": {"labels": {"a": "b"}}}))
    await elapse(60)
    assert writes(watched) == []


async def test_what_people_write_into_the_account_is_theirs(network: tuple[Client, FaultyTransport]) -> None:
    client, _ = network
    await elapse(60)
    key = Key("default", "default")
    await client.patch(ServiceAccount, key, Merge({"automountServiceAccountToken": False}))
    await elapse(60)
    assert (await client.get(ServiceAccount, key)).automount_service_account_token is False


async def test_a_namespace_that_goes_gets_nothing_back(network: tuple[Client, FaultyTransport]) -> None:
    client, watched = network
    await client.create(Namespace(metadata=ObjectMeta(name="going")))
    await elapse(60)
    held = ConfigMap(metadata=ObjectMeta(name="held", namespace="going", finalizers=("x.test/hold",)))
    await client.create(held)
    watched.calls.clear()
    await client.delete(Namespace, Key("", "going"))
    await elapse(600)
    assert not [call for call in watched.calls if call.method == "POST"]
    assert await client.list(ServiceAccount, "going") == []
