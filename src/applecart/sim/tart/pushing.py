"""`tart push`: a local VM into a registry, which takes minutes.

The folder may go while its disk is being read, because a push holds no lock: it then fails at the very end, at the nvram.
"""

import asyncio
from pathlib import Path

from applecart.sim.tart import disk_image, refusals
from applecart.sim.tart.arguments import Arguments
from applecart.sim.tart.disk_image import GB
from applecart.sim.tart.pulling import say_percent
from applecart.sim.tart.remote_names import RemoteName, remote_name
from applecart.sim.tart.store import DISK, NVRAM, read_config
from applecart.sim.tart.world import World


async def push(world: World, asked: Arguments) -> int:
    vm, *targets = asked.names
    folder = world.store.open(vm)
    remotes = [remote_name(target) for target in targets]
    for target, remote in zip(targets, remotes, strict=True):
        if remote is None:
            raise refusals.bad_remote_name(target)
    if "/" not in vm and world.store.is_running(vm):
        raise refusals.is_running(vm)
    for remote in remotes:
        assert remote is not None
        await world.say(f"pushing {vm} to {remote}...")
        world.registry.resolve(remote, "pushing manifest")
        await _push(world, folder, remote)
    return 0


async def _push(world: World, folder: Path, remote: RemoteName) -> None:
    read_config(folder)
    await world.say("pushing config...")
    disk = disk_image.read(folder / DISK)  # opened once, and read to its end although its folder may go
    await world.say(f"pushing disk... this will take a while for a {disk.allocated_bytes / GB:.1f} GB disk")
    for percent in range(101):
        await say_percent(world, percent, 100, is_first=percent == 0)
        await asyncio.sleep(disk.allocated_bytes / 100 / (world.bytes_per_s or world.pace.push_bytes_per_s))
    await world.say("pushing NVRAM...")
    if not (folder / NVRAM).exists():
        raise refusals.vanished(NVRAM)
    digest = world.registry.move(f"{remote.repository}:{remote.reference}", size_bytes=disk.allocated_bytes)
    await world.say(f"pushed {remote.at(digest)}")
