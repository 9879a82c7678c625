"""Tart commands that outlived the agent that gave them.

A killed agent leaves its commands running. A clone that ends late replaces a VM of that name without a word, even one that
runs by then; a late delete removes it. So whoever goes on with a VM that another agent was making ends those first. Never
touches a `tart run`: that is the VM itself.
"""

import asyncio
import signal

from applecart.clock import Clock
from applecart.tart.failures import TartHung
from applecart.tart.mac import Mac, Process
from applecart.tart.running import tart_words

CHANGING = ("clone", "set", "delete", "stop")
ENDS_WITHIN_S = 10.0  # a killed process is gone at once, unless the disk below it hangs
LOOK_EVERY_S = 0.1


async def end_strays(mac: Mac, clock: Clock, binary: str, vm: str) -> None:
    """No command that changes the VM is under way when this returns. Call it only where none is ours."""
    give_up_at_s = clock.monotonic() + ENDS_WITHIN_S
    while strays := [process for process in await mac.processes() if changes(process, binary, vm)]:
        if clock.monotonic() > give_up_at_s:
            raise TartHung(f"a command on VM {vm} of an earlier agent cannot be ended (pid {strays[0].pid})")
        for process in strays:
            mac.signal(process.pid, signal.SIGKILL)
        await asyncio.sleep(LOOK_EVERY_S)


def changes(process: Process, binary: str, vm: str) -> bool:
    """Whether this is a Tart command that makes, changes or removes the VM; cloning from it is none."""
    verb, *arguments = tart_words(process.command, binary) or [""]
    return verb in CHANGING and vm in (arguments[1:] if verb == "clone" else arguments)
