"""The database file: its layout, how it is opened, and what is said when it cannot be.

One append-only table whose row id is the revision. FULL synchronisation, because a revision that was given out and then lost
could come back with other content, and informers would skip it without an error.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from applecart.embedded.store.sealing import SEALED
from applecart.errors import BadInput

APPLICATION_ID = 0x61706C63  # "aplc": another program's database is not ours to change
LAYOUT = 1
BUSY_TIMEOUT_S = 30.0  # only our own backup and checkpoint can hold the file, and not for long

_PRAGMAS = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA fullfsync=1;
PRAGMA checkpoint_fullfsync=1;
PRAGMA wal_autocheckpoint=0;
"""
_CREATE = f"""
PRAGMA auto_vacuum=INCREMENTAL;
BEGIN;
PRAGMA application_id={APPLICATION_ID};
PRAGMA user_version={LAYOUT};
CREATE TABLE resource(id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE);
CREATE TABLE log(rev INTEGER PRIMARY KEY, res INTEGER NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,
                 op INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX log_key ON log(res, ns, name, rev);
CREATE TABLE meta(k TEXT PRIMARY KEY, v NOT NULL);
COMMIT;
"""
SEALED_ROW = """
SELECT label, ns, name, rev, value FROM log JOIN resource ON resource.id = log.res WHERE substr(value, 1, 1) = ? LIMIT 1
"""


def connect(file: Path) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are begun by hand."""
    # Our own threads take turns on it; sqlite3 would otherwise refuse all but the one that opened it.
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_S)


def is_empty(file: Path) -> bool:
    """Whether nothing was ever committed to it: its size does not tell, for a cut off creation is rolled back by this look."""
    try:
        with closing(connect(file)) as database:
            return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.Error:
        return False  # it holds something, be it damaged


def create_database(file: Path) -> None:
    """Make it when there is none."""
    if not file.exists() or is_empty(file):
        try:
            with closing(connect(file)) as database:
                database.executescript(_CREATE)
        except sqlite3.Error as error:
            raise BadInput(explain(file, error)) from None


def holds_sealed(file: Path) -> bool:
    """Whether a Secret lies in it."""
    try:
        with closing(connect(file)) as database:
            return database.execute(SEALED_ROW, (SEALED,)).fetchone() is not None
    except sqlite3.Error:
        return False  # told where it is opened


def open_database(file: Path) -> sqlite3.Connection:
    """Open or create the database. Raises BadInput with a sentence for every way in which it is not usable."""
    database: sqlite3.Connection | None = None
    try:
        database = connect(file)
        if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            database.executescript(_CREATE)
        else:
            refuse_foreign(file, database)
        database.executescript(_PRAGMAS)
        if not get_meta(database, "clean", default=1):
            _check_integrity(file, database)
        set_meta(database, "clean", 0)
    except (sqlite3.Error, BadInput) as error:
        if database is not None:
            database.close()
        raise error if isinstance(error, BadInput) else BadInput(explain(file, error)) from None
    return database


def close_cleanly(database: sqlite3.Connection) -> None:
    """Leave one whole file behind, with a note that nothing needs to be checked; on a full disk, what is durable anyway."""
    with suppress(sqlite3.Error):
        set_meta(database, "clean", 1)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def get_meta(database: sqlite3.Connection, name: str, default: int = 0) -> int:
    row = database.execute("SELECT v FROM meta WHERE k=?", (name,)).fetchone()
    return int(row[0]) if row else default


def set_meta(database: sqlite3.Connection, name: str, value: int) -> None:
    database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def explain(file: Path, error: BaseException) -> str:
    """What a person can do about a failing database."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return f"the disk of {file} is full; free some space and start again: nothing that was acknowledged is lost"
        case sqlite3.SQLITE_READONLY:
            return f"{file} cannot be written: the file or its disk is read-only; make it writable and start again"
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"{file} cannot be opened ({error}); check the folder, its owner and its permissions"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return f"{file} is damaged ({error}); move it away and run: applecart api restore"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{file} is held by another program ({error}); stop it and start again"
        case _:
            return f"{file} cannot be used ({str(error) or type(error).__name__}); check the disk, then start again"


def refuse_foreign(file: Path, database: sqlite3.Connection) -> None:
    """Raises BadInput for a database that is not ours, not of this layout, or has lost everything."""
    if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise BadInput(f"{file} is empty; restore a backup: applecart api restore --force")
    owner = database.execute("PRAGMA application_id").fetchone()[0]
    layout = database.execute("PRAGMA user_version").fetchone()[0]
    if owner != APPLICATION_ID:
        raise BadInput(f"{file} is a database of another program; name another data folder")
    if layout != LAYOUT:
        raise BadInput(f"{file} has layout {layout} and this applecart reads {LAYOUT}; use the version that wrote it")


def _check_integrity(file: Path, database: sqlite3.Connection) -> None:
    """After a stop that was none: the log is append-only, so a damaged page is the disk's doing and must not be served."""
    problem = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if problem != "ok":
        raise BadInput(f"{file} is damaged ({' '.join(problem.split())}); move it away and run: applecart api restore")
