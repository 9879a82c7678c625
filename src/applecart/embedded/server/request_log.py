"""One line of JSON for each request: who asked for what, and what was answered.

Names and paths only: no body, no header, no token reaches the file. Lines are written by a thread of their own, in batches, so
that a slow disk delays nobody. Requests matter more than their log: while it cannot be written its lines are dropped, which is
said, and it is tried again every minute.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from applecart.clock import Clock
from applecart.errors import Transient
from applecart.observe.logs import logger

AGAIN_IN_S = 60.0
ROTATE_BYTES = 64 << 20  # the file before is kept as .1
_log = logger(__name__)


class RequestLog:
    """The log of a server; `file` None writes nothing."""

    def __init__(self, file: Path | None, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closing = False  # seen by the writing thread
        if file is not None:
            self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
            self._thread.start()

    def now(self) -> float:
        return self._clock.monotonic()

    def write(self, method: str, path: str, user: str, status: int, remote: str | None, started: float) -> None:
        if self._thread is None:
            return
        line = {
            "time": self._clock.now().isoformat(timespec="milliseconds"),
            "method": method,
            "path": path,
            "user": user,
            "status": status,
            "from": remote,
            "ms": round((self._clock.monotonic() - started) * 1000, 2),
        }
        self._lines.put(msgspec.json.encode(line))

    def close(self) -> None:
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        assert self._file is not None
        while not self._is_closing:
            try:
                while self._write_to(self._file):
                    self._file.replace(self._file.with_name(f"{self._file.name}.1"))
            except OSError as error:  # a full disk, which ends the server soon by itself
                self._wait_out(Transient(f"{self._file} cannot be written: {error.strerror or error}"))
            except Exception as error:  # any: lines that nobody takes would fill the memory
                self._wait_out(error)

    def _wait_out(self, error: Exception) -> None:
        _log.warning("requests cannot be logged, trying again later", file=str(self._file), exc_info=error)
        dropped, until_s = 0, time.monotonic() + AGAIN_IN_S
        with suppress(Empty):
            while not self._is_closing:
                self._is_closing = self._lines.get(timeout=max(0.0, until_s - time.monotonic())) is None
                dropped += not self._is_closing
        _log.warning("trying to log requests again", dropped=dropped)

    def _write_to(self, file: Path) -> bool:
        """Append lines until the file is large (then True) or the log is closed."""
        with file.open("ab") as out:
            while out.tell() < ROTATE_BYTES:
                batch = [self._lines.get()]
                time.sleep(0.05)
                while not self._lines.empty():
                    batch.append(self._lines.get())
                self._is_closing = None in batch
                if written := [line for line in batch if line is not None]:
                    out.write(b"\n".join(written) + b"\n")
                    out.flush()
                if self._is_closing:
                    return False
        return True
