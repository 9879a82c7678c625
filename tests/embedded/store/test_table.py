"""A watcher's reader sleeps until there is something to read, until it is closed, or until the time it named; a ring remembers
a number of changes and of bytes."""

import asyncio
import gc
import weakref

import pytest

from applecart.api.meta import Key
from applecart.embedded.store.log import Compacted
from applecart.embedded.store.record import NOTHING, Change, Op, Record, Traits
from applecart.embedded.store.table import MOST_BYTES, MOST_EVENTS, NODE_FIELD, RING_BYTES, Scope, Table, Watcher
from tests.virtual_time import elapse


def change(revision: int) -> Change:
    return Change(Op.ADDED, Record(Key("ns", "a"), revision, b"{}", Traits("", NOTHING, NOTHING)), None)


async def test_what_waits_is_read_without_sleeping() -> None:
    watcher = Watcher(Scope())
    watcher.offer(change(1))
    assert await watcher.wait(until=0.0)
    assert [one.revision for one in watcher.take()] == [1]
    assert watcher.take() == []


async def test_a_sleeping_reader_wakes_once_for_a_whole_batch() -> None:
    watcher = Watcher(Scope())
    reading = asyncio.ensure_future(watcher.wait())
    await elapse(1)
    watcher.offer(change(1))
    watcher.offer(change(2))
    await elapse(1)
    assert not reading.done()
    watcher.flush()
    watcher.flush()
    assert await reading
    assert [one.revision for one in watcher.take()] == [1, 2]


async def test_a_wait_ends_at_the_time_it_names_and_the_next_one_at_its_own() -> None:
    watcher = Watcher(Scope())
    loop = asyncio.get_running_loop()
    assert not await watcher.wait(until=10.0)
    assert loop.time() == 10.0
    assert not await watcher.wait(until=10.0)
    assert not await watcher.wait(until=25.0)
    assert loop.time() == 25.0


async def test_the_alarm_outlives_the_events_before_it() -> None:
    watcher = Watcher(Scope())

    def publish(second: int) -> None:
        watcher.offer(change(second))
        watcher.flush()

    for second in range(1, 5):
        asyncio.get_running_loop().call_at(second, publish, second)
    for second in range(1, 5):
        assert await watcher.wait(until=10.0)
        assert [one.revision for one in watcher.take()] == [second]
    assert not await watcher.wait(until=10.0)
    assert asyncio.get_running_loop().time() == 10.0


async def test_closing_wakes_the_reader() -> None:
    watcher = Watcher(Scope())
    reading = asyncio.ensure_future(watcher.wait(until=100.0))
    await elapse(1)
    watcher.close()
    assert await reading
    assert watcher.is_closed
    assert watcher.take() == []


async def test_a_reader_that_gives_up_leaves_the_watcher_usable() -> None:
    watcher = Watcher(Scope())
    reading = asyncio.ensure_future(watcher.wait())
    await elapse(1)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    watcher.offer(change(1))
    watcher.flush()
    assert await watcher.wait()


async def test_a_reader_that_falls_too_far_behind_is_closed() -> None:
    watcher = Watcher(Scope())
    for revision in range(MOST_EVENTS + 1):
        watcher.offer(change(revision))
    assert watcher.is_closed
    watcher.offer(change(0))
    assert watcher.take() == []


LARGE_BYTES = 900_000


