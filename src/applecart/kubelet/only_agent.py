"""One agent per state folder: two would tear down each other's VMs, each by its own memory of them.

The kernel holds the lock for as long as the process lives, however it ends. Programs that the agent starts do not inherit it.
Who holds it stands in the file for people only: an agent on a full disk, which must start to empty it, cannot say so.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from applecart.errors import BadInput

LOCK = "lock"
LONGEST_PID_BYTES = 32  # whatever else stands there is not read


@contextmanager
def only_agent(state: Path) -> Iterator[None]:
    """Raises BadInput while another agent works in this folder."""
    path = state / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(
            f"--state-dir {state}: its lock {path} cannot be opened ({error.strerror}); "
            "give it to the user the agent runs as, or remove it while no agent runs"
        ) from None
    try:
        _lock(handle, state)
        try:
            _sign(handle)
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough: a program that is just being started may have it too
    finally:
        os.close(handle)


def _lock(handle: int, state: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, LONGEST_PID_BYTES, 0).strip()
        process = f" (process {holder.decode()})" if holder.isdigit() else ""
        raise BadInput(f"--state-dir {state} is in use by another tart-kubelet{process}; stop it first") from None


def _sign(handle: int) -> None:
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
