import asyncio
import errno
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.errors import DeadlineExceeded, Transient, Unreachable
from applecart.tart.guest_connection import LOOKUP_S, bridge_networks, connect_guest, interface_of
from applecart.tart.stream_connection import StreamConnection
from applecart.tart.this_mac import ThisMac
from tests.tart.exhausted import no_descriptors

IFCONFIG = """\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 00:11:22:33:44:55
\tinet6 fd7a:115c:a1e0::53 prefixlen 48
\tinet 192.168.1.7 netmask 0xffff0000 broadcast 192.168.255.255
bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500
\tinet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255
\tinet6 fe80::18cd:64ff:fe5c:e464%bridge100 prefixlen 64 scopeid 0x15
\tinet6 fd12:3456:789a:1:10e2:4dd6:b0e9:7a5e prefixlen 64 autoconf secured
utun4: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1280
\tinet 100.64.0.11 --> 100.64.0.11 netmask 0xffffffff
"""


@pytest.mark.parametrize(
    ("address", "interface"),
    [
        ("192.168.64.7", "bridge100"),  # en0's subnet holds it too, and is wider
        ("192.168.2.9", "en0"),
        ("192.168.64.1", "en0"),  # the host's own address is no guest
        ("10.0.0.1", None),
        ("guest.local", None),
        ("fe80::1", None),
    ],
)
def test_a_guest_is_reached_through_the_interface_of_its_subnet(address: str, interface: str | None) -> None:
    """Incident 40: routes to guests belong to their bridge only, and an unbound socket found no route."""
    assert interface_of(address, IFCONFIG) == interface


@given(st.text(), st.text())
def test_any_text_is_an_interface_or_none(address: str, ifconfig: str) -> None:
    assert interface_of(address, ifconfig) is None
    assert bridge_networks(ifconfig) == ()


def test_the_networks_of_guests_are_those_of_the_bridges() -> None:
    assert bridge_networks(IFCONFIG) == (ip_network("fe80::/64"), ip_network("fd12:3456:789a:1::/64"))


@pytest.mark.parametrize("address", ["fd12::1 prefixlen 129", "fd12::zz prefixlen 64", "1.2.3.4 prefixlen 24", "fd12::1"])
def test_an_address_that_is_none_is_left_out(address: str) -> None:
    assert bridge_networks(f"bridge100: flags=1\n\tinet6 {address}\n") == ()


@pytest.mark.real_time
async def test_bytes_go_both_ways_and_the_end_is_seen() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await ThisMac().connect("127.0.0.1", port, deadline_s=10)
        await connection.write(b"hello\n")
        assert await connection.read() == b"HELLO\n"
        assert await connection.read() == b""
        await connection.aclose()


@pytest.mark.real_time
async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    async with await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
    for bad in (port, 70_000, -1):
        with pytest.raises(Unreachable, match=r"no connection to 127\.0\.0\.1"):
            await ThisMac().connect("127.0.0.1", bad, deadline_s=10)


async def listed(text: str) -> str:
    return text


async def test_an_interface_lookup_that_hangs_is_given_up_and_is_no_silence_of_the_guest(clock: Clock) -> None:
    """I12 and I13: a host whose `ifconfig` hung read as a guest that did not answer."""

    async def hangs() -> str:
        await asyncio.Event().wait()
        return ""

    async def is_killed() -> str:
        raise DeadlineExceeded("/sbin/ifconfig did not end within 5 s and was killed")

    for ifconfig in (hangs, is_killed):
        with pytest.raises(Transient, match="ifconfig") as raised:
            await connect_guest("192.168.64.7", 22, 1, ifconfig)
        assert type(raised.value) is Transient
    assert clock.monotonic() <= LOOKUP_S


async def test_the_time_of_the_interface_lookup_is_not_the_guests(clock: Clock) -> None:
    """I12: a busy host took longer for `ifconfig` than a guest has for its answer."""

    async def slow() -> str:
        await asyncio.sleep(LOOKUP_S - 1)
        return IFCONFIG.replace("bridge100", "nosuch0")

    with pytest.raises(Transient, match="nosuch0"):
        await connect_guest("192.168.64.7", 22, 1, slow)


async def test_a_host_that_lists_no_interface_is_no_guest_without_a_route() -> None:
    with pytest.raises(Transient, match="named no interface") as raised:
        await connect_guest("192.168.64.7", 22, 5, lambda: listed(""))
    assert not isinstance(raised.value, Unreachable)


async def test_an_interface_that_went_meanwhile_is_a_fault_of_the_host() -> None:
    told = IFCONFIG.replace("bridge100", "nosuch0")
    with pytest.raises(Transient, match="nosuch0") as raised:
        await connect_guest("192.168.64.7", 22, 5, lambda: listed(told))
    assert not isinstance(raised.value, Unreachable)


@pytest.mark.real_time
async def test_a_host_without_descriptors_does_not_say_that_the_guest_is_unreachable() -> None:
    """I12: an agent that had run out of files took every guest for dead."""
    with no_descriptors(), pytest.raises(Transient, match="Too many open files") as raised:
        await ThisMac(binds_to_interface=False).connect("127.0.0.1", 9, deadline_s=10)
    assert not isinstance(raised.value, Unreachable)


class Broken(asyncio.StreamReader):
    """A connection that the system ended with an error."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.set_exception(OSError(number, "said the system"))


@pytest.mark.parametrize(("number", "is_the_guests"), [(errno.ECONNRESET, True), (errno.ENOBUFS, False), (errno.ENOMEM, False)])
async def test_a_connection_that_breaks_is_the_guests_doing_unless_the_host_lacks_something(
    number: int, is_the_guests: bool
) -> None:
    connection = StreamConnection(Broken(number), None, "the guest")  # type: ignore[arg-type]
    with pytest.raises(Transient, match="said the system") as raised:
        await connection.read()
    assert isinstance(raised.value, Unreachable) is is_the_guests
