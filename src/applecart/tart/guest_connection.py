"""A TCP connection to a guest.

On macOS the routes to guests belong to the bridge interface only, so a socket that is not bound to it gets "no route to host"
although the guest is there. Which interface that is, `ifconfig` tells; parsing it is pure.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from applecart.errors import DeadlineExceeded, Unreachable
from applecart.tart.stream_connection import StreamConnection

IP_BOUND_IF = 25  # of <netinet/in.h>; Python does not name it
_INTERFACE = re.compile(r"^([A-Za-z][\w.-]{0,31}):", re.MULTILINE)
_ADDRESS = re.compile(r"^\s+inet (\d+\.\d+\.\d+\.\d+) .*?netmask 0x([0-9a-f]{8})\b", re.MULTILINE)


async def connect_guest(
    address: str, port: int, deadline_s: float, ifconfig: Callable[[], Awaitable[str]] | None
) -> StreamConnection:
    try:
        async with asyncio.timeout(deadline_s):
            interface = interface_of(address, await ifconfig()) if ifconfig else None
            return StreamConnection(*await _open(address, port, interface), peer="the guest")
    except TimeoutError:
        raise DeadlineExceeded(f"{address} port {port} did not answer within {deadline_s:g} s") from None
    except (OSError, ValueError, OverflowError) as error:
        raise Unreachable(f"no connection to {address} port {port}: {error}") from None


async def _open(address: str, port: int, interface: str | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if interface is None:
        return await asyncio.open_connection(address, port)
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_IP, IP_BOUND_IF, socket.if_nametoindex(interface))
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
    parts = _INTERFACE.split(ifconfig)[1:]
    found: list[tuple[int, str]] = []
    for name, body in zip(parts[::2], parts[1::2], strict=False):
        for own, mask in _ADDRESS.findall(body):
            with suppress(ValueError):
                subnet = ipaddress.IPv4Network((own, str(ipaddress.IPv4Address(int(mask, 16)))), strict=False)
                if target in subnet and str(target) != own:
                    found.append((subnet.prefixlen, name))
    return max(found)[1] if found else None
