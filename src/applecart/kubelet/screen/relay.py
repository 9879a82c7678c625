"""One guest's screen, shown to viewers who know the token.

A viewer must come from an allowed address, send its token within seconds and in one short line, and is then joined to the
guest's own VNC server: bytes both ways, each side read only as fast as the other takes them. Whatever either side sends ends
at worst its own connection. Why a guest's screen failed stands in the log; a viewer learns only that it did.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from applecart.clock import Clock
from applecart.errors import ApplecartError, DeadlineExceeded, Unreachable
from applecart.kubelet.screen import rfb, token
from applecart.kubelet.screen.endpoint import LOOPBACK, Endpoint
from applecart.kubelet.screen.wire import Wire, WrongWords
from applecart.kubelet.serve.scrape_sources import Network, is_allowed
from applecart.observe.logs import Logger
from applecart.tart.mac import Connection, Mac

TOKEN_S = 5.0  # a viewer's program sends it at once
DIAL_S = 5.0
GREETING_S = 30.0  # both sides are programs that answer at once; a slow link is granted some round trips
IDLE_S = 1800.0  # without a byte either way: the person is gone, or the connection is
CLOSE_S = 2.0
MOST_CONNECTIONS = 16  # a screen has a handful of viewers; whoever opens more wants something else
NO_SCREEN = "The screen of this guest does not answer. It may be starting or shutting down; try again."


class Relay:
    def __init__(
        self,
        mac: Mac,
        clock: Clock,
        log: Logger,
        *,
        token_hash: str,
        endpoint: Callable[[], Endpoint | None],
        allowed: Sequence[Network],
    ) -> None:
        """`endpoint` says where the screen is at the moment; it is asked for every viewer anew."""
        self._mac = mac
        self._clock = clock
        self._log = log
        self._token_hash = token_hash
        self._endpoint = endpoint
        self._allowed = allowed
        self._viewers: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def accept(self, connection: Connection, source: str) -> None:
        """Serve a viewer in a task of its own."""
        task = asyncio.create_task(self.serve(connection, source), name=f"viewer from {source}")
        self._viewers.add(task)
        task.add_done_callback(self._viewers.discard)

    async def serve(self, connection: Connection, source: str) -> None:
        viewer = Wire(connection)
        log = self._log.bind(source=source)
        async with _closing(viewer):
            try:
                await self._admit(viewer, source)
                await self._show(viewer, log)
            except TimeoutError:
                log.info("a viewer was too slow and is disconnected")
            except ApplecartError as error:
                log.info("a viewer is disconnected", because=str(error))
            except Exception as error:
                log.error("a viewer is disconnected, unexpectedly", exc_info=error)

    async def aclose(self) -> None:
        """Disconnects everybody."""
        self._is_closed = True
        viewers = list(self._viewers)
        for task in viewers:
            task.cancel()
        await asyncio.gather(*viewers, return_exceptions=True)

    async def _admit(self, viewer: Wire, source: str) -> None:
        if not is_allowed(source, self._allowed):
            raise WrongWords("its address is not an allowed one")
        if self._is_closed or len(self._viewers) > MOST_CONNECTIONS:
            raise WrongWords("there are too many connections already")
        async with asyncio.timeout(TOKEN_S):
            line = await viewer.line(token.LONGEST_LINE_BYTES)
        if not token.is_opened_by(line, self._token_hash):
            raise WrongWords("its first line is not the token of this screen")

    async def _show(self, viewer: Wire, log: Logger) -> None:
        async with asyncio.timeout(GREETING_S):
            version = await rfb.greet_viewer(viewer)
        try:
            screen = await self._dial()
        except ApplecartError:
            with suppress(TimeoutError, ApplecartError):  # what is told in the log is why there is no screen
                async with asyncio.timeout(CLOSE_S):
                    await rfb.turn_away(viewer, version, NO_SCREEN)
            raise
        async with _closing(screen):
            async with asyncio.timeout(GREETING_S):
                await rfb.let_in(viewer, version)
                await screen.write(await viewer.exactly(1))  # whether the viewer shares the screen with others
            log.info("a viewer sees the screen of a guest")
            await self._join(viewer, screen)
            log.info("a viewer has left the screen of a guest")

    async def _dial(self) -> Wire:
        """The guest's screen, logged in."""
        endpoint = self._endpoint()
        if endpoint is None:
            raise Unreachable("Tart has not said where the screen of this VM is")
        screen = Wire(await self._mac.connect(LOOPBACK, endpoint.port, deadline_s=DIAL_S))
        try:
            async with asyncio.timeout(DIAL_S):
                await rfb.log_in(screen, endpoint.password)
        except TimeoutError:
            await _close(screen)
            raise DeadlineExceeded(f"the guest's screen did not take the password within {DIAL_S:g} s") from None
        except BaseException:
            await _close(screen)
            raise
        return screen

    async def _join(self, viewer: Wire, screen: Wire) -> None:
        """Until one of them ends, or nothing was said for long."""
        moved_at_s = self._clock.monotonic()

        async def copy(source: Wire, target: Wire) -> None:
            nonlocal moved_at_s
            while data := await source.piece():
                await target.write(data)
                moved_at_s = self._clock.monotonic()

        async def idle() -> None:
            left_s = IDLE_S
            while left_s > 0:
                await asyncio.sleep(left_s)
                left_s = moved_at_s + IDLE_S - self._clock.monotonic()

        tasks = [asyncio.create_task(work) for work in (copy(viewer, screen), copy(screen, viewer), idle())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, Unreachable):
                raise end


@asynccontextmanager
async def _closing(wire: Wire) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await _close(wire)


async def _close(wire: Wire) -> None:
    """A peer that takes nothing any more must not hold the task."""
    with suppress(TimeoutError, ApplecartError, OSError):
        async with asyncio.timeout(CLOSE_S):
            await wire.aclose()
