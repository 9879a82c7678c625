"""What becomes of a program that a fault strikes: it hangs, fails, crashes, crawls, or its agent dies."""

import asyncio
import signal
from collections.abc import Sequence

from applecart.sim.tart import refusals
from applecart.sim.tart.faults import Fault, When, due
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.world import World


async def suffer(world: World, verb: str, names: Sequence[str], when: When) -> None:
    """Whatever `faults.json` has for this moment."""
    with Lock(world.store.sim) as lock:
        await lock.take()
        fault = due(world.store, verb, names, when)
    if fault is not None:
        await _strike(world, verb, fault)


async def _strike(world: World, verb: str, fault: Fault) -> None:
    match fault.kind:
        case "fail":
            raise Refused(fault.code, fault.text or f"simulated failure of {verb}")
        case "no-space":
            if fault.text:
                raise Refused(refusals.OTHER, fault.text)
            raise refusals.no_space_to_clone() if verb == "clone" else refusals.no_space_to_pull()
        case "slow":
            world.bytes_per_s = fault.bytes_per_s
            await asyncio.sleep(fault.seconds)
        case "crash":
            await world.kernel.die(fault.signal)
        case "hang":
            world.kernel.catch(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if fault.with_grandchild:
                world.kernel.leave_grandchild()
            await asyncio.Event().wait()
        case "kill-agent":
            world.kernel.kill_agent()
