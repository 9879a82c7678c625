"""The simulated Tart: one command line in, what Tart would do to its home, an exit code out.

The same code is the executable and the Tart of a simulated Mac. It never ends in a traceback over its input: what it does not
understand is refused in Tart's words.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from applecart.clock import Clock
from applecart.sim.tart import executing, pulling, pushing, refusals, running, show, vms
from applecart.sim.tart.arguments import VERBS, Arguments, parse
from applecart.sim.tart.host_facts import HostFacts, Pace
from applecart.sim.tart.kernel import Kernel, Streams
from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.store import Store
from applecart.sim.tart.suffering import suffer
from applecart.sim.tart.world import World

VERSION = "2.32.1"
KEEPS_TMP = frozenset({"pull", "clone"})  # every other command cleans up first

Command = Callable[[World, Arguments], Awaitable[int]]


async def _nothing(_: World, __: Arguments) -> int:
    return 0


COMMANDS: dict[str, Command] = {
    "clone": vms.clone,
    "create": vms.create,
    "delete": vms.delete,
    "exec": executing.execute,
    "fqn": show.show_full_name,
    "get": show.get,
    "ip": show.show_address,
    "list": show.show_list,
    "login": _nothing,
    "logout": _nothing,
    "prune": show.prune,
    "pull": pulling.pull,
    "push": pushing.push,
    "rename": vms.rename,
    "run": running.run,
    "set": vms.change,
    "stop": running.stop,
    "suspend": running.suspend,
}


async def tart(
    argv: Sequence[str], env: Mapping[str, str], streams: Streams, kernel: Kernel, clock: Clock, pace: Pace, home: Path
) -> int:
    """`argv` is without the program's own name. A broken pipe is the caller's to turn into an exit code."""
    try:
        store = Store(home)
        world = World(store, env, streams, kernel, clock, HostFacts.read(store.sim).pace or pace)
        asked = parse(argv)
        if asked.wants_help:
            await world.say(VERSION if asked.verb == "--version" else f"USAGE: tart <{' | '.join(sorted(VERBS))}>")
            return 0
        return await _carry_out(world, asked)
    except Refused as refused:
        await streams.err(refused.text.encode(errors="replace") + b"\n")
        return refused.code
    except BrokenPipeError:
        raise
    except OSError as error:
        await streams.err(f"The operation couldn't be completed. {error.strerror or error}\n".encode(errors="replace"))
        return refusals.OTHER


async def _carry_out(world: World, asked: Arguments) -> int:
    if world.pace.command_s:
        await asyncio.sleep(world.pace.command_s)
    await suffer(world, asked.verb, asked.names, "before")
    if asked.verb not in KEEPS_TMP:
        try:
            world.store.clean_tmp()
        except OSError as error:
            await world.streams.err(f"Failed to perform garbage collection!\n{error}\n".encode(errors="replace"))
    code = await COMMANDS[asked.verb](world, asked)
    await suffer(world, asked.verb, asked.names, "after")
    return code
