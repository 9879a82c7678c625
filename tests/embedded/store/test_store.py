"""What every store keeps, whichever log is below it."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from applecart.api.meta import Key
from applecart.embedded.store.log import BOOT_JUMP, Compacted, StoreFailed
from applecart.embedded.store.record import NOTHING, Op, Traits
from applecart.embedded.store.sqlite_log import SqliteLog
from applecart.embedded.store.store import RENEWED_AT_ONCE, RENEWED_BYTES
from applecart.embedded.store.table import MOST_EVENTS, RING_EVENTS, Scope, Table, Watcher
from tests.embedded.store.conftest import Opened
from tests.turns import Turns

THINGS = "things"


async def test_a_write_is_visible_when_its_future_is_done_and_not_before(opened: Opened) -> None:
    done = opened.put("a")
    assert opened.state() == {}
    await done
    assert opened.state() == {"a": b"{}"}


async def test_the_next_write_finds_what_is_still_on_its_way(opened: Opened) -> None:
    opened.put("a", '{"v":1}')
    tip = opened.store.table(THINGS).tip(Key("ns", "a"))
    assert tip is not None
    assert tip.value == b'{"v":1}'
    gone = opened.delete("a")
    assert opened.store.table(THINGS).tip(Key("ns", "a")) is None
    await gone
    assert opened.state() == {}


async def test_revisions_rise_by_one_and_are_given_out_once(opened: Opened) -> None:
    first = opened.store.next_revision()
    for number in range(5):
        assert opened.store.next_revision() == first + number
        last = opened.put("a", f'{{"v":{number}}}')
    await last
    assert opened.store.revision == first + 4


async def test_a_write_that_skips_a_revision_is_a_defect(opened: Opened) -> None:
    record = opened.record(Key("ns", "a"), "{}")
    await opened.put("b")
    with pytest.raises(AssertionError):
        opened.store.write(THINGS, Op.ADDED, record)


async def test_a_restart_finds_everything_and_jumps_ahead(opened: Opened) -> None:
    await opened.put("a", '{"v":1}')
    await opened.put("b")
    await opened.delete("b")
    before = opened.store.revision
    await opened.reopen()
    assert opened.state() == {"a": b'{"v":1}'}
    assert opened.store.revision == before + BOOT_JUMP
    record = opened.store.table(THINGS).get(Key("ns", "a"))
    assert record is not None
    assert record.revision < before


async def test_restarts_without_a_write_still_move_the_revision(opened: Opened) -> None:
    await opened.put("a")
    await opened.reopen()
    first = opened.store.revision
    await opened.reopen()
    assert opened.store.revision == first + BOOT_JUMP


async def test_a_watch_from_before_the_restart_is_too_old(opened: Opened) -> None:
    await opened.put("a")
    before = opened.store.revision
    await opened.reopen()
    with pytest.raises(Compacted):
        opened.store.table(THINGS).since(before)
    assert opened.store.table(THINGS).since(opened.store.revision) == []


async def test_lists_are_in_the_order_of_keys_and_know_their_namespace(opened: Opened) -> None:
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y"), ("a-", "q"), ("b", "a")):
        last = opened.put(name, namespace=namespace)
    await last
    table = opened.store.table(THINGS)
    assert [str(one.key) for one in table.records()] == ["a/y", "a/z", "a-/q", "b/a", "b/x"]
    assert [str(one.key) for one in table.records("a")] == ["a/y", "a/z"]
    assert [str(one.key) for one in table.records(None, Key("a", "z"))] == ["a-/q", "b/a", "b/x"]
    assert [str(one.key) for one in table.records("a", Key("a", "y"))] == ["a/z"]
    assert table.records("none") == []


async def test_a_list_once_taken_does_not_change(opened: Opened) -> None:
    await opened.put("a")
    taken = opened.store.table(THINGS).records()
    await opened.put("b")
    assert len(taken) == 1


async def test_the_past_is_read_as_it_was(opened: Opened) -> None:
    await opened.put("a", '{"v":1}')
    await opened.put("b")
    then = opened.store.revision
    await opened.put("a", '{"v":2}')
    await opened.delete("b")
    await opened.put("c")
    past = await opened.store.records_at(THINGS, then, None, None)
    assert [(one.key.name, one.value) for one in past] == [("a", b'{"v":1}'), ("b", b"{}")]
    assert [one.key.name for one in await opened.store.records_at(THINGS, then, "ns", Key("ns", "a"))] == ["b"]
    assert await opened.store.records_at(THINGS, then, "elsewhere", None) == []


async def test_the_past_is_read_from_the_log_when_the_ring_has_forgotten_it(opened: Opened) -> None:
    await opened.put("a", '{"v":1}')
    then = opened.store.revision
    await opened.put("a", '{"v":2}')
    await opened.reopen()
    await opened.put("a", '{"v":3}')
    past = await opened.store.records_at(THINGS, then, None, None)
    assert [one.value for one in past] == [b'{"v":1}']


async def test_compaction_forgets_what_was_overwritten_and_nothing_else(opened: Opened) -> None:
    await opened.put("old", '{"v":1}')
    await opened.put("a", '{"v":1}')
    first = opened.store.revision
    await opened.put("a", '{"v":2}')
    await opened.put("b")
    await opened.delete("b")
    then = opened.store.revision
    await opened.put("a", '{"v":3}')
    await opened.store.compact(then)
    assert opened.log.compacted == then
    with pytest.raises(Compacted):
        await opened.store.records_at(THINGS, first, None, None)
    past = await opened.store.records_at(THINGS, then, None, None)
    assert [(one.key.name, one.value) for one in past] == [("a", b'{"v":2}'), ("old", b'{"v":1}')]
    await opened.reopen()
    assert opened.state() == {"a": b'{"v":3}', "old": b'{"v":1}'}
    past = await opened.store.records_at(THINGS, then, None, None)
    assert [(one.key.name, one.value) for one in past] == [("a", b'{"v":2}'), ("old", b'{"v":1}')]


async def test_compaction_in_several_steps_leaves_the_newest_of_each(opened: Opened) -> None:
    for number in range(2500):
        last = opened.put(f"k{number % 7}", f'{{"v":{number}}}')
    await last
    await opened.store.compact(opened.store.revision)
    await opened.reopen()
    assert {int(value[5:-1]) for value in opened.state().values()} == set(range(2493, 2500))


async def test_watchers_see_every_write_in_order(opened: Opened) -> None:
    watcher = opened.store.table(THINGS).watch(Scope())
    for number in range(20):
        last = opened.put(f"k{number % 3}", f'{{"v":{number}}}')
    await last
    await watcher.wait()
    changes = watcher.take()
    assert [change.revision for change in changes] == sorted(change.revision for change in changes)
    assert [change.record.value for change in changes] == [f'{{"v":{number}}}'.encode() for number in range(20)]
    assert changes[0].previous is None
    assert changes[3].previous is changes[0].record


async def test_a_watcher_of_one_name_or_namespace_is_offered_nothing_else(opened: Opened) -> None:
    table = opened.store.table(THINGS)
    of_name, of_namespace = table.watch(Scope(name="a")), table.watch(Scope(namespace="one"))
    await opened.put("a", namespace="one")
    await opened.put("b", namespace="one")
    await opened.put("a", namespace="two")
    assert [str(change.record.key) for change in of_name.take()] == ["one/a", "two/a"]
    assert [str(change.record.key) for change in of_namespace.take()] == ["one/a", "one/b"]
    table.unwatch(of_name)
    await opened.put("a", namespace="one")
    assert of_name.take() == []


async def test_a_watcher_that_does_not_read_is_closed_and_delays_nobody(opened: Opened) -> None:
    table = opened.store.table(THINGS)
    slow, quick = table.watch(Scope()), table.watch(Scope())
    seen = 0
    for number in range(MOST_EVENTS + 10):
        await opened.put("a", f'{{"v":{number}}}')
        seen += len(quick.take())
    assert slow.is_closed
    assert slow.take() == []
    assert seen == MOST_EVENTS + 10
    await slow.wait()


async def test_a_watch_resumes_within_the_ring_and_not_beyond(opened: Opened) -> None:
    table = opened.store.table(THINGS)
    await opened.put("a")
    then = opened.store.revision
    for number in range(RING_EVENTS):
        last = opened.put("a", f'{{"v":{number}}}')
    await last
    assert len(table.since(then)) == RING_EVENTS
    await opened.put("a", '{"v":"more"}')
    with pytest.raises(Compacted):
        table.since(then)
    assert len(table.since(then + 1)) == RING_EVENTS


async def test_resources_do_not_see_each_other(opened: Opened) -> None:
    await opened.put("a", label="one")
    await opened.put("a", '{"v":2}', label="two")
    assert opened.state("one") == {"a": b"{}"}
    assert opened.state("two") == {"a": b'{"v":2}'}
    assert opened.store.labels() == ["one", "two"]


async def test_objects_are_taken_in_again_a_few_at_a_time_and_what_is_written_meanwhile_stays(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,000 small objects kept everybody waiting for 97 ms at each change of their schema."""
    names = [f"n{number:04}" for number in range(3 * RENEWED_AT_ONCE)]
    await asyncio.gather(*(opened.put(name, '{"a":"old"}') for name in names))
    turns, store = Turns(), opened.store
    monkeypatch.setattr(store, "_take_in", lambda label, value: (value.replace(b"old", b"new"), Traits("", NOTHING, NOTHING)))
    turns.count(monkeypatch, store, "_take_in")
    store.renew("things")
    renewed = store.renewing["things"].wait()
    await asyncio.gather(opened.put(names[-1], '{"a":"newer"}'), opened.delete(names[-2]))
    await renewed
    found = {record.key.name: record.document()["a"] for record in store.table("things").records()}
    assert found == {**dict.fromkeys(names[:-2], "new"), names[-1]: "newer"}
    assert turns.most <= RENEWED_AT_ONCE
    assert "things" not in store.renewing


