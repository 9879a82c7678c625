"""What tests with real processes wait for, and how they look at one."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

FOREVER = "while :; do sleep 1000; done"


def sh(script: str, *words: str) -> list[str]:
    return ["/bin/sh", "-c", script, "sh", *words]


async def until(holds: Callable[[], object]) -> None:
    """Another process makes it true; pytest's own timeout is the limit."""
    while not holds():  # noqa: ASYNC110 (no event comes from over there)
        await asyncio.sleep(0.01)


async def written(path: Path) -> str:
    """The first whole line of a file that somebody else writes."""
    await until(lambda: _text(path).endswith("\n"))
    return _text(path).strip()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
