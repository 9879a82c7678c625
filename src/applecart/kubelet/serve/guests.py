"""What the endpoint must know of the rest of the agent: which guests there are, and how to run a command in one.

A VM Pod has exactly one container, so a guest is found by its Pod. Whoever implements this answers from memory: nothing here
may wait for Tart or for the API.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec

from applecart.api.pods import Pod
from applecart.tart.mac import Ended, Session

GUEST_LOG = "runner.log"  # what a guest calls its own log in its status share


class State(StrEnum):
    WAITING = "waiting"  # no VM was started yet
    RUNNING = "running"
    ENDED = "ended"  # it runs no more, and never again


class Guest(msgspec.Struct, frozen=True):
    namespace: str
    pod: str
    container: str
    uid: str
    vm: str
    state: State
    vm_log: Path  # what `tart run` printed
    share: Path  # the folder that the guest writes to; never trusted
    kept_log: Path | None = None  # the guest's log, cleaned, once the guest has ended
    waiting: str = "ContainerCreating"  # why it waits, as the Pod's status says
    has_begun: bool = True  # a VM was started for this Pod; before that, a log of its name is of an earlier Pod
    never_ran: str = ""  # why it ended without a VM
    staged: Path | None = None  # the folder with what the guest was given
    secret_names: tuple[str, ...] = ()  # of the variables there that nobody may see (I9)


class Guests(Protocol):
    def find(self, namespace: str, pod: str) -> Guest | None: ...

    def running(self) -> Iterable[Guest]: ...

    def pods(self) -> Iterable[Pod]:
        """The Pods bound to this node, as the agent knows them."""


class GuestCommands(Protocol):
    """The part of the Tart driver that reaches into a guest."""

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended: ...

    async def exec_session(self, vm: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session: ...
