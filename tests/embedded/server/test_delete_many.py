"""Deleting many objects gives others a turn, and is right about what they do with it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.server import gate
from applecart.embedded.server.gate import DELETED_AT_ONCE
from applecart.embedded.server.server import RunningApi
from applecart.kube.transport import Request
from tests.embedded.schema.definition_documents import GROUP, definition, resource
from tests.kube.embedded_api import serving
from tests.virtual_time import elapse

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/ci/configmaps"
MANY = 3 * DELETED_AT_ONCE
TURNS_OF_A_CALL = 3  # in this process: to the server and back, and the end of it
LAST = f"n{MANY - 1:04}"


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock, ["ci"]) as running:
        await asyncio.gather(*(make(running, f"n{number:04}") for number in range(MANY)))
        yield running


async def make(running: RunningApi, name: str) -> None:
    body = json.dumps({"metadata": {"name": name, "labels": {"goes": "yes"}}}).encode()
    assert (await running.transport().send(Request("POST", MAPS, body=body))).status == 201


def names(running: RunningApi) -> list[str]:
    return [record.key.name for record in running.store.table("configmaps").records()]


async def delete_many_while(running: RunningApi, meanwhile: Callable[[], Awaitable[None]]) -> int:
    """Delete what is labelled, and do something else as soon as the first objects are gone."""

    async def once_begun() -> None:
        while len(names(running)) == MANY:  # noqa: ASYNC110 (the first turn after a write, nothing to wait on)
            await asyncio.sleep(0)
        assert len(names(running)) >= MANY / 2
        await meanwhile()

    other = asyncio.create_task(once_begun())
    answer = await running.transport().send(Request("DELETE", MAPS, (("labelSelector", "goes=yes"),)))
    await other
    return answer.status


async def test_others_get_a_turn_after_every_few_objects(running: RunningApi) -> None:
    """Deleting 20,000 objects held everybody up for a second."""
    left: list[int] = []

    async def look() -> None:
        while names(running):
            left.append(len(names(running)))
            await asyncio.sleep(0)

    assert await delete_many_while(running, look) == 200
    steps = [before - after for before, after in zip([MANY, *left], [*left, 0], strict=True)]
    assert max(steps) <= DELETED_AT_ONCE


async def test_others_get_a_turn_after_every_few_bytes(running: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "DELETED_BYTES_AT_ONCE", 3 * running.store.table("configmaps").records()[0].size_bytes)
    left: list[int] = []

    async def look() -> None:
        while names(running):
            left.append(len(names(running)))
            await asyncio.sleep(0)

    deleting = asyncio.create_task(running.transport().send(Request("DELETE", MAPS)))
    await look()
    assert (await deleting).status == 200
    assert max(before - after for before, after in zip(left, [*left[1:], 0], strict=True)) <= 3


async def test_others_get_a_turn_also_when_nothing_is_left_to_do(running: RunningApi) -> None:
    """What waits for its finalizers already is not written again, so there is nothing to wait for."""
    body = msgspec.json.encode({"metadata": {"finalizers": ["a/b"]}})
    merge = "application/merge-patch+json"
    paths = (f"{MAPS}/{name}" for name in names(running))
    await asyncio.gather(*(running.transport().send(Request("PATCH", path, body=body, content_type=merge)) for path in paths))
    assert (await running.transport().send(Request("DELETE", MAPS))).status == 200
    deleting = asyncio.create_task(running.transport().send(Request("DELETE", MAPS)))
    turns = 0
    while not deleting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= TURNS_OF_A_CALL + MANY // DELETED_AT_ONCE


async def test_the_objects_of_a_deleted_definition_go_in_as_small_steps(clock: Clock) -> None:
    async with serving(clock, ()) as running:
        transport = running.transport()
        body = msgspec.json.encode(definition("scales", {"type": "object"}))
        assert (await transport.send(Request("POST", DEFINITIONS, body=body))).status == 201
        bodies = (msgspec.json.encode(resource("scales", f"n{number}")) for number in range(MANY))
        made = await asyncio.gather(*(transport.send(Request("POST", f"/apis/{GROUP}/v1/scales", body=one)) for one in bodies))
        assert {answer.status for answer in made} == {201}
        table, left = running.store.table(f"scales.{GROUP}"), [MANY]
        assert (await transport.send(Request("DELETE", f"{DEFINITIONS}/scales.{GROUP}"))).status == 200
        while len(table):
            left.append(len(table))
            await asyncio.sleep(0)
        assert max(before - after for before, after in zip(left, [*left[1:], 0], strict=True)) <= DELETED_AT_ONCE
        await elapse(5)
        assert (await transport.send(Request("GET", f"{DEFINITIONS}/scales.{GROUP}"))).status == 404


async def test_what_is_made_again_under_the_same_name_stays(running: RunningApi) -> None:
    async def replace() -> None:
        await running.transport().send(Request("DELETE", f"{MAPS}/{LAST}"))
        await make(running, LAST)

    assert await delete_many_while(running, replace) == 200
    assert names(running) == [LAST]


async def test_what_is_no_longer_chosen_stays_and_what_is_gone_already_is_no_error(running: RunningApi) -> None:
    async def change() -> None:
        body = b'{"metadata":{"labels":{"goes":"no"}}}'
        merge = "application/merge-patch+json"
        await running.transport().send(Request("PATCH", f"{MAPS}/{LAST}", body=body, content_type=merge))
        await running.transport().send(Request("DELETE", f"{MAPS}/n{MANY - 2:04}"))

    assert await delete_many_while(running, change) == 200
    assert names(running) == [LAST]
