"""`tart run`, `stop` and `suspend`: the process that is a VM, and how others end it.

`run` holds a lock on the VM's configuration for as long as it lives, so a VM runs exactly as long as its process. It exits 0
when the guest halts and also when the guest crashes: only its output tells the two apart.
"""

import asyncio
import signal
from pathlib import Path

from applecart.sim.tart import refusals
from applecart.sim.tart.arguments import Arguments
from applecart.sim.tart.guest_life import Guest, forget_run, halt_file, read_running
from applecart.sim.tart.guest_shares import Share, parse_share
from applecart.sim.tart.host_facts import HostFacts
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.store import CONFIG, read_config, touch
from applecart.sim.tart.suffering import suffer
from applecart.sim.tart.world import World

MOST_MACOS_GUESTS = 2  # Apple's limit per host
POLL_S = 0.1  # of `stop`
STOP_TIMEOUT_S = 30


async def run(world: World, asked: Arguments) -> int:
    vm = asked.names[0]
    if {"--graphics", "--no-graphics"} <= asked.flags:
        raise refusals.usage("run", "--graphics and --no-graphics are mutually exclusive")
    _check_disk_options(asked)
    store = world.store
    try:
        folder = store.open_local(vm)
    except refusals.Refused as refused:
        raise refusals.while_parsing(refused) from None
    shares = [parse_share(text) for text in asked.values.get("--dir", [])]
    if len(shares) > 1 and not all(share.name for share in shares):
        raise refusals.usage("run", "invalid --dir syntax: for multiple directory shares each one of them should be named")
    with Lock(folder / CONFIG) as lock:
        with Lock(store.home) as home:
            await home.take()
            await suffer(world, "run", asked.names, "during")
            if store.is_running(vm):
                raise refusals.already_running(vm)
            # Before the lock: whoever sees a VM run must not find the pid of a run that was killed.
            forget_run(store, vm)
            if not await lock.take_unless_held():
                raise refusals.already_running(vm)
            others = [name for name in store.running_names() if name != vm and read_config(store.vms / name).os == "darwin"]
            if read_config(folder).os == "darwin" and len(others) >= MOST_MACOS_GUESTS:
                raise refusals.too_many(others)
        if not HostFacts.read(store.sim).has_gui_session:
            await asyncio.sleep(world.pace.start_failure_s)
            raise refusals.no_host_key()
        if asked.flags & {"--vnc", "--vnc-experimental"}:
            words = "-".join(world.random.choices(("apple", "cart", "mini", "fleet", "node", "guest"), k=4))
            address = f"vnc://:{words}@127.0.0.1:{world.random.randint(49152, 65535)}"
            is_unseen = "--no-graphics" in asked.flags or "CI" in world.env
            await world.say(f"VNC server is running at {address}" if is_unseen else f"Opening {address}...")
        touch(folder, world.now())
        return await _run_guest(world, vm, folder, {share.name: share for share in shares})


async def _run_guest(world: World, vm: str, folder: Path, shares: dict[str, Share]) -> int:
    signals = world.kernel.catch(signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    guest = Guest(world, vm, folder, shares)
    guest.power_on()
    life = asyncio.ensure_future(guest.live())
    signalled = asyncio.ensure_future(signals.get())
    try:
        while not life.done():
            await asyncio.wait({life, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if not signalled.done():
                continue
            number, signalled = signalled.result(), asyncio.ensure_future(signals.get())
            if number != signal.SIGUSR2:
                await asyncio.sleep(world.pace.power_off_s)
                guest.powered_off()
                return 0
            if halt_file(world.store, guest.vm).exists():
                guest.halt()
            else:
                guest.ask_to_shut_down()
        if error := life.result():
            await world.say(f"guest has stopped the virtual machine due to error: {error}")
        else:
            await world.say("guest has stopped the virtual machine")
        guest.powered_off()
        return 0
    finally:
        for task in (life, signalled):
            task.cancel()
        await asyncio.gather(life, signalled, return_exceptions=True)


async def stop(world: World, asked: Arguments) -> int:
    vm = asked.names[0]
    left_s = asked.number("--timeout", asked.number("-t", STOP_TIMEOUT_S)) or 0.0
    world.store.open_local(vm)
    if not world.store.is_running(vm):
        return 0
    pid = _pid_of(world, vm)
    world.kernel.signal(pid, signal.SIGINT)
    while left_s > 0:
        if not world.store.is_running(vm):
            return 0
        await asyncio.sleep(POLL_S)
        left_s -= POLL_S
    if world.store.is_running(vm) and not world.kernel.signal(pid, signal.SIGKILL):
        raise refusals.Refused(refusals.OTHER, f"failed to forcefully terminate the VM {vm}: No such process")
    return 0


async def suspend(world: World, asked: Arguments) -> int:
    world.kernel.signal(_pid_of(world, asked.names[0]), signal.SIGUSR1)
    return 0


def _pid_of(world: World, vm: str) -> int:
    world.store.open_local(vm)
    running = read_running(world.store, vm)
    if running is None or not world.store.is_running(vm):
        raise refusals.not_running(vm)
    return running.pid


def _check_disk_options(asked: Arguments) -> None:
    for options in asked.values.get("--root-disk-opts", []):
        for option in options.split(","):
            name, _, value = option.partition("=")
            choices = {"ro": ("",), "sync": ("none", "fsync", "full"), "caching": ("automatic", "cached", "uncached")}
            if value not in choices.get(name, ()):
                raise refusals.usage("run", f'invalid root disk option: "{option}"')
    for disk in asked.values.get("--disk", []):
        path, _, _ = disk.partition(":")
        if "\0" in path or not Path(path).exists():
            raise refusals.Refused(refusals.OTHER, f"disk {path} does not exist")
