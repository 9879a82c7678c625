"""Whether the disk for caches is there.

A folder that is not a mount point is the boot disk: caches on it once filled a host that looked idle. So the question is asked
before every use, by a program, because a look at a dead disk may never return.
"""

import asyncio
from pathlib import Path

from applecart.errors import ApplecartError
from applecart.observe.logs import logger
from applecart.tart.mac import Mac

LOOK_DEADLINE_S = 30.0
TRIES = 12  # after a start of the Mac its disks come up within a minute or two
PAUSE_S = 10.0

log = logger(__name__)


async def is_mounted(mac: Mac, root: Path) -> bool:
    """Whether the root lies on another device than the folder it is in."""
    try:
        ended = await mac.run(["/usr/bin/stat", "-f", "%d", str(root), str(root.parent)], deadline_s=LOOK_DEADLINE_S)
    except ApplecartError as error:
        log.warning("the disk for caches cannot be looked at", root=str(root), exc_info=error)
        return False
    devices = ended.out.split()
    return ended.code == 0 and len(devices) == 2 and devices[0] != devices[1]


async def wait_for_mount(mac: Mac, root: Path) -> bool:
    for attempt in range(TRIES):
        if await is_mounted(mac, root):
            return True
        if not attempt:
            log.warning("the disk for caches is not mounted; jobs run without a cache until it is", root=str(root))
        await asyncio.sleep(PAUSE_S)
    log.error("the disk for caches did not come up", root=str(root), waited_s=TRIES * PAUSE_S)
    return False
