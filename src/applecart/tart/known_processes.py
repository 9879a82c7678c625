"""Whether a process is still the one we knew: a pid alone says nothing once its owner is dead, or the host was started anew.

A process is its pid and its start. What cannot be seen (a `ps` that fails) is never taken for an end: a VM would be torn down
under its job (I7). Nobody signals a process that was not recognised right before.
"""

import os

from applecart.errors import Transient
from applecart.tart.programs import run_program
from applecart.tart.ps import PS_ENV, is_same_start, normal

PS_DEADLINE_S = 10.0  # it takes milliseconds; a host that cannot list its processes cannot do much else
NO_SUCH_PROCESS = 1  # the code of a `ps` that found nothing, which says nothing then


class KnownProcesses:
    """Remembers whom it recognised, so that a look every second costs no fork."""

    def __init__(self) -> None:
        self.recognised: set[tuple[int, str]] = set()

    async def is_alive(self, pid: int, began: str) -> bool:
        """Whether the process with this pid and start runs. Raises when that cannot be seen."""
        if not send(pid, 0):
            self.forget(pid, began)
            return False
        if (pid, began) not in self.recognised:
            if not await _is_same(pid, began):
                return False
            self.recognised.add((pid, began))  # no pid is used again between two looks a second apart
        return True

    async def signal(self, pid: int, began: str, number: int) -> bool:
        """False when that process is gone. It is recognised anew: nobody may have looked since it was."""
        return send(pid, 0) and await _is_same(pid, began) and send(pid, number)

    def forget(self, pid: int, began: str) -> None:
        self.recognised.discard((pid, began))


def send(pid: int, number: int) -> bool:
    """A signal to whoever has the pid now; 0 asks whether somebody does."""
    if pid <= 0:
        return False  # to the kernel that would be a whole group
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # gone; or the pid is another user's process by now
        return False
    return True


async def _is_same(pid: int, began: str) -> bool:
    answer = await run_program(["ps", "-o", "lstart=", "-p", str(pid)], deadline_s=PS_DEADLINE_S, env=PS_ENV)
    found = normal(answer.out.decode("ascii", "replace"))
    if answer.code == NO_SUCH_PROCESS and not found and not answer.err.strip():
        return False
    if answer.code or not found:
        said = answer.err[-200:].decode("utf-8", "replace").strip() or "nothing"
        raise Transient(f"whether process {pid} lives cannot be seen: ps ended with code {answer.code} and said {said}")
    return is_same_start(found, began)
