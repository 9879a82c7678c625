"""The way into the API without a socket behaves like a network that loses nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.embedded.auth.user import AUTHENTICATED, User
from applecart.embedded.server.server import RunningApi, running_api
from applecart.embedded.store.record import Change, LogEntry
from applecart.errors import DeadlineExceeded, Unreachable
from applecart.kube.client import Client
from applecart.kube.transport import Request, Response
from tests.embedded.memory_log import MemoryLog
from tests.kube.embedded_api import serving, token_keys
from tests.kube.objects import config_map
from tests.virtual_time import elapse

MAPS = "/api/v1/namespaces/ci/configmaps"
WATCH = Request("GET", MAPS, (("watch", "1"),))


class StuckLog(MemoryLog):
    """A disk that takes its time, when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stuck = False
        self._held: list[LogEntry] = []

    def submit(self, entry: LogEntry) -> None:
        if self.is_stuck:
            self._held.append(entry)
        else:
            super().submit(entry)

    def go_on(self) -> None:
        self.is_stuck = False
        held, self._held = self._held, []
        for entry in held:
            self.submit(entry)


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock, ["ci"]) as running:
        yield running


@pytest.fixture
def log() -> StuckLog:
    return StuckLog()


@pytest.fixture
async def slow(log: StuckLog, clock: Clock) -> AsyncIterator[RunningApi]:
    """A server whose disk can be made to wait."""
    async with running_api(log, clock, token_keys()) as running:
        await running.transport().send(Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"ci"}}'))
        yield running
        log.go_on()


def posted(name: str, **parts: Any) -> Request:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **parts}
    return Request("POST", MAPS, body=json.dumps(body).encode(), deadline_s=5.0)


def names(running: RunningApi) -> list[str]:
    return [record.key.name for record in running.store.table("configmaps").records()]


def events(chunk: bytes) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in chunk.splitlines()]
    return [(line["type"], line["object"]["metadata"]["name"]) for line in lines]


# Calls


async def test_others_get_a_turn_while_a_request_and_its_answer_are_on_their_way(running: RunningApi) -> None:
    story: list[str] = []
    loop = asyncio.get_running_loop()

    def committed(_: Change) -> None:
        loop.call_soon(story.append, "after the commit")

    running.store.on_commit("configmaps", committed)
    loop.call_soon(lambda: story.append(f"before the call {names(running)}"))
    await running.transport().send(posted("a"))
    story.append("answered")
    assert story == ["before the call []", "after the commit", "answered"]


async def test_a_call_that_is_not_answered_ends_at_its_deadline_and_is_done_all_the_same(
    slow: RunningApi, log: StuckLog, clock: Clock
) -> None:
    log.is_stuck = True
    started_s = clock.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"POST .*: no answer within 5 s"):
        await slow.transport().send(posted("a"))
    assert clock.monotonic() - started_s == pytest.approx(5)
    log.go_on()
    await elapse(1)
    assert names(slow) == ["a"]


async def test_a_caller_that_goes_away_takes_nothing_back(slow: RunningApi, log: StuckLog) -> None:
    log.is_stuck = True
    call = asyncio.create_task(slow.transport().send(posted("a")))
    await elapse(1)
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    log.go_on()
    await elapse(1)
    assert names(slow) == ["a"]


async def test_closing_ends_the_calls_under_way_and_refuses_later_ones(slow: RunningApi, log: StuckLog) -> None:
    log.is_stuck = True
    transport = slow.transport()
    calls = [asyncio.create_task(transport.send(posted(name))) for name in "abc"]
    await elapse(1)
    await transport.aclose()
    assert [type(outcome) for outcome in await asyncio.gather(*calls, return_exceptions=True)] == [Unreachable] * 3
    for later in (transport.send(posted("d")), transport.open(WATCH)):
        with pytest.raises(Unreachable):
            await later
    await transport.aclose()


async def test_closing_one_connection_leaves_the_others(running: RunningApi) -> None:
    one, other = running.transport(), running.transport()
    stream = await other.open(WATCH)
    await one.aclose()
    assert (await other.send(posted("a"))).status == 201
    assert events(await stream.read()) == [("ADDED", "a")]
    await stream.aclose()


async def test_a_path_arrives_decoded_as_over_http(running: RunningApi) -> None:
    await running.transport().send(posted("a.b"))
    assert (await running.transport().send(Request("GET", f"{MAPS}/%61%2Eb"))).status == 200


async def test_a_body_beyond_the_limit_is_refused_as_over_http(running: RunningApi) -> None:
    response = await running.transport().send(posted("a", data={"big": "x" * (3 << 20)}))
    assert (response.status, json.loads(response.body)["reason"]) == (413, "RequestEntityTooLarge")


async def test_headers_are_those_that_http_would_carry(running: RunningApi) -> None:
    response = await running.transport().send(posted("a", strange=1, stranger=2))
    assert response.headers["content-type"] == "application/json"
    assert response.headers["warning"] == '299 - "unknown field \\"strange\\"", 299 - "unknown field \\"stranger\\""'


