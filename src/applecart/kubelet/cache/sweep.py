"""What an earlier agent left on the disk for caches: decisions are carried out, branches of Pods that are gone are removed.

Runs once, before anything else touches the disk. A branch whose Pod is still in the journal is kept as it is, trust and all;
unfinished downloads are kept, because they are what makes the next one quick.
"""

from contextlib import suppress
from pathlib import Path

from applecart.kubelet.cache.finishing import Finishing
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.records import Branch, Records
from applecart.observe.logs import logger
from applecart.tart.files import Files

log = logger(__name__)


async def sweep(
    layout: Layout, records: Records, finishing: Finishing, images: Images, files: Files, kept: set[str]
) -> list[Branch]:
    """The branches that are kept. `kept` are uids of Pods whose end is still to come."""
    for folder in layout.own_folders():
        files.make_folder(folder)
    for mount in _inside(layout.mounts):
        await images.detach(mount)
    branches = records.read_all()
    for branch in branches:
        if branch.uid not in kept:
            await end_left(finishing, branch)
    living = [branch for branch in branches if branch.uid in kept]
    vms = {branch.vm for branch in living}
    staged = {layout.staged(branch.uid) for branch in living if branch.is_decided}
    leftovers = [path for path in _inside(layout.branches) if path.name not in vms]
    leftovers += [path for path in _inside(layout.staging) if path not in staged]
    for path in [*leftovers, *_inside(layout.converging)]:
        with suppress(OSError):
            files.remove(path)
    return living


async def end_left(finishing: Finishing, branch: Branch) -> None:
    """A decision is kept; without one there is nobody left to make it, so the branch goes."""
    try:
        await finishing.carry_out(branch)
    except Exception as error:
        log.warning("a left cache volume could not be ended", uid=branch.uid, vm=branch.vm, exc_info=error)


def _inside(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []
