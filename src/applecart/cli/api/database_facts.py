"""What a database file tells about itself, read beside a running server without disturbing it."""

import sqlite3
from pathlib import Path

import msgspec

from applecart.embedded.store.record import Op
from applecart.embedded.store.sqlite_file import APPLICATION_ID, LAYOUT, connect, explain, get_meta
from applecart.errors import BadInput

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


def refuse_foreign(file: Path, database: sqlite3.Connection) -> None:
    owner = database.execute("PRAGMA application_id").fetchone()[0]
    layout = database.execute("PRAGMA user_version").fetchone()[0]
    if owner != APPLICATION_ID:
        raise BadInput(f"{file} is a database of another program")
    if layout != LAYOUT:
        raise BadInput(f"{file} has layout {layout} and this applecart reads {LAYOUT}; use the version that wrote it")
