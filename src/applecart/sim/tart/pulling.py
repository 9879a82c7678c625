"""`tart pull`: an image from a registry into the cache.

A pull is resumable: it works in `tmp/<md5 of the name>`, which stays behind when it is killed and is removed when it is
interrupted. Layers that are already there, or in another cached image, are not fetched again.
"""

import asyncio
import os
import signal
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from random import Random

import msgspec

from applecart.sim.tart import disk_image, refusals
from applecart.sim.tart.arguments import Arguments
from applecart.sim.tart.disk_image import GB, DiskImage
from applecart.sim.tart.identity import fresh_ecid, fresh_mac_address, fresh_serial
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.remote_names import RemoteName, remote_name
from applecart.sim.tart.store import (
    DISK,
    EXPLICIT,
    MANIFEST,
    NVRAM,
    VmConfig,
    accessed_at,
    exists,
    remove,
    touch,
    write_config,
)
from applecart.sim.tart.suffering import suffer
from applecart.sim.tart.world import World

SPARE_BYTES = 128 << 20  # Tart wants this much beyond the image itself
NO_PRUNE_VARIABLE = "TART_NO_AUTO_PRUNE"
UP_ONE_LINE = "\x1b[1A\r\x1b[J"  # how Tart draws over its last line, unless CI is set


async def pull(world: World, asked: Arguments) -> int:
    name = asked.names[0]
    if "/" not in name and exists(world.store.local(name)):
        await world.say(f'"{name}" is a local image, nothing to pull here!')
        return 0
    remote = remote_name(name)
    if remote is None:
        raise refusals.bad_remote_name(name)
    await pull_image(world, remote)
    return 0


async def pull_image(world: World, name: RemoteName) -> None:
    """Returns when the image is in the cache; an interrupt removes what was fetched so far."""
    interrupts = world.kernel.catch(signal.SIGINT)
    work = asyncio.ensure_future(_pull(world, name))
    interrupted = asyncio.ensure_future(interrupts.get())
    try:
        await asyncio.wait({work, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            remove(_partial(world, name))
            raise refusals.Refused(refusals.OTHER, "CancellationError()")
        work.result()
    finally:
        for task in (work, interrupted):
            task.cancel()
        await asyncio.gather(work, interrupted, return_exceptions=True)


async def _pull(world: World, name: RemoteName) -> None:
    store = world.store
    await world.say("pulling manifest...")
    await asyncio.sleep(world.pace.manifest_s)
    digest = name.at(world.registry.resolve(name))
    if name != digest and exists(store.remote(digest)) and _leads_to(store.remote(name), store.remote(digest)):
        await world.say(f"{digest} image is already cached and linked!")
        touch(store.remote(digest), world.now())
        return
    host = store.images / name.host
    host.mkdir(parents=True, exist_ok=True)
    with Lock(host) as lock:
        if not lock.try_take():
            await world.say("waiting for lock...")
            await lock.take()
        if exists(store.remote(digest)):
            await world.say(f"{digest} image is already cached! creating a symlink...")
        else:
            await _fetch(world, name, digest)
        folder = store.remote(digest)
        if name == digest:
            (folder / EXPLICIT).touch()
        else:
            _link(store.remote(name), digest.reference)
            store.drop_unreferenced()
        touch(folder, world.now())


async def _fetch(world: World, name: RemoteName, digest: RemoteName) -> None:
    store, layers = world.store, world.registry.layers(digest.reference)
    partial = _partial(world, name)
    partial.mkdir(exist_ok=True)
    with Lock(partial) as lock:
        await lock.take()
        size = sum(layers.values())
        if NO_PRUNE_VARIABLE not in world.env:
            make_room(world, size + SPARE_BYTES)
        write_config(partial, _config_of(digest))
        await world.say(f"pulling disk ({size / GB:.1f} GB compressed)...")
        await _fetch_disk(world, partial / DISK, name, digest, layers)
        await world.say("pulling NVRAM...")
        (partial / NVRAM).write_bytes(b"nvram")
        (partial / MANIFEST).write_bytes(msgspec.json.encode({"schemaVersion": 2, "layers": list(layers)}))
        folder = store.remote(digest)
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove(folder)
        partial.replace(folder)


async def _fetch_disk(world: World, path: Path, name: RemoteName, digest: RemoteName, layers: dict[str, int]) -> None:
    """Percent by percent, layer after layer; whatever does not fit ends it."""
    here: set[str] = set()
    for _, folder in world.store.cached():
        with suppress(OSError):
            here |= disk_image.read(folder / DISK).blocks.keys()
    kept: dict[str, int] = {}
    with suppress(FileNotFoundError):  # a layer that was cut off is fetched again
        kept = {layer: size for layer, size in disk_image.read(path).blocks.items() if size == layers.get(layer)}
    kept |= {layer: layers[layer] for layer in layers if layer in here}
    disk = DiskImage(id=digest.reference, image=str(digest), blocks=kept)
    disk_image.write(path, disk)
    size = sum(layers.values())
    await say_percent(world, disk.allocated_bytes, size, is_first=True)
    for number, (layer, layer_bytes) in enumerate(layers.items()):
        if number == len(layers) // 2:
            await suffer(world, "pull", [str(name)], "during")
        rate = world.bytes_per_s or world.pace.pull_bytes_per_s
        while disk.blocks.get(layer, 0) < layer_bytes:
            piece = min(max(1, size // 100), layer_bytes - disk.blocks.get(layer, 0))
            if world.store.free_bytes() < piece:
                raise refusals.no_space_to_pull()
            await asyncio.sleep(piece / rate)
            disk.blocks[layer] = disk.blocks.get(layer, 0) + piece
            disk_image.write(path, disk, grow=True)
            await say_percent(world, disk.allocated_bytes, size)


async def say_percent(world: World, done: int, of: int, *, is_first: bool = False) -> None:
    line = f"{100 * done // of if of else 100}%"
    await world.say(line if is_first or "CI" in world.env else UP_ONE_LINE + line)


def make_room(world: World, wanted_bytes: int) -> None:
    """Delete the least recently used images until it fits; nothing at all when all of them would not do."""
    store = world.store
    short = wanted_bytes - store.free_bytes()
    if short <= 0:
        return
    found = sorted((accessed_at(folder), folder) for name, folder in store.cached() if "@" in name)
    sizes = [(folder, disk_image.read(folder / DISK).allocated_bytes) for _, folder in found]
    if sum(size for _, size in sizes) < short:
        return
    for folder, size in sizes:
        if short <= 0:
            break
        remove(folder)
        short -= size
    store.drop_unreferenced()


def _partial(world: World, name: RemoteName) -> Path:
    return world.store.tmp / md5(str(name).encode(), usedforsecurity=False).hexdigest()


def _leads_to(link: Path, folder: Path) -> bool:
    """The whole path counts, as it does for Tart: links of a home that was moved lead out of it."""
    return link.is_symlink() and Path(os.readlink(link)) == folder


def _link(link: Path, digest: str) -> None:
    remove(link)
    link.symlink_to(link.parent / digest)


def _config_of(digest: RemoteName) -> VmConfig:
    """The same for everybody who pulls it."""
    random = Random(digest.reference)
    return VmConfig(ecid=fresh_ecid(random), serial=fresh_serial(random), mac_address=fresh_mac_address(random))
