"""`tart clone`, `set`, `create`, `rename` and `delete`: local VMs, except running them.

A clone copies configuration, nvram and disk and nothing else, shares the blocks of its source, and replaces whatever had its
name without asking. It keeps its source's hardware identity until `set --random-serial`. A VM is deleted file by file: whoever
is ended in the middle leaves half of it.
"""

import asyncio
import shutil
from pathlib import Path

from applecart.sim.tart import disk_image, refusals
from applecart.sim.tart.arguments import Arguments
from applecart.sim.tart.disk_image import GB, DiskImage
from applecart.sim.tart.guest_life import forget_run, guest_files, move_run
from applecart.sim.tart.identity import fresh_disk_id, fresh_ecid, fresh_mac_address, fresh_serial
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.pulling import pull_image
from applecart.sim.tart.remote_names import remote_name
from applecart.sim.tart.store import (
    CONFIG,
    DISK,
    NVRAM,
    VmConfig,
    exists,
    read_config,
    remove,
    touch,
    write_config,
)
from applecart.sim.tart.suffering import suffer
from applecart.sim.tart.world import World

CLONE_BYTES = 64 << 20  # metadata of a copy that shares its blocks
MB = 1 << 20


async def clone(world: World, asked: Arguments) -> int:
    store = world.store
    source_name, name = asked.names
    if "/" in name:
        raise refusals.usage("clone", "<new-name> should be a local name")
    target = store.local(name)
    remote = remote_name(source_name)
    if remote and not exists(store.remote(remote)):
        await pull_image(world, remote)
    source = store.open(source_name)
    fresh = store.tmp / fresh_disk_id(world.random)
    fresh.mkdir()
    with Lock(fresh) as in_use, Lock(store.home) as home:
        await in_use.take()
        await home.take()
        config = read_config(source)
        await asyncio.sleep(world.pace.clone_s)
        if store.free_bytes() < CLONE_BYTES:
            raise refusals.no_space_to_clone()
        if not exists(source):
            raise refusals.vanished(DISK)
        if any(other.mac_address == config.mac_address for other in store.others(name)):
            config.mac_address = fresh_mac_address(world.random)
        write_config(fresh, config)
        await suffer(world, "clone", asked.names, "during")
        shutil.copyfile(source / NVRAM, fresh / NVRAM)
        disk = disk_image.read(source / DISK)
        disk.id = fresh.name
        disk_image.write(fresh / DISK, disk)
        remove(target)
        fresh.replace(target)
    touch(source, world.now())
    touch(target, world.now())
    return 0


async def change(world: World, asked: Arguments) -> int:
    """`tart set`; nothing stops it from changing a VM that runs."""
    folder = world.store.open(asked.names[0])
    config = read_config(folder)
    cpu, memory_mb = asked.number("--cpu"), asked.number("--memory")
    if cpu is not None:
        if cpu < config.least_cpu:
            raise refusals.too_small(f"{config.least_cpu} CPU cores")
        config.cpu = int(cpu)
    if memory_mb is not None:
        if memory_mb * MB < config.least_memory:
            raise refusals.too_small(f"{config.least_memory // MB} MB of memory")
        config.memory = int(memory_mb) * MB
    if "--random-mac" in asked.flags:
        config.mac_address = fresh_mac_address(world.random)
    if "--random-serial" in asked.flags:
        config.ecid, config.serial = fresh_ecid(world.random), fresh_serial(world.random)
    if (disk_gb := asked.number("--disk-size")) is not None:
        disk = disk_image.read(folder / DISK)
        if disk_gb * GB < disk.nominal_bytes:
            raise refusals.Refused(refusals.OTHER, "new disk size should be larger than the current disk size")
        disk.nominal_bytes = int(disk_gb) * GB
        disk_image.write(folder / DISK, disk)
    write_config(folder, config)
    return 0


async def create(world: World, asked: Arguments) -> int:
    folder = world.store.local(asked.names[0])
    random = world.random
    remove(folder)
    folder.mkdir()
    config = VmConfig(ecid=fresh_ecid(random), serial=fresh_serial(random), mac_address=fresh_mac_address(random))
    config.os = "linux" if "--linux" in asked.flags else "darwin"
    write_config(folder, config)
    (folder / NVRAM).write_bytes(b"nvram")
    disk = DiskImage(id=fresh_disk_id(random), nominal_bytes=int(asked.number("--disk-size", 50) or 50) * GB)
    disk.blocks = {disk.id: GB}
    disk_image.write(folder / DISK, disk)
    return 0


async def rename(world: World, asked: Arguments) -> int:
    name, new_name = asked.names
    if "/" in new_name:
        raise refusals.usage("rename", "<new-name> should be a local name")
    source, target = world.store.local(name), world.store.local(new_name)
    if not exists(source):
        raise refusals.usage("rename", f"failed to rename a non-existent local VM: {name}")
    if exists(target):
        raise refusals.usage("rename", f"failed to rename VM {name}, target VM {new_name} already exists, delete it first!")
    remove(target)  # half a VM, which counts as none
    source.replace(target)  # also of a VM that runs, which Tart does not look at
    move_run(world.store, name, new_name)
    return 0


async def delete(world: World, asked: Arguments) -> int:
    for name in asked.names:
        store = world.store
        if remote := remote_name(name):
            folder = store.remote(remote)
            if not folder.is_symlink() and not folder.is_dir():
                raise refusals.missing(name)
            await _remove(world, folder, asked)
            store.drop_unreferenced()
            continue
        folder = store.local(name)
        if not (folder / CONFIG).exists():  # Tart asks for the file that it locks, and for no other
            raise refusals.missing(name)
        with Lock(folder / CONFIG) as lock:
            if not await lock.take_unless_held():
                raise refusals.is_running(name)
            await _remove(world, folder, asked)
        forget_run(store, name)
        remove(guest_files(store, name))
    return 0


async def _remove(world: World, folder: Path, asked: Arguments) -> None:
    """By name, which is as good as any order, and the worst for us: our mark goes before Tart's own files."""
    for number, path in enumerate(_files(folder)):
        if number == 1:
            await suffer(world, "delete", asked.names, "during")
        remove(path)
        await asyncio.sleep(world.pace.delete_file_s)
    remove(folder)


def _files(folder: Path) -> list[Path]:
    return [] if folder.is_symlink() else sorted(folder.iterdir())
