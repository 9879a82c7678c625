"""Metrics of guests on their host's address: guests cannot be reached from outside, their hosts can.

A Pod that asks for it by annotation gets a listener on the node's address that passes on GET and HEAD of `/metrics`, from
allowed sources only, and nothing else. One port belongs to one Pod: a second one that wants it keeps the guest's own address,
so that nobody scrapes one Pod under the name of another, and a Warning says so. An answer never tells why a guest failed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from applecart.api.annotations import PROMETHEUS_PORT, PROMETHEUS_SCRAPE
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import ApplecartError, BadInput
from applecart.kubelet.serve.scrape import Scrape, ScrapeAnswer, ScrapeRequest
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED, PRIVATE_IPV6, Network
from applecart.observe.logs import logger
from applecart.tart.guest_connection import bridge_networks
from applecart.tart.mac import Mac

IFCONFIG, IFCONFIG_S = ("/sbin/ifconfig",), 5.0

log = logger(__name__)


class Listening(Protocol):
    async def aclose(self) -> None:
        """No new connections at once; those under way get a few seconds."""


class Listen(Protocol):
    """Serve HTTP on an address; the seam to sockets. Raises OSError."""

    async def __call__(self, host: str, port: int, answer: Callable[[ScrapeRequest], Awaitable[ScrapeAnswer]]) -> Listening: ...


class _Forward(msgspec.Struct):
    pod: str  # for people
    port: int
    scrape: Scrape
    listening: Listening | None = None


def scrape_port(annotations: Mapping[str, str]) -> int | None:
    """The port a Pod wants forwarded; None when it wants none. Raises BadInput."""
    if annotations.get(PROMETHEUS_SCRAPE) != "true" or PROMETHEUS_PORT not in annotations:
        return None
    text = annotations[PROMETHEUS_PORT]
    if not text.isascii() or not text.isdecimal() or len(text) > 5 or not 1 <= int(text) <= 65535:
        raise BadInput(f"the annotation {PROMETHEUS_PORT} is {text[:40]!r}; write a port from 1 to 65535")
    return int(text)


class Forwarders:
    def __init__(
        self,
        mac: Mac,
        node_ip: str,
        clock: Clock,
        *,
        resolve: Callable[[str], Awaitable[str | None]],
        warn: Callable[[Pod, str], None],
        allowed: Sequence[Network] = DEFAULT_ALLOWED,
        listen: Listen | None = None,
    ) -> None:
        """`resolve` gives the address of the guest of a Pod's uid, `warn` records an Event. Without a node IP all is off."""
        self._mac = mac
        self._node_ip = node_ip
        self._clock = clock
        self._resolve = resolve
        self._warn = warn
        self._allowed = tuple(allowed) or DEFAULT_ALLOWED
        self._listen = listen
        self._forwards: dict[str, _Forward] = {}  # by the Pod's uid
        self._said: dict[str, str] = {}

    async def sync(self, pod: Pod, vm_ip: str) -> bool:
        """Make it as the Pod wants it; whether its metrics are on the node's address now."""
        port = self._wanted(pod)
        forward = self._forwards.get(pod.uid)
        if forward is not None and forward.port != port:
            await self.stop(pod.uid)
            forward = None
        if port is None:
            return False
        if forward is None:
            forward = await self._start(pod, port)
        if forward is None:
            return False
        forward.scrape.seen_at(vm_ip)
        return forward.listening is not None

    async def stop(self, uid: str) -> None:
        """Harmless when there is nothing to stop."""
        self._said.pop(uid, None)
        forward = self._forwards.pop(uid, None)
        if forward is not None and forward.listening is not None:
            await forward.listening.aclose()

    async def aclose(self) -> None:
        for uid in list(self._forwards):
            await self.stop(uid)

    def _wanted(self, pod: Pod) -> int | None:
        try:
            port = scrape_port(pod.metadata.annotations)
        except BadInput as error:
            self._say(pod, f"metrics are not forwarded: {error}")
            return None
        return port if self._node_ip else None

    async def _start(self, pod: Pod, port: int) -> _Forward | None:
        other = next((one for one in self._forwards.values() if one.port == port), None)
        if other is not None:
            self._say(pod, f"metrics are not forwarded: port {port} of the node forwards those of {other.pod}")
            return None
        scrape = Scrape(self._mac, port, self._allowed, lambda: self._resolve(pod.uid), self._clock)
        # Noted before it listens, so that a Pod that comes meanwhile finds the port taken.
        forward = self._forwards[pod.uid] = _Forward(f"{pod.namespace}/{pod.name}", port, scrape)
        try:
            scrape.refuse(await self._networks_of_guests())
            listening = await (self._listen or _http_listen())(self._node_ip, port, scrape.answer)
        except OSError as error:
            self._forwards.pop(pod.uid, None)
            self._say(pod, f"metrics are not forwarded: port {port} of the node cannot be used ({error.strerror or 'taken'})")
            return None
        except BaseException:
            self._forwards.pop(pod.uid, None)
            raise
        if self._forwards.get(pod.uid) is not forward:
            await listening.aclose()  # it was stopped meanwhile
            return None
        forward.listening = listening
        self._said.pop(pod.uid, None)
        log.info("metrics of a guest are forwarded", object=pod, port=port)
        return forward

    async def _networks_of_guests(self) -> Sequence[Network]:
        """Over IPv6; asked for when a guest has come up, because their bridge comes and goes with the guests."""
        if ":" not in self._node_ip:
            return ()
        try:
            told = await self._mac.run(IFCONFIG, deadline_s=IFCONFIG_S)
        except ApplecartError as error:
            log.warning("the network of guests is not known, so no private IPv6 address may scrape", exc_info=error)
            return PRIVATE_IPV6
        return bridge_networks(told.out.decode("utf-8", "replace")) or PRIVATE_IPV6

    def _say(self, pod: Pod, sentence: str) -> None:
        """Once, not at every look."""
        if self._said.get(pod.uid) != sentence:
            self._said[pod.uid] = sentence
            self._warn(pod, sentence)


def _http_listen() -> Listen:
    # aiohttp's server takes a while to import, and most hosts forward nothing.
    from applecart.kubelet.serve.scrape_listener import listen_http

    return listen_http
