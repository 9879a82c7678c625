"""Metrics of guests on their host's address: virtual time for the rules, real sockets for the way through."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from applecart.api.annotations import PROMETHEUS_PORT, PROMETHEUS_SCRAPE
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import BadInput, Transient
from applecart.kubelet.serve.forwarder import Forwarders, scrape_port
from applecart.kubelet.serve.scrape import ADDRESS_GOOD_S, LONGEST_BODY_BYTES, ScrapeAnswer, ScrapeRequest
from applecart.kubelet.serve.scrape_listener import HttpListening, listen_http
from applecart.tart.mac import Ended
from applecart.tart.this_mac import ThisMac
from tests.kubelet.serve.pages import METRICS, PagesMac, Ports, page
from tests.virtual_time import elapse

NODE_IP = "10.0.0.7"
GUEST = "192.168.64.5"


def pod(name: str = "job", port: str | None = "9091", scrape: str = "true") -> Pod:
    annotations = {PROMETHEUS_SCRAPE: scrape} | ({PROMETHEUS_PORT: port} if port is not None else {})
    return Pod(metadata=ObjectMeta(name=name, namespace="ci", uid=f"uid-{name}", annotations=annotations))


class Host:
    """One host: its guests, its ports, and what was said about its Pods."""

    def __init__(self, clock: Clock, node_ip: str = NODE_IP) -> None:
        self.mac = PagesMac()
        self.mac.pages[GUEST, 9091] = page()
        self.ports = Ports()
        self.said: list[tuple[str, str]] = []
        self.resolved: list[str] = []
        self.address: str | None = GUEST
        self.forwarders = Forwarders(
            self.mac.as_mac,
            node_ip,
            clock,
            resolve=self._resolve,
            warn=lambda pod, text: self.said.append((pod.name, text)),
            listen=self.ports,
        )

    async def _resolve(self, uid: str) -> str | None:
        self.resolved.append(uid)
        return self.address


@pytest.fixture
def host(clock: Clock) -> Host:
    return Host(clock)


async def test_a_pod_that_asks_for_it_is_forwarded_on_the_nodes_address_alone(host: Host) -> None:
    """Incident 40: scrapers cannot route to guests, and a listener on every address was open to the internet."""
    assert await host.forwarders.sync(pod(), GUEST)
    assert host.ports.bound == [(NODE_IP, 9091)]
    answer = await host.ports.get(9091)
    assert (answer.status, answer.body, dict(answer.headers)) == (200, METRICS, {"content-type": "text/plain"})
    assert await host.forwarders.sync(pod(), GUEST)
    assert len(host.ports.bound) == 1


@pytest.mark.parametrize(
    ("method", "path", "source", "status"),
    [
        ("GET", "/metrics", "10.0.0.9", 200),
        ("HEAD", "/metrics", "10.0.0.9", 200),
        ("GET", "/", "10.0.0.9", 404),
        ("GET", "/metrics/", "10.0.0.9", 404),
        ("GET", "/metrics/../secrets", "10.0.0.9", 404),
        ("POST", "/metrics", "10.0.0.9", 405),
        ("DELETE", "/metrics", "10.0.0.9", 405),
        ("GET", "/metrics", "8.8.8.8", 403),
        ("POST", "/secrets", "8.8.8.8", 403),
        ("GET", "/metrics", GUEST, 403),
    ],
)
async def test_only_metrics_are_read_and_only_by_whom_may(host: Host, method: str, path: str, source: str, status: int) -> None:
    """Incident 40 and weakness 29: who may scrape, and what."""
    await host.forwarders.sync(pod(), GUEST)
    answer = await host.ports.get(9091, path, method=method, source=source)
    assert answer.status == status
    assert bool(host.mac.dialled) is (status == 200)
    assert method != "HEAD" or answer.body == b""


async def test_a_query_and_the_scrapers_wishes_go_to_the_guest(host: Host) -> None:
    await host.forwarders.sync(pod(), GUEST)
    headers = {"accept": "text/plain;version=0.0.4", "authorization": "Bearer x", "cookie": "y"}
    await host.ports.open[9091](ScrapeRequest("10.0.0.9", "GET", "/metrics", "name[]=up", headers))
    asked = host.mac.connections[0].request
    assert asked.startswith(b"GET /metrics?name[]=up HTTP/1.1\r\n")
    assert b"version=0.0.4" in asked
    assert b"uthorization" not in asked
    assert b"ookie" not in asked


@pytest.mark.parametrize(
    ("source", "status"),
    [("fd12:3456:789a:1::5", 403), ("fe80::42", 403), ("192.168.64.9", 403), ("fd7a:115c:a1e0::1", 200), ("::1", 200)],
)
async def test_guests_may_not_scrape_a_node_with_an_ipv6_address_either(clock: Clock, source: str, status: int) -> None:
    """Weakness 29, over IPv6: the network of guests is another one on every host, and its bridge tells which."""
    host = Host(clock, node_ip="fd7a:115c:a1e0::53")
    assert await host.forwarders.sync(pod(), GUEST)
    assert (await host.ports.get(9091, source=source)).status == status
    await elapse(ADDRESS_GOOD_S)
    await host.forwarders.sync(pod(), GUEST)
    assert host.mac.ran == ["/sbin/ifconfig"]


@pytest.mark.parametrize("told", [Ended(1), Ended(0), Transient("no fork")])
async def test_where_the_network_of_guests_is_not_known_no_private_ipv6_address_may_scrape(
    clock: Clock, told: Ended | Exception
) -> None:
    host = Host(clock, node_ip="2001:db8::7")
    host.mac.ifconfig = told
    assert await host.forwarders.sync(pod(), GUEST)
    statuses = [(await host.ports.get(9091, source=source)).status for source in ("fd7a::1", "fe80::1", "10.0.0.9", "::1")]
    assert statuses == [403, 403, 200, 200]


async def test_a_guest_that_fails_is_a_502_that_tells_nothing(host: Host) -> None:
    """Incident 40: the answer told whoever asked the addresses and errors of the inside."""
    host.mac.pages.clear()
    await host.forwarders.sync(pod(), GUEST)
    answer = await host.ports.get(9091)
    assert (answer.status, answer.body) == (502, b"bad gateway\n")
    split = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\nX-Evil: 1\r\nContent-Length: 2\r\n\r\nhi"
    for odd in (b"", b"not http\r\n\r\n", split, page(b"x" * (LONGEST_BODY_BYTES + 1))):
        host.mac.pages[GUEST, 9091] = odd
        assert (await host.ports.get(9091)).body == b"bad gateway\n"


async def test_a_guests_own_status_is_passed_on(host: Host) -> None:
    host.mac.pages[GUEST, 9091] = page(b"busy", "503 Service Unavailable")
    await host.forwarders.sync(pod(), GUEST)
    answer = await host.ports.get(9091)
    assert (answer.status, answer.body) == (503, b"busy")


async def test_an_address_is_good_for_half_a_minute(host: Host) -> None:
    await host.forwarders.sync(pod(), GUEST)
    for _ in range(3):
        await host.ports.get(9091)
    assert host.resolved == []
    await elapse(ADDRESS_GOOD_S)
    for _ in range(3):
        assert (await host.ports.get(9091)).status == 200
    assert host.resolved == ["uid-job"]


async def test_a_failure_is_not_remembered(host: Host) -> None:
    """Incident 40: one failed lookup was kept, and the Pod was down for half a minute more."""
    await host.forwarders.sync(pod(), GUEST)
    await elapse(ADDRESS_GOOD_S)
    host.address = None
    assert (await host.ports.get(9091)).status == 502
    host.address = GUEST
    assert (await host.ports.get(9091)).status == 200
    host.mac.pages.clear()
    assert (await host.ports.get(9091)).status == 502
    host.mac.pages["192.168.64.6", 9091] = page()
    host.address = "192.168.64.6"
    assert (await host.ports.get(9091)).status == 200


async def test_a_lookup_that_hangs_is_given_up(host: Host) -> None:
    await host.forwarders.sync(pod(), GUEST)
    await elapse(ADDRESS_GOOD_S)
    forever = asyncio.Event()

    async def hang(_: str) -> str | None:
        await forever.wait()
        return None

    host.forwarders._resolve = hang
    assert (await host.ports.get(9091)).status == 502


async def test_a_port_belongs_to_one_pod_and_the_second_is_warned_once(host: Host) -> None:
    """Incident 40: two Pods with one port were scraped under each other's names."""
    assert await host.forwarders.sync(pod("a"), GUEST)
    for _ in range(3):
        assert not await host.forwarders.sync(pod("b"), "192.168.64.6")
    assert host.said == [("b", "metrics are not forwarded: port 9091 of the node forwards those of ci/a")]
    await host.ports.get(9091)
    assert host.mac.dialled == [GUEST]
    await host.forwarders.stop("uid-a")
    host.mac.pages["192.168.64.6", 9091] = page(b"b 1\n")
    assert await host.forwarders.sync(pod("b"), "192.168.64.6")
    assert (await host.ports.get(9091)).body == b"b 1\n"


