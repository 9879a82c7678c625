"""How full the disks inside running guests are.

Asked of each guest on its own, all at once, each with its own deadline: a guest that does not answer is left out and delays
nobody. A full guest is its Pod's trouble and never the Node's. Looks only.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from applecart.errors import ApplecartError
from applecart.tart.mac import Ended

DF_ARGV = ("/bin/df", "-k", "/")
DEADLINE_S = 15.0
FULL_PERCENT = 90  # a build that needs the last tenth of a disk fails anyway
_PERCENT = re.compile(r"(?<!\S)([0-9]{1,3})%(?!\S)")

Execute = Callable[[str, Sequence[str]], Awaitable[Ended]]  # a command inside the guest of this VM
RunningVms = Callable[[], Awaitable[Iterable[str]]]


def used_percent(df: str) -> int | None:
    """Of the last line of `df`: the first percentage is the capacity; macOS shows that of inodes after it."""
    lines = df.strip().splitlines()
    match = _PERCENT.search(lines[-1]) if lines else None
    return min(int(match[1]), 100) if match else None


def full(used: Mapping[str, int]) -> dict[str, int]:
    return {vm: percent for vm, percent in sorted(used.items()) if percent >= FULL_PERCENT}


def in_words(used: Mapping[str, int]) -> str:
    """Empty when no guest is full."""
    named = ", ".join(f"{vm} at {percent}%" for vm, percent in full(used).items())
    return f"guest root volume(s) near capacity: {named}" if named else ""


class GuestDisks:
    """Call it for the percentage used, by VM."""

    def __init__(self, running: RunningVms, execute: Execute) -> None:
        self._running = running
        self._execute = execute

    async def __call__(self) -> dict[str, int]:
        vms = list(await self._running())
        found = await asyncio.gather(*map(self._look, vms))
        return {vm: percent for vm, percent in zip(vms, found, strict=True) if percent is not None}

    async def _look(self, vm: str) -> int | None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                ended = await self._execute(vm, DF_ARGV)
        except (ApplecartError, TimeoutError):
            return None
        return used_percent(ended.out.decode("utf-8", "replace")) if ended.code == 0 else None
