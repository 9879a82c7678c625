"""A server that is cut off, again and again, in one data folder.

    python power_cut_server.py DATA

Reads `start PORT MOMENT COMMITS` from standard input, serves in a process forked for it, says `ready PID PORT` and, when that
process has ended, `ended CODE`. Forked, because everything is imported once then and a round takes a tenth of a second.
MOMENT names where in its COMMITSth commit the process kills itself: `before`, `during` or `after` it reached the disk,
or `never`. What a process left behind is all that the next one finds.
"""

import asyncio
import ctypes
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from applecart.clock import SystemClock
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.store.record import LogEntry
from applecart.embedded.store.sqlite_log import SqliteLog

PR_SET_PDEATHSIG = 1  # from Linux's sys/prctl.h


class DoomedDatabase:
    """A connection whose next commit is the last thing its process does."""

    def __init__(self, database: sqlite3.Connection, moment: str) -> None:
        self._database = database
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if not self._is_last(statement):
            return self._database.execute(statement, *values)
        if self._moment == "before":
            die()
        if self._moment == "during":
            # The other thread gets to run where a commit lets go of the interpreter, which is around its system calls.
            threading.Thread(target=die).start()
        cursor = self._database.execute(statement, *values)
        die()
        return cursor

    def _is_last(self, statement: str) -> bool:
        """Whether the batch is durable after it: a COMMIT, or an INSERT that is a transaction of its own."""
        return statement == "COMMIT" or (statement.startswith("INSERT") and not self._database.in_transaction)


class Doom:
    """Where, and in which commit from now on, the process ends."""

    moment = "never"
    commits_left = 0


commit_alive = SqliteLog._commit


def commit(log: SqliteLog, batch: Sequence[LogEntry]) -> None:
    Doom.commits_left -= 1
    if Doom.moment != "never" and Doom.commits_left == 0:
        log._database = DoomedDatabase(log._database, Doom.moment)  # type: ignore[assignment]
    commit_alive(log, batch)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


async def serve(data: Path, port: int, moment: str, commits: int) -> None:
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    async with EmbeddedServer(data, SystemClock(), port=port) as server:
        Doom.moment, Doom.commits_left = moment, commits  # what the start itself writes does not count
        print("ready", os.getpid(), server.port, flush=True)
        await told_to_stop.wait()


def main(data: Path) -> None:
    SqliteLog._commit = commit  # type: ignore[method-assign,assignment]
    die_with_parent()
    for line in sys.stdin:
        _, port, moment, commits = line.split()
        child = os.fork()
        if child == 0:
            die_with_parent()
            asyncio.run(serve(data, int(port), moment, int(commits)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
