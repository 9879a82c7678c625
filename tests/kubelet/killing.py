"""Killing an agent at an exact point of its life: before, during or after any one of its calls to the world.

The world is what the agent reaches through its three seams: the Mac, its files, the API. A kill happens at the n-th call;
from then on nothing the agent does has an effect, also what its `finally` blocks try, just as after `kill -9`.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from applecart.kube.transport import Request, Response, Stream, Transport
from applecart.tart.files import Files
from applecart.tart.mac import Connection, Detached, Disk, Ended, Mac, Process, RunEnd, Session

T = TypeVar("T")

Moment = Literal["before", "during", "after"]
DURING_S = 0.1  # a command takes longer, and goes on without the agent that gave it
NOISE = ("/leases", "/nodes", "/events")  # a heartbeat is the same whenever the agent dies


class AgentKilled(BaseException):
    """The agent does not exist any more. No `except Exception` of its own may catch that."""


class Kill:
    """Counts the calls of one agent and kills it at one of them."""

    def __init__(self, at: int | None = None, moment: Moment = "before") -> None:
        self.calls: list[str] = []
        self.is_dead = False
        self.dead = asyncio.Event()
        self.on_death: Callable[[], None] = lambda: None  # its programs live on without it
        self._at = at
        self.moment: Moment = moment

    def enter(self, what: str) -> bool:
        """Called before every call; whether the agent dies in it or right after it."""
        self.refuse_dead()
        self.calls.append(what)
        is_the_one = len(self.calls) == self._at
        if is_the_one and self.moment == "before":
            self.die()
        return is_the_one

    def leave(self, dies: bool) -> None:
        self.refuse_dead()
        if dies:
            self.die()

    def die(self) -> NoReturn:
        self.is_dead = True
        self.dead.set()
        self.on_death()
        raise AgentKilled

    def refuse_dead(self) -> None:
        if self.is_dead:
            raise AgentKilled


class KillableMac:
    """A Mac as one agent sees it."""

    def __init__(self, mac: Mac, kill: Kill) -> None:
        self._mac = mac
        self._kill = kill

    async def run(self, argv: Sequence[str], **options: Any) -> Ended:
        dies = self._kill.enter(" ".join(argv[:3]))
        running = asyncio.ensure_future(self._mac.run(argv, **options))
        if dies and self._kill.moment == "during":
            await asyncio.wait([running], timeout=DURING_S)
            self._kill.leave(dies)
        ended = await running
        self._kill.leave(dies)
        return ended

    async def start(self, argv: Sequence[str], **options: Any) -> Detached:
        dies = self._kill.enter("start " + " ".join(argv[:3]))
        detached = await self._mac.start(argv, **options)
        self._kill.leave(dies)
        return _Detached(detached, self._kill)

    async def adopt(self, folder: Path) -> Detached | None:
        dies = self._kill.enter(f"adopt {folder.name}")
        detached = await self._mac.adopt(folder)
        self._kill.leave(dies)
        return detached and _Detached(detached, self._kill)

    async def open(self, argv: Sequence[str], **options: Any) -> Session:
        self._kill.refuse_dead()
        return await self._mac.open(argv, **options)

    async def processes(self) -> list[Process]:
        self._kill.refuse_dead()
        return await self._mac.processes()

    def signal(self, pid: int, number: int) -> bool:
        dies = self._kill.enter(f"signal {number}")
        sent = self._mac.signal(pid, number)
        self._kill.leave(dies)
        return sent

    def disk(self, path: Path) -> Disk:
        self._kill.refuse_dead()
        return self._mac.disk(path)

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
        self._kill.refuse_dead()
        return await self._mac.connect(address, port, deadline_s=deadline_s)


class _Detached:
    def __init__(self, detached: Detached, kill: Kill) -> None:
        self._detached = detached
        self._kill = kill

    @property
    def pid(self) -> int | None:
        return self._detached.pid

    async def wait(self) -> RunEnd:
        end = await self._detached.wait()
        self._kill.refuse_dead()
        return end

    async def signal(self, number: int) -> bool:
        dies = self._kill.enter(f"signal {number}")
        sent = await self._detached.signal(number)
        self._kill.leave(dies)
        return sent


class KillableFiles(Files):
    """The disk as one agent writes it."""

    def __init__(self, kill: Kill) -> None:
        self._kill = kill

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        self._do(f"write {path.name}", lambda: super(KillableFiles, self).write(path, data, mode))

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        self._do(f"make {path.name}", lambda: super(KillableFiles, self).make_folder(path, mode))

    def remove(self, path: Path) -> None:
        self._do(f"remove {path.name}", lambda: super(KillableFiles, self).remove(path))

    def move(self, source: Path, target: Path) -> None:
        self._do(f"move {source.name}", lambda: super(KillableFiles, self).move(source, target))

    def empty(self, path: Path) -> None:
        self._do(f"empty {path.name}", lambda: super(KillableFiles, self).empty(path))

    def _do(self, what: str, act: Callable[[], None]) -> None:
        dies = self._kill.enter(what)
        act()
        self._kill.leave(dies)


class KillableTransport:
    """The API as one agent reaches it. Reads change nothing, so only writes are points to die at."""

    def __init__(self, transport: Transport, kill: Kill) -> None:
        self._transport = transport
        self._kill = kill

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or any(noise in request.path for noise in NOISE):
            self._kill.refuse_dead()
            response = await self._transport.send(request)
            self._kill.refuse_dead()
            return response
        dies = self._kill.enter(f"{request.method} {request.path.rsplit('/', 2)[-2:]}")
        response = await self._transport.send(request)
        self._kill.leave(dies)
        return response

    async def open(self, request: Request) -> Stream:
        self._kill.refuse_dead()
        return await self._transport.open(request)

    async def aclose(self) -> None:
        await self._transport.aclose()
