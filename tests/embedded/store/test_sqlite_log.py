"""The log on disk: what is in the file, and what is said when the file cannot be used."""

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import cast

import pytest

from applecart.api.meta import Key
from applecart.embedded.store.log import BOOT_JUMP, StoreFailed
from applecart.embedded.store.record import NOTHING, Op, Record, Traits
from applecart.embedded.store.sealing import load_or_make_key
from applecart.embedded.store.sqlite_log import ROWS_AT_ONCE, SqliteLog
from applecart.embedded.store.store import Store
from applecart.errors import BadInput
from tests.embedded.store.conftest import take_in

pytestmark = pytest.mark.real_time


def open_store(folder: Path) -> tuple[Store, SqliteLog]:
    log = SqliteLog(folder / "store.db", load_or_make_key(folder / "secrets.key"))
    store = Store(log, take_in)
    try:
        store.start()
    except BaseException:
        log._database.close()
        raise
    return store, log


def put(store: Store, label: str, name: str, value: bytes) -> "asyncio.Future[None]":
    return store.write(label, Op.ADDED, Record(Key("ns", name), store.next_revision(), value, Traits("", NOTHING, NOTHING)))


async def test_secrets_are_unreadable_in_the_files_and_readable_in_the_store(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    await put(store, "secrets", "s", b'{"data":{"password":"hunter2-hunter2"}}')
    await put(store, "configmaps", "c", b'{"data":{"plain":"visible-visible"}}')
    files = (tmp_path / "store.db").read_bytes() + (tmp_path / "store.db-wal").read_bytes()
    assert b"hunter2" not in files
    assert b"visible" in files
    await store.aclose()
    store, _ = open_store(tmp_path)
    record = store.table("secrets").get(Key("ns", "s"))
    assert record is not None
    assert b"hunter2-hunter2" in record.value
    await store.aclose()


async def test_a_database_with_another_key_file_is_told_by_name(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    await put(store, "secrets", "s", b'{"data":{}}')
    await store.aclose()
    (tmp_path / "secrets.key").unlink()
    with pytest.raises(BadInput, match=r"secrets ns/s was sealed with another key than the one in .*secrets.key"):
        open_store(tmp_path)


@pytest.mark.parametrize(("change", "named"), [("name='yours'", "yours"), ("rev=rev+1", "mine")])
async def test_a_sealed_row_moved_to_another_object_or_time_is_refused(tmp_path: Path, change: str, named: str) -> None:
    store, _ = open_store(tmp_path)
    await put(store, "secrets", "mine", b'{"data":{}}')
    await store.aclose()
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute(f"UPDATE log SET {change}")
    database.commit()
    database.close()
    with pytest.raises(BadInput, match=f"secrets ns/{named} was sealed with another key"):
        open_store(tmp_path)


def test_a_key_file_that_holds_no_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "secrets.key").write_text("short")
    with pytest.raises(BadInput, match=r"secrets.key holds no key of 32 bytes"):
        load_or_make_key(tmp_path / "secrets.key")


def test_the_key_file_is_private(tmp_path: Path) -> None:
    load_or_make_key(tmp_path / "secrets.key")
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to have a header" * 40, b"SQLite format 3\x00" * 100]
)
def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "store.db").write_bytes(content)
    with pytest.raises(BadInput, match=r"store.db is damaged"):
        open_store(tmp_path)


def test_the_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("CREATE TABLE theirs(a)")
    database.commit()
    database.close()
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(BadInput, match="is a database of another program"):
        open_store(tmp_path)
    assert (tmp_path / "store.db").read_bytes() == before


async def test_a_newer_layout_is_told(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    await store.aclose()
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(BadInput, match="has layout 99 and this applecart reads 1"):
        open_store(tmp_path)


async def test_damage_is_found_after_a_stop_that_was_none(tmp_path: Path) -> None:
    store, log = open_store(tmp_path)
    for number in range(400):
        last = put(store, "configmaps", f"c{number}", b'{"data":{"x":"%d"}}' % number + b" " * 500)
    await last
    await log.checkpoint(truncate=True)
    # The process dies here: nothing says that it ended well.
    content = bytearray((tmp_path / "store.db").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4096] = random.Random(4).randbytes(4096)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "store.db").write_bytes(bytes(content))
    (copy / "secrets.key").write_bytes((tmp_path / "secrets.key").read_bytes())
    with pytest.raises(BadInput, match=r"store.db is damaged .*applecart api restore"):
        open_store(copy)
    await store.aclose()


