"""`tart exec`: a command inside a guest that runs, with its streams and its exit code.

The command ends with the guest. What it writes to the guest's files stays there for the next one.
"""

import asyncio
import signal

from applecart.sim.guest_programs import Terminal
from applecart.sim.tart import refusals
from applecart.sim.tart.arguments import Arguments
from applecart.sim.tart.guest_life import guest_files, halt_file, read_running
from applecart.sim.tart.guest_shell import Inside, run_inside
from applecart.sim.tart.json_file import load, save
from applecart.sim.tart.world import World

AGENT_TIMEOUT_S = 1.0  # Tart gives the guest's agent this long to answer


class _NoStdin:
    """Without -i nothing that is typed reaches the guest."""

    def __init__(self, streams: Terminal) -> None:
        self.out = streams.out
        self.err = streams.err
        self.size = streams.size

    async def read(self) -> bytes:
        return b""


async def execute(world: World, asked: Arguments) -> int:
    vm, *command = asked.names
    store = world.store
    store.open_local(vm)
    running = read_running(store, vm)
    if running is None or not store.is_running(vm):
        raise refusals.not_running(vm)
    if not running.answers or running.behaviour is None:
        await asyncio.sleep(AGENT_TIMEOUT_S)
        raise refusals.no_guest_agent()
    await asyncio.sleep(world.pace.exec_s)
    files = guest_files(store, vm)
    inside = Inside(vm, running.behaviour, world.clock, load(files, dict[str, bytes]) or {})
    before = dict(inside.files)
    terminal: Terminal = world.streams if "-i" in asked.flags else _NoStdin(world.streams)
    work = asyncio.ensure_future(run_inside(inside, command, terminal))
    gone = asyncio.ensure_future(world.kernel.gone(running.pid))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise refusals.Refused(refusals.OTHER, "Error: the connection to the guest was lost: unavailable (14)")
        code = work.result()
    finally:
        for task in (work, gone):
            task.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)
    if inside.files != before:
        save(files, inside.files)
    if inside.halts:
        halt_file(store, vm).touch()
        world.kernel.signal(running.pid, signal.SIGUSR2)
    return code
