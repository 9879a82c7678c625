"""Who hears of a change, in which order, and when a watch is over."""

import asyncio
import contextlib
import gc
import json
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock, SystemClock
from applecart.embedded.server import listing, watching
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.store import store
from applecart.embedded.store.table import RING_BYTES, Watcher
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.transport import Request, Stream
from tests.kube.embedded_api import serving
from tests.kube.objects import config_map
from tests.virtual_time import elapse

MAPS = "/api/v1/namespaces/ci/configmaps"


async def test_watchers_hear_of_a_change_in_the_order_in_which_they_began(clock: Clock) -> None:
    """A fleet on virtual time is the same run for the same seed only if nothing follows memory addresses."""
    async with serving(clock, ["ci"]) as running:
        transport, heard = running.transport(), []

        async def follow(number: int) -> None:
            stream = await transport.open(Request("GET", MAPS, (("watch", "1"),)))
            await stream.read()
            heard.append(number)
            await stream.aclose()

        followers = [asyncio.create_task(follow(number)) for number in range(12)]
        await elapse(1)
        await Client(transport, clock).create(config_map("ci", "a"))
        await asyncio.gather(*followers)
        assert heard == list(range(12))


async def test_some_have_heard_of_a_change_before_the_last_of_many_is_woken(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were told in one turn of the loop, however many they were and whatever they select."""
    monkeypatch.setattr(store, "WOKEN_AT_ONCE", 3)
    happened, flush = [], Watcher.flush

    def noted(watcher: Watcher) -> None:
        happened.append("woken")
        flush(watcher)

    async with serving(clock, ["ci"]) as running:
        transport = running.transport()
        streams = [await transport.open(Request("GET", MAPS, (("watch", "1"),))) for _ in range(12)]

        async def follow(stream: Stream) -> None:
            await stream.read()
            happened.append("heard")
            await stream.aclose()

        followers = [asyncio.create_task(follow(stream)) for stream in streams]
        await elapse(1)
        monkeypatch.setattr(Watcher, "flush", noted)
        await Client(transport, clock).create(config_map("ci", "a"))
        await asyncio.gather(*followers)
    of_these = "".join(one[0] for one in happened)
    assert of_these.index("h") < of_these.rindex("w")
    assert of_these.count("h") == 12


async def test_a_watch_from_a_later_revision_hears_only_what_comes_after_it(clock: Clock) -> None:
    """As after a restore: the reader has seen revisions that the store gives out only now."""
    async with serving(clock, ["ci"]) as running:
        transport = running.transport()
        query = (("watch", "1"), ("resourceVersion", str(running.store.revision + 3)), ("timeoutSeconds", "5"))
        stream = await transport.open(Request("GET", MAPS, query))
        reading = asyncio.create_task(stream.read())
        await elapse(1)
        for number in range(1, 6):
            await Client(transport, clock).create(config_map("ci", f"n-{number}"))
        lines = (await reading).splitlines()
        while chunk := await stream.read():
            lines += chunk.splitlines()
        assert [json.loads(line)["object"]["metadata"]["name"] for line in lines] == ["n-4", "n-5"]


@pytest.mark.real_time
async def test_a_watch_whose_reader_went_away_is_over(tmp_path: Path) -> None:
    clock = SystemClock()
    async with EmbeddedServer(tmp_path, clock) as server:
        table = server.running.store.table("configmaps")
        is_over = asyncio.Event()
        end = table.unwatch

        def noted(watcher: Watcher) -> None:
            end(watcher)
            is_over.set()

        table.unwatch = noted  # type: ignore[method-assign]
        client = Client(connect(str(server.folder.admin_kubeconfig), None, clock, environ={}), clock)
        stream = await client.open(Request("GET", "/api/v1/configmaps", (("watch", "1"),)))
        await stream.aclose()
        await client.aclose()
        async with asyncio.timeout(30):
            await is_over.wait()


@pytest.mark.real_time
async def test_a_server_that_stops_ends_its_watches_properly(tmp_path: Path) -> None:
    clock = SystemClock()
    async with EmbeddedServer(tmp_path, clock) as server:
        client = Client(connect(str(server.folder.admin_kubeconfig), None, clock, environ={}), clock)
        stream = await client.open(Request("GET", "/api/v1/configmaps", (("watch", "1"),)))
        reading = asyncio.create_task(stream.read())
    assert await reading == b""
    await client.aclose()


async def test_others_get_a_turn_while_a_watch_looks_for_what_it_selects(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """All objects were held against the selector at once: 4,800 of them against 6,000 requirements for more than a second."""
    monkeypatch.setattr(watching, "INITIAL_SLICE", 1)
    async with serving(clock, ["ci"]) as running:
        transport = running.transport()
        for number in range(20):
            await Client(transport, clock).create(config_map("ci", f"n-{number:02}"))
        query = (("watch", "1"), ("fieldSelector", "metadata.name=n-19"))
        stream = await transport.open(Request("GET", MAPS, query))
        reading = asyncio.create_task(stream.read())
        turns = 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        await stream.aclose()
        assert [json.loads(line)["object"]["metadata"]["name"] for line in (await reading).splitlines()] == ["n-19"]
        assert turns > 19


async def test_what_leaves_a_selection_is_told_once_for_all_and_a_slice_at_a_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 20 readers that resumed was made 40 MB at once, because the changes themselves are small."""
    monkeypatch.setattr(listing, "SLICE_BYTES", 1000)
    async with serving(clock, ["ci"]) as running:
        transport, client = running.transport(), Client(running.transport(), clock)
        for number in range(6):
            await client.create(config_map("ci", f"n-{number}", labels={"large": "y"}, a="x" * 600))
        before = running.store.revision
        for number in range(6):
            small = json.dumps({"metadata": {"name": f"n-{number}"}}).encode()
            assert (await transport.send(Request("PUT", f"{MAPS}/n-{number}", body=small))).status == 200
        query = (("watch", "1"), ("labelSelector", "large"), ("resourceVersion", str(before)))
        heard = []
        for _ in range(2):
            stream = await transport.open(Request("GET", MAPS, query))
            heard.append([await stream.read() for _ in range(6)])
            await stream.aclose()
        for number, (line, again) in enumerate(zip(*heard, strict=True)):
            event = json.loads(line)
            assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", f"n-{number}")
            assert event["object"]["metadata"]["resourceVersion"] == str(before + 1 + number)
            assert event["object"]["data"] == {"a": "x" * 600}
            assert line is again


@pytest.mark.real_time
async def test_a_watch_to_which_nothing_happens_keeps_nothing_in_memory(tmp_path: Path) -> None:
    """Each kept what it had begun with and what it had sent last: for an hour, and states that were long no more."""
    clock, count, large_bytes = SystemClock(), 8, 1_000_000
    async with EmbeddedServer(tmp_path, clock) as server, AsyncExitStack() as streams:
        client = Client(connect(str(server.folder.admin_kubeconfig), None, clock, environ={}), clock)
        streams.push_async_callback(client.aclose)
        path, write = "/api/v1/namespaces/default/configmaps", server.running.transport().send
        table = server.running.store.table("configmaps")
        small = msgspec.json.encode({"metadata": {"name": "a"}})
        assert (await write(Request("POST", path, body=small))).status == 201
        tracemalloc.start()
        streams.callback(tracemalloc.stop)
        before = 0
        for number in range(count + 2):
            if number == 2:  # what comes with the first watches stays
                before = tracemalloc.get_traced_memory()[0]
            metadata = {"name": "a", "labels": {"number": str(number)}}
            large = msgspec.json.encode({"metadata": metadata, "data": {"a": str(number) * large_bytes}})
            assert (await write(Request("PUT", f"{path}/a", body=large))).status == 200
            resumed = (("resourceVersion", str(table.floor)),) if number % 2 else ()
            query = (("watch", "1"), ("labelSelector", f"number={number}"), *resumed)
            stream = await streams.enter_async_context(contextlib.aclosing(await client.open(Request("GET", path, query))))
            await until_read(stream)
            assert (await write(Request("PUT", f"{path}/a", body=small))).status == 200
            await until_read(stream)
            table._hold(RING_BYTES)  # as after more changes than it holds
            table._hold(-RING_BYTES)
        gc.collect()
        kept_bytes = tracemalloc.get_traced_memory()[0] - before
        assert kept_bytes < count * large_bytes  # of twice as many; one or two may be on their way, whatever the machine does


async def until_read(stream: Stream) -> None:
    """To the end of a line."""
    while not (await stream.read()).endswith(b"\n"):
        pass


async def test_others_get_a_turn_between_the_changes_that_a_watch_catches_up_with(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "INITIAL_SLICE", 1)
    async with serving(clock, ["ci"]) as running:
        before = str(running.store.revision)
        for number in range(20):
            await Client(running.transport(), clock).create(config_map("ci", f"n-{number:02}"))
        query = (("watch", "1"), ("fieldSelector", "metadata.name=n-19"), ("resourceVersion", before))
        stream = await running.transport().open(Request("GET", MAPS, query))
        reading = asyncio.create_task(stream.read())
        turns = 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        await stream.aclose()
        assert [json.loads(line)["object"]["metadata"]["name"] for line in (await reading).splitlines()] == ["n-19"]
        assert turns > 19