async def test_a_full_disk_fails_what_waits_and_everything_after_and_loses_nothing(tmp_path: Path) -> None:
    store, log = open_store(tmp_path)
    failures: list[StoreFailed] = []
    store.on_failure(failures.append)
    await put(store, "configmaps", "before", b'{"data":{}}')
    log._database.execute("PRAGMA max_page_count=40")
    too_large = put(store, "configmaps", "large", b'{"x":"' + b"y" * 1_000_000 + b'"}')
    with pytest.raises(StoreFailed, match=r"the disk of .*store.db is full; free some space"):
        await too_large
    assert len(failures) == 1
    with pytest.raises(StoreFailed):
        put(store, "configmaps", "after", b"{}")
    with pytest.raises(StoreFailed):
        await log.compact(store.revision)
    await store.aclose()
    store, _ = open_store(tmp_path)
    assert [one.key.name for one in store.table("configmaps").records()] == ["before"]
    await store.aclose()


async def test_checkpoints_empty_the_write_ahead_log(tmp_path: Path) -> None:
    store, log = open_store(tmp_path)
    for number in range(300):
        last = put(store, "configmaps", f"c{number}", b"x" * 2000)
    await last
    assert log.wal_bytes > 500_000
    await log.checkpoint()
    await log.checkpoint(truncate=True)
    assert log.wal_bytes == 0
    await store.aclose()


def test_a_file_whose_creation_was_cut_off_is_made_again(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "store.db")
    database.executescript("CREATE TABLE half(a); DROP TABLE half;")
    database.close()
    assert (tmp_path / "store.db").stat().st_size > 0
    log = SqliteLog(tmp_path / "store.db", load_or_make_key(tmp_path / "secrets.key"))
    assert list(log.current()) == []
    log._database.close()


