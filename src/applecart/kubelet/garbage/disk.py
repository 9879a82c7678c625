"""How full the guests' disks are, asked of each guest by `df`.

A guest that hangs, has no agent or prints nonsense is left out; it delays no other, because all are asked at once and each has
its own deadline (I13). Only reads.
"""

import asyncio
import re
from collections.abc import Iterable

from applecart.errors import ApplecartError
from applecart.observe.logs import logger
from applecart.tart.driver import Tart

DEADLINE_S = 15.0  # a guest under full load answers in a second or two
COMMAND = ("/bin/df", "-k", "/")
FULL_PERCENT = 90  # from here on a job is likely to fail for want of space

# Blocks, used, free, then Capacity. macOS prints a second percentage behind it: inodes, which are never short.
_CAPACITY = re.compile(r"\s\d+\s+\d+\s+-?\d+\s+(\d{1,3})%(?:\s|$)")

log = logger(__name__)


def capacity_percent(df: str) -> int | None:
    """Of the last file system listed; None when this is not what `df` prints."""
    lines = df.strip().splitlines()
    found = _CAPACITY.search(lines[-1]) if lines else None
    return int(found[1]) if found else None


async def guest_disks(tart: Tart, vms: Iterable[str]) -> dict[str, int]:
    """Percent used, by VM."""
    names = sorted(set(vms))
    answers = await asyncio.gather(*(_ask(tart, vm) for vm in names))
    return {vm: percent for vm, percent in zip(names, answers, strict=True) if percent is not None}


async def _ask(tart: Tart, vm: str) -> int | None:
    try:
        ended = await tart.exec(vm, COMMAND, deadline_s=DEADLINE_S)
    except ApplecartError as error:
        log.debug("a guest does not say how full its disk is", vm=vm, why=str(error))
        return None
    return capacity_percent(ended.out.decode("utf-8", "replace")) if ended.code == 0 else None
