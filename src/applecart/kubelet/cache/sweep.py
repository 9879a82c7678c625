"""What an earlier agent left on the disk for caches: decisions are carried out, branches of Pods that are gone are removed.

Runs once, before anything else touches the disk. A branch whose Pod is still in the journal is kept as it is, trust and all;
unfinished downloads are kept, because they are what makes the next one quick. Whatever one leftover is made of, it keeps
nobody from the others: a disk that cannot be swept would be a disk that nobody gets a cache from.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from applecart.kubelet.cache.finishing import Finishing
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.records import Branch, Records
from applecart.observe.logs import logger
from applecart.tart.files import Files

REMOVAL_DEADLINE_S = 60.0  # of each leftover, side by side; its place is free at once, and the rest goes on unwatched
END_DEADLINE_S = 600.0  # of one left branch: attached, walked through and detached at their own deadlines, and then removed

log = logger(__name__)


async def sweep(
    layout: Layout, records: Records, finishing: Finishing, images: Images, files: Files, kept: set[str]
) -> list[Branch]:
    """The branches that are kept. `kept` are uids of Pods whose end is still to come."""
    await images.detach_left()
    branches = records.read_all()
    await asyncio.gather(*(end_left(finishing, branch) for branch in branches if branch.uid not in kept))
    living = [branch for branch in branches if branch.uid in kept]
    folders = {layout.branch(branch.uid) for branch in living}
    staged = {layout.staged(branch.uid) for branch in living if branch.is_decided}
    leftovers = [path for path in _inside(layout.branches) if path not in folders]
    leftovers += [path for path in _inside(layout.staging) if path not in staged]
    await asyncio.gather(*(_remove(files, path) for path in [*leftovers, *_inside(layout.converging)]))
    return living


async def end_left(finishing: Finishing, branch: Branch) -> None:
    """A decision is kept; without one there is nobody left to make it, so the branch goes."""
    try:
        async with asyncio.timeout(END_DEADLINE_S):
            await finishing.carry_out(branch)
    except Exception as error:
        log.warning("a left cache volume could not be ended", uid=branch.uid, vm=branch.vm, exc_info=error)


async def _remove(files: Files, path: Path) -> None:
    try:
        async with asyncio.timeout(REMOVAL_DEADLINE_S):
            await files.remove_aside(path)
    except Exception as error:
        log.warning("something left on the disk for caches cannot be removed", path=str(path), exc_info=error)


def _inside(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []
