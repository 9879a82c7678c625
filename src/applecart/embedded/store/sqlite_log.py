"""The log on disk: pipelined group commit by one writer thread.

The event loop hands entries over without waiting. The writer takes everything that has gathered, commits it in one transaction
(one fsync, which releases the interpreter lock), and tells the loop; meanwhile the next batch gathers. Compaction runs on the
same thread in small steps, so that it never holds a lock the writer needs. A commit that fails ends the log for good.
"""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from applecart.api.meta import Key
from applecart.embedded.store.log import BOOT_JUMP, Compacted, Row, StoreFailed
from applecart.embedded.store.record import LogEntry, Op
from applecart.embedded.store.sealing import Sealer
from applecart.embedded.store.sqlite_file import (
    BUSY_TIMEOUT_S,
    close_cleanly,
    connect,
    explain,
    get_meta,
    open_database,
    set_meta,
)
from applecart.errors import BadInput

# How long a busy event loop may keep the interpreter from the writer, which asks for it a few times a batch. Python's own 5 ms
# made a batch of 16 rows wait 15 ms; measured, this makes it 2.
SWITCH_INTERVAL_S = 0.0005
COMPACT_STEP = 1000  # revisions a transaction: a few milliseconds, so that a write behind it does not notice
VACUUM_PAGES = 256  # given back to the disk after each step, once much is free
VACUUM_ABOVE_PAGES = 10_000  # 40 MB: below, the file keeps its free pages for the next writes

_INSERT = "INSERT INTO log(rev, res, ns, name, op, value) VALUES "
_VALUES = "(?, ?, ?, ?, ?, ?)"
# A statement of many rows lets go of the interpreter once. `executemany` does so for every row, and to get it back from a busy
# event loop takes up to 5 ms each time.
ROWS_AT_ONCE = 64
# SQLite documents that the other columns of a row with max() are those of the row that has it.
_CURRENT = "SELECT res, ns, name, max(rev), op, value FROM log {where} GROUP BY res, ns, name"
_OVERWRITTEN = """
DELETE FROM log WHERE rev IN (
  SELECT old.rev FROM log AS new JOIN log AS old
  ON old.res = new.res AND old.ns = new.ns AND old.name = new.name AND old.rev < new.rev
  WHERE new.rev > ? AND new.rev <= ?)
"""
_GRAVES = f"DELETE FROM log WHERE rev > ? AND rev <= ? AND op = {Op.DELETED:d}"

Job = Callable[[], None]


