"""A database file beside its server: what it holds, copies of it, and copies made ready to take its place.

A copy is one read transaction, so it is consistent and no writer waits for it. A restored one starts far above every revision
that was given out since the copy was taken: a client that saw those revisions is told to list anew, and none is used twice.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from applecart.api.meta import Key
from applecart.embedded.store.record import Op
from applecart.embedded.store.sealing import SEALED, Sealer
from applecart.embedded.store.sqlite_file import SEALED_ROW, connect, explain, get_meta, refuse_foreign, set_meta
from applecart.errors import BadInput, ControlPlaneFault

PROGRESS_STEPS = 200_000  # of SQLite's machine between two looks: some tens of milliseconds
RESTORE_JUMP = 1_000_000_000  # more than a fleet writes between two backups, and far below what clients can hold

_FORGET = f"""
DELETE FROM log WHERE rev NOT IN (SELECT max(rev) FROM log GROUP BY res, ns, name);
DELETE FROM log WHERE op = {Op.DELETED:d};
"""
_COUNTS = f"""
SELECT label, count(*) FROM (SELECT res, max(rev), op FROM log GROUP BY res, ns, name) AS newest
JOIN resource ON resource.id = newest.res WHERE op != {Op.DELETED:d} GROUP BY label ORDER BY label
"""


class DatabaseFacts(msgspec.Struct, frozen=True, rename="camel"):
    revision: int
    compacted: int
    objects: dict[str, int]  # by resource, as in `pods` or `runnerpools.tuist.dev`


def read_facts(file: Path) -> DatabaseFacts:
    """Raises BadInput when the file is not a whole database of ours."""
    try:
        database = connect(file)
        try:
            refuse_foreign(file, database)
            database.execute("BEGIN")
            newest = database.execute("SELECT max(rev) FROM log").fetchone()[0] or 0
            return DatabaseFacts(
                revision=max(newest, get_meta(database, "boot")),
                compacted=get_meta(database, "compacted"),
                objects=dict(database.execute(_COUNTS).fetchall()),
            )
        finally:
            database.close()
    except sqlite3.Error as error:
        raise BadInput(explain(file, error)) from None


def copy_database(source: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """A consistent copy; `progress` is called now and then with the bytes that are there and those that may come."""
    of_bytes = source.stat().st_size

    def look() -> int:
        progress(target.stat().st_size if target.exists() else 0, of_bytes)
        return 0

    try:
        with closing(connect(source)) as database:
            refuse_foreign(source, database)
            database.set_progress_handler(look, PROGRESS_STEPS)
            database.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        raise ControlPlaneFault(f"the copy of {source} failed ({error}); nothing was written to the target") from None


def check_database(file: Path) -> None:
    """Raises BadInput when a page of it is damaged."""
    try:
        with closing(connect(file)) as database:
            refuse_foreign(file, database)
            found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        raise BadInput(f"the database in the backup is damaged ({' '.join(found.split())}); take another backup")


def check_key(file: Path, sealer: Sealer) -> None:
    """Raises BadInput when the key does not open what the database holds."""
    with closing(connect(file)) as database:
        row = database.execute(SEALED_ROW, (SEALED,)).fetchone()
    if row is not None:
        label, namespace, name, revision, value = row
        sealer.unseal(label, Key(namespace, name), revision, value)


def prepare_restored(file: Path, seen: int) -> int:
    """Forget history and jump above every revision that a client may have seen; returns where it will go on."""
    try:
        with closing(connect(file)) as database:
            newest = database.execute("SELECT max(rev) FROM log").fetchone()[0] or 0
            revision = max(newest, get_meta(database, "boot"), seen) + RESTORE_JUMP
            database.executescript(_FORGET)
            for name, value in (("boot", revision), ("compacted", revision), ("clean", 1)):
                set_meta(database, name, value)
    except sqlite3.Error as error:
        raise BadInput(explain(file, error)) from None
    return revision
