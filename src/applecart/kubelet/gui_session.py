"""The login session on the Mac's screen, without which Virtualization.framework starts no VM.

Without it `tart run` dies within a second ("Failed to create new HostKey"), so it is looked for before every start, and no
Tart process is started when it is missing. What brings it back is a kick of loginwindow, which logs the auto-login user in.
A kick ends whatever session there is, so it is rare and careful: never while a VM runs (I7), never when launchctl gave no
answer, and at most once per `KICK_EVERY` per host, also over restarts of the agent. loginwindow is started anew by launchd,
never signalled by name: after it died on four hosts, `killall` had nothing to signal and failed.
"""

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.observe.logs import logger
from applecart.secrets import redact
from applecart.tart.failures import NoGuiSession
from applecart.tart.files import Files
from applecart.tart.mac import Ended, Mac
from applecart.tart.running import running_vms

KICK_EVERY = timedelta(minutes=5)  # a login takes seconds; more often only disturbs the person who repairs the host
SETTLES_IN = timedelta(seconds=30)  # what a login took at worst
LOOK_EVERY_S = 1.0
CALL_DEADLINE_S = 10.0  # launchctl answers in milliseconds, or hangs
RECORD_FILE = "gui-session.json"
AQUA = b"session = Aqua"
LONGEST_QUOTE_CHARS = 200
SEALED = (
    "If this stays, auto-login is broken: look whether /etc/kcpassword reads <sealed> "
    "and set the auto-login user and password again"
)

log = logger(__name__)


class Missing(msgspec.Struct, frozen=True):
    """No session was seen; `is_known` tells "there is none" from "nobody answered", which is no reason to kick."""

    sentence: str
    is_known: bool


class Kicked(msgspec.Struct, frozen=True):
    """The last kick; written before it, so that it counts even when the agent dies with it."""

    at: Annotated[datetime, msgspec.Meta(tz=True)]


class Kick(msgspec.Struct, frozen=True):
    """Nothing speaks against it."""


class Await(msgspec.Struct, frozen=True):
    """A kick was just made, perhaps by an agent that is gone; its session may still come."""

    seconds: float


class GiveUp(msgspec.Struct, frozen=True):
    because: str


def next_step(last: Kicked | None, running: Collection[str] | None, now: datetime) -> Kick | Await | GiveUp:
    """What to do about a missing session. `running` are the VMs that run, None when nobody knows."""
    # A record from the future is of a clock that was set back, and would forbid kicks for who knows how long.
    if last is not None and last.at <= now:
        since = now - last.at
        if since < SETTLES_IN:
            return Await((SETTLES_IN - since).total_seconds())
        if since < KICK_EVERY:
            return GiveUp(_waits_for_next(last))
    if running is None:
        return GiveUp("loginwindow is not started anew, because the processes of the host cannot be listed and a VM may run")
    if running:
        return GiveUp(f"loginwindow is not started anew, because that would end the running VM {', '.join(sorted(running))}")
    return Kick()


class GuiSession:
    """Of the user the agent runs as. `is_needed` is False where VMs need no session, and then nothing is ever looked at."""

    def __init__(
        self,
        mac: Mac,
        files: Files,
        clock: Clock,
        *,
        uid: int,
        state: Path,
        tart_binary: str,
        is_needed: bool = True,
        on_kick: Callable[[], None] = lambda: None,
    ) -> None:
        self._mac = mac
        self._files = files
        self._clock = clock
        self._uid = uid
        self._record = state / RECORD_FILE
        self._tart_binary = tart_binary
        self._is_needed = is_needed
        self._on_kick = on_kick
        self._one_at_a_time = asyncio.Lock()
        self._last = self._read()

    async def check(self) -> str | None:
        """Why no VM can start, or None when one can. Only looks."""
        missing = await self._missing() if self._is_needed else None
        return missing.sentence if missing else None

    async def ensure(self) -> None:
        """Returns when there is a session. Raises `NoGuiSession`; all who come meanwhile share one attempt."""
        if not self._is_needed:
            return
        async with self._one_at_a_time:
            missing = await self._missing()
            if missing is None:
                return
            if not missing.is_known:
                raise NoGuiSession(missing.sentence)
            step = next_step(self._last, await self._running(), self._clock.now())
            if isinstance(step, Kick):
                await self._kick()
                step = Await(SETTLES_IN.total_seconds())
            if isinstance(step, Await) and await self._comes_within(step.seconds):
                return
            because = step.because if isinstance(step, GiveUp) else self._came_to_nothing()
            raise NoGuiSession(f"{missing.sentence}; {because}")

    async def _missing(self) -> Missing | None:
        try:
            ended = await self._mac.run(["sudo", "-n", "launchctl", "print", f"gui/{self._uid}"], deadline_s=CALL_DEADLINE_S)
        except (ApplecartError, OSError) as error:
            return Missing(f"nobody can say whether a user is logged in on the screen: {error}", is_known=False)
        if ended.code == 0 and AQUA in ended.out:
            return None
        if ended.err.startswith(b"sudo:"):
            return Missing(f"sudo without a password is needed to see the login session: {_said(ended)}", is_known=False)
        return Missing(f"user {self._uid} is not logged in on the screen of this host, so no VM can start", is_known=True)

    async def _comes_within(self, seconds: float) -> bool:
        until_s = self._clock.monotonic() + seconds
        while self._clock.monotonic() < until_s:
            await asyncio.sleep(LOOK_EVERY_S)
            if await self._missing() is None:
                log.info("a login session is back", uid=self._uid)
                return True
        return False

    async def _kick(self) -> None:
        self._write(Kicked(self._clock.now()))
        self._on_kick()
        log.warning("no login session on the screen: loginwindow is started anew", uid=self._uid)
        try:
            ended = await self._mac.run(
                ["sudo", "-n", "launchctl", "kickstart", "-k", "system/com.apple.loginwindow"], deadline_s=CALL_DEADLINE_S
            )
        except (ApplecartError, OSError) as error:
            log.error("loginwindow could not be started anew", why=str(error))  # a session may come all the same
        else:
            if ended.code:
                log.error("loginwindow could not be started anew", code=ended.code, said=_said(ended))

    async def _running(self) -> Collection[str] | None:
        try:
            return running_vms(await self._mac.processes(), self._tart_binary)
        except (ApplecartError, OSError) as error:
            log.error("the processes of the host cannot be listed", why=str(error))
            return None

    def _came_to_nothing(self) -> str:
        assert self._last is not None
        return _waits_for_next(self._last)

    def _read(self) -> Kicked | None:
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=Kicked)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.error("the record of the last login kick cannot be read and counts for nothing", why=str(error))
            return None

    def _write(self, kicked: Kicked) -> None:
        try:
            self._files.write(self._record, msgspec.json.encode(kicked))
        except OSError as error:
            raise NoGuiSession(
                f"no user is logged in on the screen, and loginwindow is not started anew because {self._record} cannot be "
                f"written ({error.strerror}): without it every restart of the agent would do it again"
            ) from error
        self._last = kicked


def _waits_for_next(last: Kicked) -> str:
    return (
        f"loginwindow was started anew at {last.at:%H:%M:%S} UTC and no session came within "
        f"{SETTLES_IN.total_seconds():.0f} s; the next try may be at {last.at + KICK_EVERY:%H:%M:%S} UTC. {SEALED}"
    )


def _said(ended: Ended) -> str:
    return redact((ended.err or ended.out).decode(errors="replace").strip())[:LONGEST_QUOTE_CHARS]