class SqliteLog:
    """The log of a data folder."""

    def __init__(self, file: Path, sealer: Sealer) -> None:
        self._file = file
        self._sealer = sealer
        self._database = open_database(file)
        self._ids: dict[str, int] = {label: id for id, label in self._database.execute("SELECT id, label FROM resource")}
        self._queue: SimpleQueue[LogEntry | Job | None] = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._has_failed = False
        self.compacted = get_meta(self._database, "compacted")
        newest = self._database.execute("SELECT max(rev) FROM log").fetchone()[0] or 0
        # A compaction up to the newest revision takes the rows of deletions away, and with them what max() could tell.
        self.revision = max(newest, get_meta(self._database, "boot"), self.compacted)

    def current(self, label: str | None = None) -> Iterator[tuple[str, Row]]:
        labels = {id: label for label, id in self._ids.items()}
        where, values = ("", ()) if label is None else ("WHERE res = ?", (self._ids.get(label, 0),))
        for res, ns, name, rev, op, value in self._database.execute(_CURRENT.format(where=where), values):
            if res not in labels or not (isinstance(ns, str) and isinstance(name, str) and isinstance(value, bytes)):
                raise BadInput(f"{self._file} is damaged (revision {rev} is no row of ours); run: applecart api restore")
            if op != Op.DELETED:
                key = Key(ns, name)
                yield labels[res], (key, rev, self._sealer.unseal(labels[res], key, rev, value))

    def start(self, published: Callable[[Sequence[LogEntry]], None], failed: Callable[[StoreFailed], None]) -> None:
        self.revision += BOOT_JUMP
        set_meta(self._database, "boot", self.revision)
        self._published = published
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._writer = threading.Thread(target=self._write_until_told, name="store-writer", daemon=True)
        self._writer.start()

    def submit(self, entry: LogEntry) -> None:
        self._queue.put(entry)

    async def history(self, label: str, namespace: str | None, revision: int) -> list[Row]:
        return await asyncio.to_thread(self._history, label, namespace, revision)

    async def compact(self, revision: int) -> None:
        """In steps, each a job of the writer; writes that gathered go between them."""
        for first in range(self.compacted, revision, COMPACT_STEP):
            last = min(first + COMPACT_STEP, revision)
            await self._on_writer(partial(self._compact_step, first, last))
            self.compacted = last

    async def checkpoint(self, *, truncate: bool = False) -> None:
        """Move what is committed from the write-ahead log into the database, beside the writer and not inside a commit."""
        if truncate:
            await self._on_writer(self._truncate)
        else:
            await asyncio.to_thread(self._checkpoint_passively)

    @property
    def wal_bytes(self) -> int:
        wal = self._file.with_name(f"{self._file.name}-wal")
        return wal.stat().st_size if wal.exists() else 0

    async def aclose(self) -> None:
        if self._writer is None:
            self._database.close()
        elif self._writer.is_alive():
            self._queue.put(None)
            await asyncio.to_thread(self._writer.join)
            if not self._has_failed:
                close_cleanly(self._database)

    # On the writer thread

    def _write_until_told(self) -> None:
        is_told = False
        while not is_told:
            jobs: list[Job] = []
            try:
                batch, jobs, is_told = self._gather()
                if batch and not self._has_failed:
                    self._commit(batch)
                    self._loop.call_soon_threadsafe(self._published, batch)
            except BaseException as error:  # any: a writer that ended without a word would leave everybody waiting
                self._end(error)
            for job in jobs:
                job()

    def _end(self, error: BaseException) -> StoreFailed:
        """Nothing is written any more: not by this batch, not by those that are already on their way."""
        failure = StoreFailed(explain(self._file, error))
        if not self._has_failed:
            self._has_failed = True
            self._loop.call_soon_threadsafe(self._failed, failure)
            with suppress(sqlite3.Error):  # everybody was told why; what cannot even be closed has no better word
                self._database.close()  # an open transaction is gone with it, and jobs that still come are told
        return failure

    def _gather(self) -> tuple[list[LogEntry], list[Job], bool]:
        """Everything that waits; blocks while there is nothing."""
        batch: list[LogEntry] = []
        jobs: list[Job] = []
        item = self._queue.get()
        while True:
            match item:
                case LogEntry():
                    batch.append(item)
                case None:
                    return batch, jobs, True
                case _:
                    jobs.append(item)
            try:
                item = self._queue.get_nowait()
            except Empty:
                return batch, jobs, False

    def _commit(self, batch: Sequence[LogEntry]) -> None:
        execute = self._database.execute
        if len(batch) <= ROWS_AT_ONCE and all(entry.label in self._ids for entry in batch):
            execute(*self._insert(batch))  # a transaction of its own
            return
        execute("BEGIN IMMEDIATE")
        for label in {entry.label for entry in batch} - self._ids.keys():
            self._new_id(label)
        for first in range(0, len(batch), ROWS_AT_ONCE):
            execute(*self._insert(batch[first : first + ROWS_AT_ONCE]))
        execute("COMMIT")

    def _insert(self, batch: Sequence[LogEntry]) -> tuple[str, list[Any]]:
        values: list[Any] = []
        for entry in batch:
            record = entry.record
            stored = self._sealer.seal(entry.label, record.key, record.revision, record.value)
            values += (record.revision, self._ids[entry.label], record.key.namespace, record.key.name, entry.op, stored)
        return _INSERT + ", ".join([_VALUES] * len(batch)), values

    def _new_id(self, label: str) -> int:
        number = self._database.execute("INSERT INTO resource(label) VALUES (?)", (label,)).lastrowid
        assert number is not None
        self._ids[label] = number
        return number

    def _compact_step(self, first: int, last: int) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute(_OVERWRITTEN, (first, last))
        self._database.execute(_GRAVES, (first, last))
        set_meta(self._database, "compacted", last)
        self._database.execute("COMMIT")
        if self._database.execute("PRAGMA freelist_count").fetchone()[0] > VACUUM_ABOVE_PAGES:
            self._execute_all(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")

    def _truncate(self) -> None:
        # A long read (a backup) stands in the way: then later. Waiting for it here would make every write wait.
        self._execute_all("PRAGMA busy_timeout=0")
        try:
            self._execute_all("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._execute_all(f"PRAGMA busy_timeout={int(BUSY_TIMEOUT_S * 1000)}")

    def _execute_all(self, statement: str) -> None:
        self._database.execute(statement).fetchall()

    async def _on_writer(self, work: Job) -> None:
        """Run work on the writer thread. A failure there is the disk's, and ends the log like a failed commit."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def job() -> None:
            try:
                work()
            except Exception as error:
                loop.call_soon_threadsafe(_tell, done, self._end(error))
            else:
                loop.call_soon_threadsafe(_tell, done, None)

        self._queue.put(job)
        await done

    # On other threads, with connections of their own

    def _history(self, label: str, namespace: str | None, revision: int) -> list[Row]:
        where = "WHERE res = ? AND rev <= ?" + ("" if namespace is None else " AND ns = ?")
        values = (self._ids.get(label, 0), revision) + (() if namespace is None else (namespace,))
        with closing(connect(self._file)) as database:
            database.execute("BEGIN")
            rows = database.execute(_CURRENT.format(where=where) + " ORDER BY ns, name", values).fetchall()
            if revision < get_meta(database, "compacted"):
                raise Compacted
        alive = [(Key(ns, name), rev, value) for _, ns, name, rev, op, value in rows if op != Op.DELETED]
        return [(key, rev, self._sealer.unseal(label, key, rev, value)) for key, rev, value in alive]

    def _checkpoint_passively(self) -> None:
        with closing(connect(self._file)) as database:
            database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _tell(done: "asyncio.Future[None]", failure: StoreFailed | None) -> None:
    """Whoever asked may have stopped waiting."""
    if done.done():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
