"""Which address the host is known by.

Given by a flag, or looked for: `auto` takes the first that others can route to and leaves the bridges of VMs out (one that
survived a restart would win otherwise); finding none only switches scraping and screens off. `tailscale` asks the tailnet and
must not start without an answer: falling back to the public interface would expose guests there. Parsers are pure.
"""

import ipaddress
import re
import sys
from collections.abc import Iterable

import msgspec

from applecart.errors import ApplecartError, Transient
from applecart.kubelet.options import TAILSCALE
from applecart.observe.logs import logger
from applecart.tart.mac import Mac

DEADLINE_S = 10.0  # tailscaled may still be on its way up; launchd starts us again
DEFAULT_METRICS_BIND = ":8080"
TAILSCALE_ARGV = ("/usr/local/bin/tailscale", "ip", "-4")
IFCONFIG_ARGV = ("/sbin/ifconfig",)
IP_ARGV = ("ip", "-4", "-o", "addr", "show", "up")
GUEST_BRIDGES = ("bridge", "vmnet")  # the networks of VMs: never the host's own address
_FLAGS = re.compile(r"([^\s:]+): flags=[0-9a-fA-F]+<([A-Z0-9_,]*)>")
_INET = re.compile(r"\s+inet ([0-9.]+)\b")
_ONE_LINE = re.compile(r"[0-9]+: (\S+)\s+inet ([0-9.]+)/[0-9]+ ")

log = logger(__name__)


class NoTailnetAddress(Transient):
    """The host has no address in the tailnet, and must not serve anything on another."""


class Interface(msgspec.Struct, frozen=True):
    name: str
    address: str


def parse_ifconfig(text: str) -> list[Interface]:
    """The IPv4 addresses of interfaces that are up, in the order of `ifconfig` on macOS."""
    found: list[Interface] = []
    name, is_up = "", False
    for line in text.splitlines():
        if head := _FLAGS.match(line):
            name, is_up = head[1], "UP" in head[2].split(",")
        elif (inet := _INET.match(line)) and is_up:
            found.append(Interface(name, inet[1]))
    return found


def parse_ip_addr(text: str) -> list[Interface]:
    """The same of `ip -4 -o addr show up` on Linux."""
    return [Interface(match[1].partition("@")[0], match[2]) for line in text.splitlines() if (match := _ONE_LINE.match(line))]


def first_routable(interfaces: Iterable[Interface]) -> str:
    """The first address that others can reach; empty when there is none."""
    for interface in interfaces:
        address = _ipv4(interface.address)
        is_own = address is not None and not (address.is_loopback or address.is_link_local or address.is_unspecified)
        if is_own and not interface.name.startswith(GUEST_BRIDGES):
            return str(address)
    return ""


def first_ipv4(text: str) -> str:
    """The first line that is an IPv4 address; empty when none is."""
    return next((line.strip() for line in text.splitlines() if _ipv4(line.strip())), "")


def _ipv4(text: str) -> ipaddress.IPv4Address | None:
    try:
        return ipaddress.IPv4Address(text)
    except ValueError:
        return None


async def node_address(mac: Mac, *, given: str, source: str, platform: str = sys.platform) -> str:
    """The host's address; empty when `auto` finds none. Raises `NoTailnetAddress`."""
    if given:
        return given
    if source == TAILSCALE:
        return await _tailnet_address(mac)
    argv, parse = (IFCONFIG_ARGV, parse_ifconfig) if platform == "darwin" else (IP_ARGV, parse_ip_addr)
    try:
        ended = await mac.run(argv, deadline_s=DEADLINE_S)
    except ApplecartError as error:
        log.warning("the host's address is not known, so guests are not scraped and not shown", exc_info=error)
        return ""
    found = first_routable(parse(ended.out.decode("utf-8", "replace")))
    if not found:
        log.warning("no interface has an address that others can route to, so guests are not scraped and not shown")
    return found


async def _tailnet_address(mac: Mac) -> str:
    try:
        ended = await mac.run(TAILSCALE_ARGV, deadline_s=DEADLINE_S)
    except ApplecartError as error:
        raise NoTailnetAddress(f"{_NO_TAILNET}: {error}") from error
    found = first_ipv4(ended.out.decode("utf-8", "replace")) if ended.code == 0 else ""
    if not found:
        raise NoTailnetAddress(f"{_NO_TAILNET}: `{' '.join(TAILSCALE_ARGV)}` ended with {ended.code} and told no address")
    return found


_NO_TAILNET = (
    "--node-ip-source tailscale: this host has no tailnet address, and any other would expose its guests; "
    "see `tailscale status`, or give --node-ip"
)


def metrics_bind(bind: str, *, source: str, address: str) -> str:
    """Where metrics are served: on the tailnet only, where that is the source and nobody chose otherwise."""
    if source != TAILSCALE or bind != DEFAULT_METRICS_BIND or not address:
        return bind
    return f"[{address}]{bind}" if ":" in address else f"{address}{bind}"
