"""Which address a host is known by, from what its own programs print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import DeadlineExceeded
from applecart.kubelet.node.addresses import (
    IFCONFIG_ARGV,
    IP_ARGV,
    TAILSCALE_ARGV,
    Interface,
    NoTailnetAddress,
    first_ipv4,
    first_routable,
    metrics_bind,
    node_address,
    parse_ifconfig,
    parse_ip_addr,
)
from applecart.tart.mac import Ended
from tests.kubelet.node.host import Host

IFCONFIG = """\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500
\tinet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255
en5: flags=8822<BROADCAST,SMART,SIMPLEX,MULTICAST> mtu 1500
\tinet 10.9.9.9 netmask 0xffffff00
en1: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tinet 169.254.10.20 netmask 0xffff0000
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 14:98:77:00:00:01
\tinet 51.159.1.2 netmask 0xffffff00 broadcast 51.159.1.255
utun3: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1280
\tinet 100.64.0.9 --> 100.64.0.9 netmask 0xffffffff
"""
IP_ADDR = """\
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: vmnet1    inet 172.16.1.1/24 brd 172.16.1.255 scope global vmnet1\\       valid_lft forever
3: eth0@if7    inet 10.0.0.7/24 brd 10.0.0.255 scope global eth0\\       valid_lft forever preferred_lft forever
"""


def test_the_bridge_of_a_vm_that_survived_a_restart_is_not_the_hosts_address() -> None:
    assert first_routable(parse_ifconfig(IFCONFIG)) == "51.159.1.2"


def test_interfaces_that_are_down_do_not_count() -> None:
    assert Interface("en5", "10.9.9.9") not in parse_ifconfig(IFCONFIG)


def test_linux_is_read_by_its_own_words() -> None:
    assert parse_ip_addr(IP_ADDR)[2] == Interface("eth0", "10.0.0.7")
    assert first_routable(parse_ip_addr(IP_ADDR)) == "10.0.0.7"


@given(st.text() | st.text("inetflags=<UP>:0123456789. \n\t/"))
def test_whatever_a_program_prints_gives_an_address_or_none(text: str) -> None:
    for found in (first_routable(parse_ifconfig(text)), first_routable(parse_ip_addr(text)), first_ipv4(text)):
        assert found == "" or found.count(".") == 3


@pytest.mark.parametrize(
    ("platform", "argv", "out", "expected"),
    [("darwin", IFCONFIG_ARGV, IFCONFIG, "51.159.1.2"), ("linux", IP_ARGV, IP_ADDR, "10.0.0.7"), ("linux", IP_ARGV, "", "")],
)
async def test_auto_looks_at_the_interfaces(platform: str, argv: tuple[str, ...], out: str, expected: str) -> None:
    host = Host()
    host.programs[argv] = Ended(0, out.encode())
    assert await node_address(host, given="", source="auto", platform=platform) == expected


async def test_auto_without_an_answer_is_not_fatal() -> None:
    assert await node_address(Host(), given="", source="auto", platform="darwin") == ""


async def test_a_given_address_is_taken_without_asking_anybody() -> None:
    host = Host()
    assert await node_address(host, given="10.0.0.9", source="tailscale") == "10.0.0.9"
    assert host.asked == []


async def test_tailscale_tells_its_first_address() -> None:
    host = Host()
    host.programs[TAILSCALE_ARGV] = Ended(0, b"a notice\n100.64.0.9\n100.64.0.10\n")
    assert await node_address(host, given="", source="tailscale") == "100.64.0.9"


@pytest.mark.parametrize("answer", [Ended(1, b"100.64.0.9"), Ended(0, b"stopped"), DeadlineExceeded("no end after 10 s"), None])
async def test_a_host_without_its_tailnet_does_not_start(answer: Ended | Exception | None) -> None:
    """The public interface must never stand in for the tailnet: guests would be reachable from everywhere."""
    host = Host()
    host.programs[IFCONFIG_ARGV] = Ended(0, IFCONFIG.encode())
    if answer is not None:
        host.programs[TAILSCALE_ARGV] = answer
    with pytest.raises(NoTailnetAddress, match="give --node-ip"):
        await node_address(host, given="", source="tailscale", platform="darwin")


@pytest.mark.parametrize(
    ("bind", "source", "address", "expected"),
    [
        (":8080", "tailscale", "100.64.0.9", "100.64.0.9:8080"),
        (":8080", "tailscale", "fd7a:115c::7", "[fd7a:115c::7]:8080"),
        (":8080", "auto", "51.159.1.2", ":8080"),
        (":9000", "tailscale", "100.64.0.9", ":9000"),
        ("0", "tailscale", "100.64.0.9", "0"),
    ],
)
def test_metrics_move_to_the_tailnet_only_from_their_default(bind: str, source: str, address: str, expected: str) -> None:
    assert metrics_bind(bind, source=source, address=address) == expected
