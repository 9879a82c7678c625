"""A command in a guest, joined to a client: what is typed goes in, what is printed comes out, and its exit code ends it.

Both directions wait for the slower side. A client that goes takes its command with it, and a command that hangs holds nobody
but its own client. Tart itself tells a guest without a guest agent from a command that failed only by its text.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from applecart.errors import ApplecartError
from applecart.kubelet.serve.guests import Guest, GuestCommands, State
from applecart.kubelet.serve.terminal import Streams, Terminal
from applecart.observe.logs import logger
from applecart.secrets import redact
from applecart.tart.mac import Session

DRAIN_S = 2.0  # for output that is still on its way when the command has ended; a grandchild may hold the pipe for ever
KEPT_ERR_BYTES = 4 << 10
NO_AGENT_SIGNS = (b"control socket", b"Tart Guest Agent")  # of Tart's own complaint

log = logger(__name__)
_killing: set[asyncio.Task[None]] = set()  # asyncio itself holds no task, and these outlive who began them


class CannotRun(Exception):
    """A command cannot be started; the text is for the client."""


def read_command(guest: Guest, words: Sequence[str]) -> list[str]:
    """Raises CannotRun."""
    if guest.state is State.WAITING:
        raise CannotRun(f'container "{guest.container}" in pod "{guest.pod}" is waiting to start: {guest.waiting}')
    if guest.state is State.ENDED:
        raise CannotRun(f'container "{guest.container}" in pod "{guest.pod}" has ended: its VM runs no more')
    if not words or not words[0] or any("\0" in word for word in words):
        raise CannotRun("a command needs at least one word, and no word may hold a NUL")
    return list(words)


async def open_command(commands: GuestCommands, guest: Guest, words: list[str], streams: Streams) -> Session:
    """Raises CannotRun."""
    try:
        return await commands.exec_session(guest.vm, words, stdin=streams.stdin, tty=streams.tty)
    except ApplecartError as error:
        log.warning("a command cannot be started in a guest", pod=f"{guest.namespace}/{guest.pod}", exc_info=error)
        raise CannotRun(redact(str(error))) from None


class Command:
    """One session and its client."""

    def __init__(self, session: Session, terminal: Terminal, guest: Guest) -> None:
        self._session = session
        self._terminal = terminal
        self._guest = guest
        self._printed = 0
        self._err = b""
        self._is_sending = 0

    async def run(self) -> None:
        """Until the command has ended and its client was told how; cancelled, it kills the command."""
        pumps = [asyncio.create_task(pump) for pump in (self._print_out(), self._print_err())]
        others = [asyncio.create_task(pump) for pump in (self._type(), self._resize())]
        for other in others:
            other.add_done_callback(self._ended)
        try:
            code = await self._session.wait()
            await self._drain(pumps)
            for pump in (pump for pump in pumps if pump.done()):
                pump.result()  # output that broke off is no success
            if self._has_no_agent(code):
                await self._terminal.fail(no_agent(self._guest))
            else:
                await self._terminal.finish(code)
        finally:
            for task in (*pumps, *others):
                task.cancel()
            # Also when it has ended, for what it still holds. A connection that breaks cancels its handler once more,
            # perhaps in the middle of this.
            await asyncio.shield(self._kill())
            await asyncio.gather(*pumps, *others, return_exceptions=True)

    async def _drain(self, pumps: list[asyncio.Task[None]]) -> None:
        """Wait for the rest of the output: as long as its reader takes, but not for a pipe that only stays open."""
        waiting = set(pumps)
        while waiting:
            before = self._printed
            _, waiting = await asyncio.wait(waiting, timeout=DRAIN_S)
            if waiting and self._printed == before and not self._is_sending:
                await self._kill()
                return

    def _kill(self) -> asyncio.Task[None]:
        killing = asyncio.create_task(self._session.kill())
        _killing.add(killing)
        killing.add_done_callback(_killing.discard)
        return killing

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A command that nobody can type to any more would wait for it as long as its client does."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            log.error("the input of a remote command broke, and the command is ended", exc_info=error)
            self._kill()

    async def _print_out(self) -> None:
        while data := await self._session.read_out():
            await self._send(self._terminal.out, data)

    async def _print_err(self) -> None:
        while data := await self._session.read_err():
            self._err = (self._err + data)[-KEPT_ERR_BYTES:]
            await self._send(self._terminal.err, data)

    async def _send(self, send: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
        self._is_sending += 1
        try:
            await send(data)
        finally:
            self._is_sending -= 1
        self._printed += len(data)

    async def _type(self) -> None:
        while data := await self._terminal.read():
            await self._session.write(data)
        await self._session.close_stdin()

    async def _resize(self) -> None:
        while True:
            columns, rows = await self._terminal.size()
            if columns > 0 and rows > 0:
                self._session.resize(columns, rows)

    def _has_no_agent(self, code: int) -> bool:
        return code != 0 and self._printed == len(self._err) and any(sign in self._err for sign in NO_AGENT_SIGNS)


def no_agent(guest: Guest) -> str:
    return (
        f'the guest of pod "{guest.pod}" takes no commands: Tart\'s guest agent does not run in it, or not yet; '
        "wait until the guest has booted, or install the agent in its image"
    )