async def test_everybody_calls_as_who_they_are(running: RunningApi) -> None:
    response = await running.transport(User("stranger", (AUTHENTICATED,))).send(Request("GET", MAPS))
    assert response.status == 403
    assert 'User "stranger" cannot list resource "configmaps"' in json.loads(response.body)["message"]


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", ""),
        Request("GET", "/%"),
        Request("GET", "/api/v1/namespaces/%00/%ff"),
        Request("", MAPS),
        Request("POST", MAPS, body=b"\xff" * 100),
        Request("POST", MAPS, body=b"[" * 100_000),
        Request("PATCH", f"{MAPS}/a", body=b"{}", content_type=""),
        Request("GET", MAPS, (("limit", "x"), ("limit", "1"))),
        Request("GET", MAPS, accept="nonsense"),
    ],
    ids=repr,
)
async def test_what_nobody_should_send_is_answered_and_is_no_fault(running: RunningApi, request_: Request) -> None:
    assert 400 <= (await running.transport().send(request_)).status < 500


# Streams


async def test_a_stream_that_the_server_ended_stays_at_its_end(running: RunningApi, clock: Clock) -> None:
    stream = await running.transport().open(Request("GET", MAPS, (("watch", "1"), ("timeoutSeconds", "7"))))
    assert [await stream.read(), await stream.read()] == [b"", b""]
    assert clock.monotonic() == pytest.approx(7)


async def test_an_answer_that_is_no_watch_can_be_read_as_a_stream(running: RunningApi) -> None:
    stream = await running.transport().open(Request("GET", f"{MAPS}/nowhere"))
    assert stream.status == 404
    body = b""
    while chunk := await stream.read():
        body += chunk
    assert json.loads(body)["reason"] == "NotFound"
    await stream.aclose()
    await stream.aclose()


async def test_closing_cuts_the_streams_that_are_open(running: RunningApi) -> None:
    transport = running.transport()
    read_now, read_later = await transport.open(WATCH), await transport.open(WATCH)
    reading = asyncio.create_task(read_now.read())
    await elapse(1)
    await transport.aclose()
    for read in (reading, read_now.read(), read_later.read()):
        with pytest.raises(Unreachable):
            await read
    for stream in (read_now, read_later):
        await stream.aclose()


async def test_a_stream_given_up_by_its_reader_tells_who_still_reads(running: RunningApi) -> None:
    stream = await running.transport().open(WATCH)
    reading = asyncio.create_task(stream.read())
    await elapse(1)
    await stream.aclose()
    with pytest.raises(Unreachable):
        await reading


async def test_a_closed_watch_costs_the_server_nothing_more(running: RunningApi) -> None:
    transport = running.transport()
    table = running.store.table("configmaps")
    stream = await transport.open(WATCH)
    reading = asyncio.create_task(stream.read())
    await elapse(1)
    assert len(table._watchers_of) == 1
    await stream.aclose()
    await asyncio.wait({reading})
    assert isinstance(reading.exception(), Unreachable)
    assert len(table._watchers_of) == 0


async def test_a_server_that_stops_ends_its_watches(clock: Clock) -> None:
    async with serving(clock, ["ci"]) as running:
        stream = await running.transport().open(WATCH)
        reading = asyncio.create_task(stream.read())
        await elapse(1)
    assert await reading == b""


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 3), min_size=1, max_size=20), st.lists(st.floats(0, 2), max_size=10))
def test_reads_that_are_given_up_lose_nothing(patiences_s: list[float], rests_s: list[float]) -> None:
    async def scenario() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        async with serving(clock, ["ci"]) as running:
            stream = await running.transport().open(WATCH)
            client = Client(running.transport(), clock)

            async def write() -> None:
                for number, rest_s in enumerate(rests_s):
                    await elapse(rest_s)
                    await client.create(config_map("ci", f"n-{number}"))

            writing = asyncio.create_task(write())
            heard: list[tuple[str, str]] = []
            for patience_s in patiences_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience_s):
                        heard += events(await stream.read())
            await writing
            while len(heard) < len(rests_s):
                heard += events(await stream.read())
            assert heard == [("ADDED", f"n-{number}") for number in range(len(rests_s))]
            await stream.aclose()

    run_virtual(scenario())


async def test_the_answer_of_a_write_and_its_event_agree(running: RunningApi) -> None:
    transport = running.transport()
    stream = await transport.open(WATCH)
    answered: Response = await transport.send(posted("a", data={"colour": "green"}))
    seen = json.loads(await stream.read())["object"]
    assert seen == json.loads(answered.body)
    assert (await Client(transport, VirtualClock(asyncio.get_running_loop())).list(ConfigMap, "ci"))[0].name == "a"
    await stream.aclose()