async def test_fewer_bytes_of_large_objects_are_taken_in_at_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        await opened.put(name, '{"a":"%s"}' % ("x" * RENEWED_BYTES))
    turns, store = Turns(), opened.store
    turns.count(monkeypatch, store, "_take_in")
    store.renew("things")
    await store.renewing["things"].wait()
    assert (turns.calls, turns.most) == (3, 1)


async def test_many_writers_at_once_all_become_durable(opened: Opened) -> None:
    async def write(number: int) -> None:
        for turn in range(20):
            await opened.put(f"w{number}", f'{{"v":{turn}}}')

    await asyncio.gather(*(write(number) for number in range(16)))
    await opened.reopen()
    assert opened.state() == {f"w{number}": b'{"v":19}' for number in range(16)}


async def test_who_writes_hears_after_the_listeners(opened: Opened) -> None:
    heard: list[str] = []
    opened.store.on_commit(THINGS, lambda change: heard.append(f"listener {change.record.key.name}"))
    await opened.put("a")
    heard.append("writer")
    assert heard == ["listener a", "writer"]


class Surprise(Exception):
    """What nobody foresaw."""


def raise_surprise(*_: object) -> None:
    raise Surprise


def be_cancelled(*_: object) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("broken", [(Table, "publish"), (Watcher, "flush")])
@pytest.mark.parametrize("fail", [raise_surprise, be_cancelled])
async def test_a_write_that_cannot_be_shown_ends_the_store_and_leaves_nobody_waiting(
    opened: Opened,
    broken: tuple[type, str],
    fail: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The exception was the event loop's to log, and whoever had written waited for ever on a server that said it was well."""
    told: list[StoreFailed] = []
    opened.store.on_failure(told.append)
    opened.store.table(THINGS).watch(Scope())
    with monkeypatch.context() as patch:
        patch.setattr(*broken, fail)
        writes = asyncio.gather(opened.put("a"), opened.put("b"), return_exceptions=True)
        ends = await asyncio.wait_for(writes, 5)
    assert all(isinstance(end, StoreFailed) for end in ends)
    assert len(told) == 1
    assert "what follows from a write failed" in caplog.text
    await opened.reopen()
    assert opened.state() == {"a": b"{}", "b": b"{}"}


@pytest.mark.parametrize("is_later", [False, True])
async def test_a_listener_that_fails_ends_the_store_after_everybody_has_heard_of_the_write(
    opened: Opened, is_later: bool
) -> None:
    """Seen once: it left durable writes invisible and their writers waiting for ever, and nobody said so."""
    told: list[StoreFailed] = []
    heard: list[str] = []
    store = opened.store
    store.on_commit(THINGS, (lambda _: store.soon(raise_surprise)) if is_later else raise_surprise)
    store.on_commit(THINGS, lambda change: heard.append(change.record.key.name))
    store.on_failure(raise_surprise)
    store.on_failure(told.append)
    watcher = store.table(THINGS).watch(Scope())
    began, go = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        go.wait(20)

    if isinstance(opened.log, SqliteLog):  # both in one batch, however busy the machine is
        opened.log._queue.put(hold)
        assert began.wait(20)
    writes = opened.put("a"), opened.put("b")
    go.set()
    await asyncio.gather(*writes)
    await asyncio.sleep(0)
    assert heard == ["a", "b"]
    assert opened.state() == {"a": b"{}", "b": b"{}"}
    assert [one.record.key.name for one in watcher.take()] == ["a", "b"]
    assert [str(one) for one in told] == [
        "what follows from a stored write could not be done (Surprise, see the log); start again: nothing that was "
        "acknowledged is lost"
    ]
    with pytest.raises(StoreFailed):
        opened.put("c")
    await opened.reopen()
    assert opened.state() == {"a": b"{}", "b": b"{}"}
