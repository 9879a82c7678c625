"""One guest's metrics, passed on: who may ask, for what, and where the guest is.

The guest's address is believed for half a minute after it was seen; a failure is never remembered. What went wrong stands in
the log, and the caller learns only that it did (an address or an error text is nothing for whoever can reach the port).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from applecart.clock import Clock
from applecart.errors import ApplecartError, Unreachable
from applecart.kubelet.serve.guest_http import GuestAnswer, get
from applecart.kubelet.serve.scrape_sources import Network, is_allowed
from applecart.observe.logs import logger
from applecart.tart.mac import Mac

PATH = "/metrics"
ADDRESS_GOOD_S = 30.0
UPSTREAM_S = 10.0  # for the whole answer of the guest; scrapers give up at 10 s by default
RESOLVE_S = 5.0
LONGEST_BODY_BYTES = 16 << 20
MOST_AT_ONCE = 4  # each holds a whole answer in memory
PASSED_REQUEST_HEADERS = ("accept", "accept-encoding", "x-prometheus-scrape-timeout-seconds")
PASSED_ANSWER_HEADERS = ("content-type", "content-encoding")
TEXT = {"content-type": "text/plain; charset=utf-8"}

log = logger(__name__)


class ScrapeRequest(msgspec.Struct, frozen=True):
    source: str  # address of the caller
    method: str
    path: str
    query: str = ""  # as it stands in the request
    headers: Mapping[str, str] = {}  # by lower-case name


class ScrapeAnswer(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: TEXT)


FORBIDDEN = ScrapeAnswer(403, b"forbidden\n")
NOT_FOUND = ScrapeAnswer(404, b"not found\n")
NOT_ALLOWED = ScrapeAnswer(405, b"method not allowed\n")
BAD_GATEWAY = ScrapeAnswer(502, b"bad gateway\n")


class Scrape:
    def __init__(
        self,
        mac: Mac,
        port: int,
        allowed: Sequence[Network],
        resolve: Callable[[], Awaitable[str | None]],
        clock: Clock,
    ) -> None:
        self._mac = mac
        self._port = port
        self._allowed = allowed
        self._refused: Sequence[Network] = ()
        self._resolve = resolve
        self._clock = clock
        self._address = ""
        self._good_until_s = 0.0
        self._turn = asyncio.Semaphore(MOST_AT_ONCE)

    def refuse(self, networks: Sequence[Network]) -> None:
        """Whatever is allowed."""
        self._refused = networks

    def seen_at(self, address: str) -> None:
        self._address = address
        self._good_until_s = self._clock.monotonic() + ADDRESS_GOOD_S

    async def answer(self, request: ScrapeRequest) -> ScrapeAnswer:
        if not is_allowed(request.source, self._allowed, self._refused):
            return FORBIDDEN
        if request.path != PATH:
            return NOT_FOUND
        if request.method not in ("GET", "HEAD"):
            return NOT_ALLOWED
        try:
            async with self._turn:
                found = await self._ask(request)
        except ApplecartError as error:
            self._address = ""
            log.warning("metrics of a guest cannot be forwarded", port=self._port, exc_info=error)
            return BAD_GATEWAY
        if len(found.body) > LONGEST_BODY_BYTES:
            log.warning("metrics of a guest are too long to be forwarded", port=self._port, most_bytes=LONGEST_BODY_BYTES)
            return BAD_GATEWAY
        passed = {name: found.headers[name] for name in PASSED_ANSWER_HEADERS if name in found.headers}
        return ScrapeAnswer(found.status, found.body if request.method == "GET" else b"", passed)

    async def _ask(self, request: ScrapeRequest) -> GuestAnswer:
        address = await self._where()
        path = f"{PATH}?{request.query}" if request.query else PATH
        headers = {name: request.headers[name] for name in PASSED_REQUEST_HEADERS if name in request.headers}
        return await get(self._mac, address, self._port, path, headers, UPSTREAM_S, LONGEST_BODY_BYTES + 1)

    async def _where(self) -> str:
        if self._address and self._clock.monotonic() < self._good_until_s:
            return self._address
        try:
            async with asyncio.timeout(RESOLVE_S):
                address = await self._resolve()
        except TimeoutError:
            address = None
        if not address:
            raise Unreachable("the address of the guest is not known")
        self.seen_at(address)
        return address
