"""What a simulated program may ask of the machine it runs on, and the streams it was given.

Two kinds exist: `this_kernel.py` is the real machine, for the executable; `processes.py` is a table in this process, which also
works on virtual time. A program that is killed runs no more of its code than a real one would: cleaning up is never left to
`finally`, only closing what the system would close as well.
"""

import asyncio
from typing import NoReturn, Protocol

from applecart.sim.guest_programs import Terminal


class Streams(Terminal, Protocol):
    """A write that nobody reads any longer raises BrokenPipeError, which ends a program as SIGPIPE does."""


class Kernel(Protocol):
    @property
    def pid(self) -> int: ...

    def catch(self, *numbers: int) -> "asyncio.Queue[int]":
        """From now on these signals arrive here, instead of ending the program."""

    def signal(self, pid: int, number: int) -> bool:
        """False when there is no such process."""

    async def gone(self, pid: int) -> None:
        """Returns once there is no such process."""

    async def die(self, number: int) -> NoReturn:
        """End by a signal, at once."""

    def leave_grandchild(self) -> None:
        """Start a process that does nothing but hold our output open."""

    def kill_agent(self) -> None: ...
