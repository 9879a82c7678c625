"""`tart get`, `list`, `ip`, `fqn` and `prune`: looking at what is there.

The same size is text in `get` and a number in `list`, as in Tart. An address comes from the DHCP leases, so a VM that halted
still has one.
"""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from applecart.sim.tart import disk_image, refusals
from applecart.sim.tart.arguments import Arguments
from applecart.sim.tart.disk_image import GB
from applecart.sim.tart.leases import read_leases
from applecart.sim.tart.remote_names import remote_name
from applecart.sim.tart.store import DISK, accessed_at, read_config, remove
from applecart.sim.tart.vms import MB
from applecart.sim.tart.world import World


async def get(world: World, asked: Arguments) -> int:
    name = asked.names[0]
    folder = world.store.open(name)
    config, disk = read_config(folder), disk_image.read(folder / DISK)
    is_running = remote_name(name) is None and world.store.is_running(name)
    row = {
        "OS": config.os,
        "CPU": config.cpu,
        "Memory": config.memory // MB,
        "Disk": disk.nominal_bytes // GB,
        "DiskFormat": "raw",
        "Size": f"{disk.allocated_bytes / GB:.3f}",
        "Display": "{width}x{height}".format_map({"width": 1024, "height": 768, **config.display}),
        "Running": is_running,
        "State": _state(is_running),
    }
    await _show(world, asked, [row], row)
    return 0


async def show_list(world: World, asked: Arguments) -> int:
    rows: list[dict[str, Any]] = []
    store = world.store
    if asked.value("--source") in ("", "local"):
        rows += [_row("local", name, store.vms / name, is_running=store.is_running(name)) for name in store.local_names()]
    if asked.value("--source") in ("", "oci"):
        rows += [_row("OCI", name, folder, is_running=False) for name, folder in sorted(store.cached())]
    if asked.flags & {"-q", "--quiet"}:
        for row in rows:
            await world.say(row["Name"])
        return 0
    await _show(world, asked, rows, rows)
    return 0


async def show_address(world: World, asked: Arguments) -> int:
    folder = world.store.open(asked.names[0])
    wait_s = asked.number("--wait", 0) or 0
    waited_s = 0.0
    while True:
        address = read_leases(world.store.sim).address_of(read_config(folder).mac_address, world.now())
        if address:
            await world.say(address)
            return 0
        if waited_s >= wait_s:
            raise refusals.no_address()
        await asyncio.sleep(world.pace.look_every_s)
        waited_s += world.pace.look_every_s


async def show_full_name(world: World, asked: Arguments) -> int:
    remote = remote_name(asked.names[0])
    if remote is None:
        raise refusals.bad_remote_name(asked.names[0])
    folder = world.store.open(asked.names[0])
    await world.say(str(remote.at(folder.resolve().name)))
    return 0


async def prune(world: World, asked: Arguments) -> int:
    days, budget_gb = asked.number("--older-than"), asked.number("--space-budget", asked.number("--cache-budget"))
    if days is None and budget_gb is None and "--gc" not in asked.flags:
        raise refusals.usage("prune", "at least one pruning criteria must be specified")
    store = world.store
    if asked.value("--entries", "caches") == "vms":
        found = [store.vms / name for name in store.local_names() if not store.is_running(name)]
    else:
        found = [folder for name, folder in store.cached() if "@" in name]
    if days is not None:
        for folder in found:
            if accessed_at(folder) < world.now() - timedelta(days=days):
                remove(folder)
    if budget_gb is not None:
        _keep_within(budget_gb * GB, [folder for folder in found if folder.exists()])
    store.drop_unreferenced()
    return 0


def _keep_within(budget_bytes: float, found: list[Path]) -> None:
    """The most recently used stay, as long as they fit."""
    for folder in sorted(found, key=accessed_at, reverse=True):
        size = disk_image.read(folder / DISK).allocated_bytes
        if size > budget_bytes:
            remove(folder)
        else:
            budget_bytes -= size


def _row(source: str, name: str, folder: Path, *, is_running: bool) -> dict[str, Any]:
    try:
        disk, accessed = disk_image.read(folder / DISK), accessed_at(folder)
    except OSError:
        raise refusals.missing(name) from None  # deleted while we looked: Tart fails as well
    return {
        "Source": source,
        "Name": name,
        "Disk": disk.nominal_bytes // GB,
        "Size": disk.allocated_bytes // GB,
        "Accessed": accessed.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Running": is_running,
        "State": _state(is_running),
    }


def _state(is_running: bool) -> str:
    return "running" if is_running else "stopped"


async def _show(world: World, asked: Arguments, rows: list[dict[str, Any]], shape: Any) -> None:
    if asked.value("--format", "text") == "json":
        text = msgspec.json.format(msgspec.json.encode(shape), indent=2).decode().replace("/", "\\/")
        await world.say(text)
        return
    if rows:
        await world.say(" ".join(rows[0]))
    for row in rows:
        await world.say(" ".join(str(value) for value in row.values()))