async def test_two_pods_at_the_same_moment_do_not_share_a_port(host: Host) -> None:
    bound = await asyncio.gather(host.forwarders.sync(pod("a"), GUEST), host.forwarders.sync(pod("b"), GUEST))
    assert list(bound) == [True, False]


async def test_a_port_that_something_else_has_keeps_the_guests_address(host: Host) -> None:
    await host.ports(NODE_IP, 9091, host.ports.get)  # type: ignore[arg-type]
    assert not await host.forwarders.sync(pod(), GUEST)
    assert host.said == [("job", "metrics are not forwarded: port 9091 of the node cannot be used (Address already in use)")]
    host.ports.open.clear()
    assert await host.forwarders.sync(pod(), GUEST)


async def test_stopping_is_harmless_whenever_it_comes(host: Host) -> None:
    await host.forwarders.stop("uid-job")
    await host.forwarders.sync(pod(), GUEST)
    for _ in range(3):
        await host.forwarders.stop("uid-job")
    assert host.ports.open == {}
    starting = asyncio.create_task(host.forwarders.sync(pod(), GUEST))
    await asyncio.sleep(0)
    await host.forwarders.stop("uid-job")
    assert not await starting
    assert host.ports.open == {}
    await host.forwarders.sync(pod(), GUEST)
    await host.forwarders.aclose()
    await host.forwarders.aclose()
    assert host.ports.open == {}