async def test_more_rows_than_fit_one_statement_are_one_commit(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    published: list[int] = []
    store.on_commit("configmaps", lambda change: published.append(change.revision))
    first = put(store, "configmaps", "first", b"{}")
    many = [put(store, f"kind{number % 7}", f"c{number}", b"{}") for number in range(5 * ROWS_AT_ONCE)]
    await asyncio.gather(first, *many)
    await store.aclose()
    store, _ = open_store(tmp_path)
    assert sum(len(store.table(label)) for label in store.labels()) == 5 * ROWS_AT_ONCE + 1
    await store.aclose()


async def test_nothing_is_left_of_what_was_deleted_once_its_deletion_is_compacted(tmp_path: Path) -> None:
    store, log = open_store(tmp_path)
    await put(store, "configmaps", "c", b"{}")
    last = store.next_revision()
    await store.write("configmaps", Op.DELETED, Record(Key("ns", "c"), last, b"{}", Traits("", NOTHING, NOTHING)))
    await store.compact(last)
    assert log._database.execute("SELECT count(*) FROM log").fetchone() == (0,)
    await store.aclose()


async def test_a_revision_is_not_given_out_again_after_its_deletion_was_compacted(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    for _ in range(BOOT_JUMP // 2 + 300):
        await put(store, "configmaps", "c", b"{}")
        last = store.next_revision()
        await store.write("configmaps", Op.DELETED, Record(Key("ns", "c"), last, b"{}", Traits("", NOTHING, NOTHING)))
    await store.compact(last)
    await store.aclose()
    store, _ = open_store(tmp_path)
    assert store.revision > last
    await store.aclose()


async def test_a_failing_compaction_ends_the_log_before_anything_else_is_shown(tmp_path: Path) -> None:
    """What gathered behind it would otherwise be shown to watchers out of a transaction that is never committed."""
    store, log = open_store(tmp_path)
    shown: list[int] = []
    store.on_commit("configmaps", lambda change: shown.append(change.revision))
    await put(store, "configmaps", "before", b"{}")
    acknowledged = store.revision
    log._database.execute("CREATE TRIGGER broken BEFORE UPDATE ON meta BEGIN SELECT raise(ABORT, 'no'); END")
    log._database.execute("CREATE TRIGGER broken2 BEFORE INSERT ON meta BEGIN SELECT raise(ABORT, 'no'); END")
    compaction = asyncio.ensure_future(store.compact(acknowledged))
    await asyncio.sleep(0)  # it is handed to the writer
    behind = [put(store, "configmaps", f"behind{number}", b"{}") for number in range(3)]
    results = await asyncio.gather(compaction, *behind, return_exceptions=True)
    assert isinstance(results[0], StoreFailed)
    with pytest.raises(StoreFailed):
        put(store, "configmaps", "after", b"{}")
    await store.aclose()
    database = sqlite3.connect(tmp_path / "store.db")
    durable = {rev for (rev,) in database.execute("SELECT rev FROM log")}
    database.close()
    assert set(shown) <= durable
    assert acknowledged in durable


async def test_a_write_that_cannot_be_stored_at_all_fails_loudly_and_not_in_silence(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    with pytest.raises(StoreFailed, match=r"store.db cannot be used"):
        await put(store, "configmaps", "\ud800", b"{}")  # no text that SQLite can hold
    await store.aclose()


@pytest.mark.parametrize("step", ["_gather", "_commit"])
@pytest.mark.parametrize("error", [MemoryError(), asyncio.CancelledError()], ids=["no memory", "cancelled"])
async def test_a_writer_that_fails_at_any_step_ends_the_store_and_leaves_nobody_waiting(
    tmp_path: Path, step: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: the thread ended, every write after it waited for ever, and the server said that it was well."""
    works = getattr(SqliteLog, step)

    def fail(*arguments: object) -> None:
        works(*arguments)
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(SqliteLog, step, fail)
    store, _ = open_store(tmp_path)
    with pytest.raises(StoreFailed, match=f"cannot be used .{type(error).__name__}.; check the disk"):
        await asyncio.wait_for(asyncio.gather(*(put(store, "configmaps", name, b"{}") for name in "ab")), 5)
    await store.aclose()


async def test_a_database_that_cannot_even_be_closed_fails_loudly(tmp_path: Path) -> None:
    """The writer's thread ended on the way to saying so, and everybody waited for ever."""

    class Broken:
        def execute(self, *_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        def close(self) -> None:
            raise sqlite3.OperationalError("unable to close due to unfinalized statements")

    store, log = open_store(tmp_path)
    database, log._database = log._database, cast(sqlite3.Connection, Broken())
    with pytest.raises(StoreFailed, match=r"store.db cannot be used \(disk I/O error\)"):
        await asyncio.wait_for(put(store, "configmaps", "a", b"{}"), 20)
    database.close()
    await store.aclose()


async def test_a_checkpoint_does_not_make_writes_wait_for_a_long_read(tmp_path: Path) -> None:
    store, log = open_store(tmp_path)
    await put(store, "configmaps", "a", b"{}")
    reader = sqlite3.connect(tmp_path / "store.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM log").fetchone()
    await put(store, "configmaps", "b", b"{}")
    async with asyncio.timeout(10):  # less than the time that is allowed for a lock
        await log.checkpoint(truncate=True)
        await put(store, "configmaps", "c", b"{}")
    reader.close()
    await log.checkpoint(truncate=True)
    assert log.wal_bytes == 0
    await store.aclose()


@pytest.mark.parametrize("damage", ["res = 99", "name = x'00ff'", "value = 7"])
async def test_a_row_that_no_server_wrote_is_told(tmp_path: Path, damage: str) -> None:
    store, _ = open_store(tmp_path)
    await put(store, "configmaps", "c", b'{"metadata":{}}')
    last = store.revision
    await store.aclose()
    database = sqlite3.connect(tmp_path / "store.db")
    database.executescript("PRAGMA ignore_check_constraints=1; DROP INDEX log_key;")
    database.execute(f"UPDATE log SET {damage}")
    database.commit()
    database.close()
    with pytest.raises(BadInput, match=rf"store.db is damaged \(revision {last} is no row of ours\)"):
        open_store(tmp_path)