@pytest.mark.parametrize("reads", [True, False])
def test_a_reader_that_leaves_too_many_bytes_is_closed_and_one_that_reads_them_is_not(reads: bool) -> None:
    watcher = Watcher(Scope())
    for revision in range(2 * MOST_BYTES // LARGE_BYTES):
        watcher.offer(Change(Op.MODIFIED, recorded("large", revision, b"x" * LARGE_BYTES), None))
        if reads:
            watcher.take()
    assert watcher.is_closed is not reads


def test_a_reader_is_held_to_what_an_object_was_before_it_shrank() -> None:
    """It is told of that, should the object have left its selection: tiny changes made 40 MB for each of 20 readers."""
    watcher = Watcher(Scope())
    for revision in range(2 * MOST_BYTES // LARGE_BYTES):
        watcher.offer(Change(Op.MODIFIED, recorded("a", revision), recorded("a", 0, b"x" * LARGE_BYTES)))
    assert watcher.is_closed


def test_the_next_write_is_checked_against_the_last_one_on_its_way_also_when_the_one_before_is_durable() -> None:
    table = Table("things", 0)
    first, second = recorded("a", 1), recorded("a", 2)
    table.expect(Op.ADDED, first)
    table.expect(Op.MODIFIED, second)
    table.publish(Op.ADDED, first, {})
    assert table.tip(first.key) is second
    table.publish(Op.MODIFIED, second, {})
    assert table.tip(first.key) is second


async def test_a_reader_that_has_gone_is_not_kept_until_its_time_is_over() -> None:
    table = Table("pods", 0)
    watcher = table.watch(Scope())
    reading = asyncio.ensure_future(watcher.wait(until=3600.0))
    await elapse(1)
    reading.cancel()
    await asyncio.wait({reading})
    table.unwatch(watcher)
    left = weakref.ref(watcher)
    del watcher, reading
    gc.collect()
    assert left() is None


def test_whoever_watches_a_node_hears_of_what_leaves_it() -> None:
    table = Table("pods", 0)
    watcher = table.watch(Scope(node="mac-1"))
    for revision, node in enumerate(("mac-1", "mac-2", "mac-2"), 1):
        table.publish(Op.MODIFIED, recorded("a", revision, node=node), {})
    assert [one.revision for one in watcher.take()] == [1, 2]


def recorded(name: str, revision: int, value: bytes = b"{}", node: str = "") -> Record:
    return Record(Key("ns", name), revision, value, Traits("", NOTHING, {NODE_FIELD: node}))


def patched(table: Table, times: int, watched: bool) -> None:
    """One large object, changed again and again; a watcher has it encoded and reads at once."""
    for revision in range(1, times + 1):
        record = Record(Key("ns", "large"), revision, b"x" * LARGE_BYTES, Traits("", NOTHING, NOTHING))
        made = table.publish(Op.MODIFIED, record, {})
        if watched:
            made.share("object", b"y" * LARGE_BYTES)


def held_bytes(table: Table) -> int:
    """What a ring keeps in memory: encoded forms, and each value that is not of an object as it is now."""
    kept = table.since(table.floor)
    records = [record for one in kept for record in (one.record, one.previous) if record is not None]
    values = {id(record): len(record.value) for record in records if record is not table.get(record.key)}
    return sum(values.values()) + sum(len(frame) for one in kept for frame in one.frames.values())


@pytest.mark.parametrize("watched", [False, True])
def test_a_ring_remembers_a_number_of_bytes_whatever_the_number_of_changes(watched: bool) -> None:
    """Seen once: 300 patches of one 0.9 MB ConfigMap with one watcher took 780 MB, because the ring was bounded by count."""
    table = Table("configmaps", 0)
    patched(table, 300, watched)
    kept = table.since(table.floor)
    assert held_bytes(table) == table.ring_bytes <= RING_BYTES
    assert [one.revision for one in kept] == list(range(table.floor + 1, 301))
    assert len(kept) >= RING_BYTES // (2 * LARGE_BYTES) - 1
    with pytest.raises(Compacted):
        table.since(table.floor - 1)


def test_a_ring_counts_what_objects_were_before_they_shrank_or_went() -> None:
    """Its changes were as small as what they left: 30 ConfigMaps of 1.3 MB, all shrunk, stayed in memory for nothing."""
    table = Table("configmaps", 0)
    for revision in range(1, 61):
        table.publish(Op.ADDED, recorded(f"n-{revision}", revision, b"x" * LARGE_BYTES), {})
    assert table.floor == held_bytes(table) == table.ring_bytes == 0
    for revision in range(61, 91):
        table.publish(Op.MODIFIED, recorded(f"n-{revision - 60}", revision), {})
        assert held_bytes(table) == table.ring_bytes <= RING_BYTES
    for revision in range(91, 121):
        table.publish(Op.DELETED, recorded(f"n-{revision - 60}", revision, b"x" * LARGE_BYTES), {})
        assert held_bytes(table) == table.ring_bytes <= RING_BYTES
    assert table.ring_bytes > RING_BYTES - 2 * LARGE_BYTES


def test_a_form_that_two_readers_encoded_is_counted_once() -> None:
    table = Table("configmaps", 0)
    made = table.publish(Op.ADDED, recorded("a", 1), {})
    for _ in range(2):
        made.share("object", b"encoded")
    assert table.ring_bytes == held_bytes(table) == len(b"encoded")


@pytest.mark.parametrize(
    "metadata",
    [b'"name":"a"', b'"name":"a","resourceVersion":"1"', b'"annotations":{"resourceVersion":"1"},"resourceVersion":"1"'],
)
def test_an_object_said_at_another_revision_is_otherwise_the_same(metadata: bytes) -> None:
    before = recorded("a", 1, b'{"metadata":{%b},"data":{"resourceVersion":"1","number":1.50}}' % metadata)
    after = before.said_at(7)
    expected = before.document()
    expected["metadata"]["resourceVersion"] = "7"
    assert (after.document(), after.revision) == (expected, 7)
    assert after.value.endswith(b'"data":{"resourceVersion":"1","number":1.50}}')


def test_what_a_ring_has_forgotten_keeps_no_encoded_form() -> None:
    table = Table("configmaps", 0)
    first = table.publish(Op.ADDED, Record(Key("ns", "a"), 1, b"x", Traits("", NOTHING, NOTHING)), {})
    first.share("object", b"encoded")
    patched(table, 40, watched=False)
    first.share("table", b"encoded late by a reader that is behind")
    assert first.frames == {}
    assert table.ring_bytes == held_bytes(table)