async def test_a_slow_end_of_one_delays_no_other(host: Host, clock: Clock) -> None:
    host.ports.drain_s = 5.0
    await host.forwarders.sync(pod("a"), GUEST)
    stopping = asyncio.create_task(host.forwarders.stop("uid-a"))
    await asyncio.sleep(0)
    assert await host.forwarders.sync(pod("b"), GUEST)
    assert clock.monotonic() < 1
    await stopping


async def test_annotations_may_change(host: Host) -> None:
    await host.forwarders.sync(pod(), GUEST)
    assert await host.forwarders.sync(pod(port="9092"), GUEST)
    assert list(host.ports.open) == [9092]
    assert not await host.forwarders.sync(pod(scrape="false"), GUEST)
    assert host.ports.open == {}


async def test_without_an_address_of_the_node_nothing_is_forwarded(clock: Clock) -> None:
    host = Host(clock, node_ip="")
    assert not await host.forwarders.sync(pod(), GUEST)
    assert (host.ports.bound, host.said) == ([], [])


@pytest.mark.parametrize(
    ("annotations", "port"),
    [
        ({}, None),
        ({PROMETHEUS_PORT: "9091"}, None),
        ({PROMETHEUS_SCRAPE: "true"}, None),
        ({PROMETHEUS_SCRAPE: "yes", PROMETHEUS_PORT: "9091"}, None),
        ({PROMETHEUS_SCRAPE: "true", PROMETHEUS_PORT: "9091"}, 9091),
        ({PROMETHEUS_SCRAPE: "true", PROMETHEUS_PORT: "65535"}, 65535),
    ],
)
def test_both_annotations_are_needed(annotations: dict[str, str], port: int | None) -> None:
    assert scrape_port(annotations) == port


@pytest.mark.parametrize("text", ["", "0", "65536", "-1", "9091/tcp", "²", "9" * 50])
async def test_a_port_that_is_none_is_told(host: Host, text: str) -> None:
    with pytest.raises(BadInput, match="1 to 65535"):
        scrape_port({PROMETHEUS_SCRAPE: "true", PROMETHEUS_PORT: text})
    for _ in range(2):
        assert not await host.forwarders.sync(pod(port=text), GUEST)
    assert [name for name, _ in host.said] == ["job"]


@pytest.mark.real_time
async def test_a_scrape_goes_through_real_sockets(clock: Clock) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(page())
        await writer.drain()
        await reader.read()
        writer.close()

    async def resolve(_: str) -> str | None:
        return None

    opened: list[HttpListening] = []

    async def listen(host: str, port: int, answer: Callable[[ScrapeRequest], Awaitable[ScrapeAnswer]]) -> HttpListening:
        opened.append(await listen_http(host, 0, answer))  # both ends are on this machine, so their ports differ
        return opened[-1]

    forwarders = Forwarders(ThisMac(), "127.0.0.1", clock, resolve=resolve, warn=lambda *_: None, listen=listen)
    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as guest,
        aiohttp.ClientSession() as session,
    ):
        guest_port = guest.sockets[0].getsockname()[1]
        assert await forwarders.sync(pod(port=str(guest_port)), "127.0.0.1")
        url = f"http://127.0.0.1:{opened[0].port}"
        for _ in range(3):  # over one kept connection
            async with session.get(f"{url}/metrics?x=1") as answer:
                assert (answer.status, await answer.read()) == (200, METRICS)
        async with session.head(f"{url}/metrics") as answer:
            assert answer.status == 200
        async with session.post(f"{url}/metrics", data=b"x" * 10_000) as answer:
            assert answer.status == 405
        async with session.get(f"{url}/metrics%2f..%2fsecrets") as answer:
            assert answer.status == 404
        assert not await forwarders.sync(pod("other", port=str(guest_port)), "127.0.0.1")
    await forwarders.aclose()


@pytest.mark.real_time
async def test_a_port_in_use_is_refused_by_the_system(clock: Clock) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def resolve(_: str) -> str | None:
        return None

    said: list[str] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        forwarders = Forwarders(ThisMac(), "127.0.0.1", clock, resolve=resolve, warn=lambda _, text: said.append(text))
        assert not await forwarders.sync(pod(port=str(port)), GUEST)
    assert len(said) == 1
    assert "cannot be used" in said[0]
