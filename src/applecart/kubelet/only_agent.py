"""One agent per state folder: two would tear down each other's VMs, each by its own memory of them.

The kernel holds the lock for as long as the process lives, however it ends. Programs that the agent starts do not inherit it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from applecart.errors import BadInput

LOCK = "lock"


@contextmanager
def only_agent(state: Path) -> Iterator[None]:
    """Raises BadInput while another agent works in this folder."""
    with os.fdopen(os.open(state / LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read(32).strip()
            process = f" (process {holder})" if holder.isdigit() else ""
            raise BadInput(f"--state-dir {state} is in use by another tart-kubelet{process}; stop it first") from None
        try:
            lock.truncate()
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: a program that is just being started may have it too
