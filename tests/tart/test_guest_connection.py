import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import DeadlineExceeded, Unreachable
from applecart.tart.guest_connection import connect_guest, interface_of
from applecart.tart.this_mac import ThisMac

IFCONFIG = """\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 00:11:22:33:44:55
\tinet 192.168.1.7 netmask 0xffff0000 broadcast 192.168.255.255
bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500
\tinet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255
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


async def test_a_deadline_holds_also_while_the_interface_is_looked_up() -> None:
    async def hangs() -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(DeadlineExceeded, match="did not answer within 5 s"):
        await connect_guest("192.168.64.7", 22, 5, hangs)
