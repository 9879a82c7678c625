"""Fetching an image with curl: resumed where it broke off, also by the next job or the next agent.

Large images never arrived when every interruption began anew. What was fetched stays beside the masters under its digest until
it is whole, overtaken or disproved. The address is signed and so a secret: curl reads it from a file, never from its argv. It
came from a guest, so what lies there may be of any size, and of it no more is taken than was promised room for.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from applecart.clock import Clock
from applecart.errors import ApplecartError, Permanent, Transient
from applecart.observe.logs import logger
from applecart.secrets import Secret, redact
from applecart.tart.files import Files
from applecart.tart.mac import Mac

DEADLINE_S = 1800.0  # for all attempts together
ATTEMPTS = 3
FIRST_PAUSE_S = 20.0  # doubled each time, with up to half of it added by chance so that hosts do not come back together
STALL_S = 60  # under a kilobyte per second for this long is a dead connection
CANNOT_RESUME = 33  # curl: the server does not serve ranges, or has another file now
TOO_LARGE = 63  # curl: more than it was allowed to fetch
NOTHING_LEFT = b"416"  # HTTP: the range begins where the file ends

log = logger(__name__)


class DownloadFailed(Transient):
    """It did not arrive; what did is kept."""


class TooLarge(Permanent):
    """It has no place here; nothing of it is kept."""


class Download:
    def __init__(self, mac: Mac, files: Files, clock: Clock, largest_bytes: int) -> None:
        self._mac = mac
        self._files = files
        self._clock = clock
        self._largest_bytes = largest_bytes

    async def fetch(self, url: Secret, partial: Path, config: Path) -> None:
        """The whole file is at `partial` when this returns. `config` is where curl finds the address meanwhile."""
        self._files.write(config, f'url = "{url.reveal()}"\n'.encode())
        try:
            await self._attempts(partial, config)
        finally:
            with suppress(OSError):
                self._files.remove(config)

    async def _attempts(self, partial: Path, config: Path) -> None:
        ends_at_s = self._clock.monotonic() + DEADLINE_S
        said = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                pause_s = FIRST_PAUSE_S * 2 ** (attempt - 1)
                await asyncio.sleep(pause_s * (1 + self._clock.random.random() / 2))
            left_s = ends_at_s - self._clock.monotonic()
            if left_s <= 0:
                break
            said = await self._attempt(partial, config, left_s)
            self._refuse_too_large(partial)  # whatever curl said: not every version counts what comes without a length
            if not said:
                return
            log.info("a download of a cache broke off", file=partial.name, attempt=attempt + 1, why=said)
        raise DownloadFailed(f"{partial.name} could not be fetched: {said or 'out of time'}")

    async def _attempt(self, partial: Path, config: Path, left_s: float) -> str:
        """Empty when it is whole, else why not."""
        options = ("-q", "-g", "-fsS", "--proto", "=https", "--max-redirs", "0", "--max-time", f"{left_s:.0f}")
        stall = ("--speed-limit", "1024", "--speed-time", str(STALL_S))
        most = ("--max-filesize", str(max(1, self._largest_bytes - _size_bytes(partial))))  # of what is still to come
        files = (*_resumed(partial), "-o", str(partial), "-K", str(config), "-w", "%{http_code}")
        argv = ["/usr/bin/curl", *options, *stall, *most, *files]
        try:
            ended = await self._mac.run(argv, deadline_s=left_s)
        except ApplecartError as error:
            return str(error)
        if ended.out.strip() == NOTHING_LEFT:
            return ""  # an earlier agent died between the last byte and its next step; whether it is whole, its digest says
        if ended.code == TOO_LARGE:
            self._give_up(partial)
        if ended.code == CANNOT_RESUME:
            self._files.remove(partial)
        said = redact(ended.err[-300:].decode("utf-8", "replace")).strip()
        return f"curl ended with code {ended.code}: {said}" if ended.code else ""

    def _refuse_too_large(self, partial: Path) -> None:
        if _size_bytes(partial) > self._largest_bytes:
            self._give_up(partial)

    def _give_up(self, partial: Path) -> NoReturn:
        self._files.remove(partial)
        raise TooLarge(f"{partial.name} is larger than the {self._largest_bytes} bytes that a cache may take here")


def _size_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _resumed(partial: Path) -> tuple[str, ...]:
    return ("-C", "-") if partial.exists() else ()
