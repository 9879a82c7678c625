"""A TCP connection to a guest.

On macOS the routes to guests belong to the bridge interface only, so a socket that is not bound to it gets "no route to host"
although the guest is there. Which interface that is, `ifconfig` tells; parsing it is pure.

A guest that does not answer is ended by its probes, so only what a guest can cause is `Unreachable` or `DeadlineExceeded`, and
the deadline is the guest's alone: what this host could not do, or took its time for, is `Transient` (I7, I12).
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from applecart.errors import DeadlineExceeded, Transient, Unreachable
from applecart.tart.stream_connection import HOST_HAS_NONE_LEFT, StreamConnection

IP_BOUND_IF = 25  # of <netinet/in.h>; Python does not name it
LOOKUP_S = 6.0  # `ifconfig` takes milliseconds, and whoever runs it kills it sooner
_INTERFACE = re.compile(r"^([A-Za-z][\w.-]{0,31}):", re.MULTILINE)
_ADDRESS = re.compile(r"^\s+inet (\d+\.\d+\.\d+\.\d+) .*?netmask 0x([0-9a-f]{8})\b", re.MULTILINE)
_ADDRESS6 = re.compile(r"^\s+inet6 ([0-9A-Fa-f:]{2,39})(?:%\S+)? prefixlen (\d{1,3})\b", re.MULTILINE)
_BRIDGE = re.compile(r"bridge\d{3}")  # vmnet makes these from bridge100 on; bridge0 is the host's own


async def connect_guest(
    address: str, port: int, deadline_s: float, ifconfig: Callable[[], Awaitable[str]] | None
) -> StreamConnection:
    link = await _socket_towards(address, ifconfig) if ifconfig else None
    try:
        async with asyncio.timeout(deadline_s):
            return StreamConnection(*await _open(address, port, link), peer="the guest")
    except TimeoutError:
        raise DeadlineExceeded(f"{address} port {port} did not answer within {deadline_s:g} s") from None
    except (OSError, ValueError, OverflowError) as error:
        sentence = f"no connection to {address} port {port}: {error}"
        is_ours = isinstance(error, OSError) and error.errno in HOST_HAS_NONE_LEFT
        raise (Transient(sentence) if is_ours else Unreachable(sentence)) from None


async def _socket_towards(address: str, ifconfig: Callable[[], Awaitable[str]]) -> socket.socket | None:
    """Bound to the interface of the guest; None when no interface leads there in particular."""
    try:
        async with asyncio.timeout(LOOKUP_S):
            told = await ifconfig()
    except (TimeoutError, DeadlineExceeded):
        raise Transient("this host does not say which interface leads to its guests: ifconfig did not end") from None
    if not _INTERFACE.search(told):
        raise Transient("this host does not say which interface leads to its guests: ifconfig named no interface")
    interface = interface_of(address, told)
    try:
        return _bound_to(interface) if interface else None
    except OSError as error:
        raise Transient(f"this host cannot open a connection through {interface}: {error.strerror or error}") from None


def _bound_to(interface: str) -> socket.socket:
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_IP, IP_BOUND_IF, socket.if_nametoindex(interface))
    except BaseException:
        link.close()
        raise
    return link


async def _open(address: str, port: int, link: socket.socket | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if link is None:
        return await asyncio.open_connection(address, port)
    try:
        await asyncio.get_running_loop().sock_connect(link, (address, port))
        return await asyncio.open_connection(sock=link)
    except BaseException:
        link.close()
        raise


def interface_of(address: str, ifconfig: str) -> str | None:
    """The interface whose subnet holds the address; the smallest one, should several."""
    try:
        target = ipaddress.IPv4Address(address)
    except ValueError:
        return None
    found: list[tuple[int, str]] = []
    for name, body in _interfaces(ifconfig):
        for own, mask in _ADDRESS.findall(body):
            with suppress(ValueError):
                subnet = ipaddress.IPv4Network((own, str(ipaddress.IPv4Address(int(mask, 16)))), strict=False)
                if target in subnet and str(target) != own:
                    found.append((subnet.prefixlen, name))
    return max(found)[1] if found else None


def bridge_networks(ifconfig: str) -> tuple[ipaddress.IPv6Network, ...]:
    """The IPv6 networks of guests. They are made up anew on each host, so they cannot be named beforehand."""
    found = []
    for name, body in _interfaces(ifconfig):
        for own, length in _ADDRESS6.findall(body) if _BRIDGE.fullmatch(name) else ():
            with suppress(ValueError):
                found.append(ipaddress.IPv6Network((own, int(length)), strict=False))
    return tuple(found)


def _interfaces(ifconfig: str) -> Iterator[tuple[str, str]]:
    parts = _INTERFACE.split(ifconfig)[1:]
    return zip(parts[::2], parts[1::2], strict=False)
