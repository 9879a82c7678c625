"""A connection to a guest leaves through the interface that this host's own `ifconfig` names for it."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from applecart.tart import guest_connection, this_mac
from applecart.tart.mac import Ended
from applecart.tart.programs import run_program
from applecart.tart.this_mac import ThisMac

pytestmark = pytest.mark.real_time

LOOPBACK = "lo" if any(name == "lo" for _, name in socket.if_nameindex()) else "lo0"


async def _connected(port: int, *, binds_to_interface: bool) -> int:
    """Which option the socket got."""
    connection = await ThisMac(binds_to_interface=binds_to_interface).connect("127.0.0.1", port, deadline_s=10)
    link = connection._writer.get_extra_info("socket")
    try:
        return int(link.getsockopt(socket.IPPROTO_IP, guest_connection.IP_BOUND_IF))
    finally:
        await connection.aclose()


async def test_a_mac_asks_its_ifconfig_and_binds_to_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Incident 40: routes to guests belong to their bridge only, and a socket that was bound to nothing found no route."""
    script = tmp_path / "ifconfig"
    script.write_text(f'#!/bin/sh\nprintf "{LOOPBACK}: flags=1\\n\\tinet 127.0.0.9 netmask 0xff000000 broadcast 0\\n"\n')
    script.chmod(0o755)
    asked: list[str] = []

    async def run(argv: Sequence[str], **options: Any) -> Ended:
        asked.append(argv[0])
        return await run_program([str(script)], **options)

    monkeypatch.setattr(this_mac, "run_program", run)
    # The number is macOS's. Elsewhere any option serves that keeps a small number: the time to live, enough for ourselves.
    monkeypatch.setattr(guest_connection, "IP_BOUND_IF", socket.IP_TTL)
    async with await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await _connected(port, binds_to_interface=True) == socket.if_nametoindex(LOOPBACK)
        assert await _connected(port, binds_to_interface=False) != socket.if_nametoindex(LOOPBACK)
    assert asked == ["/sbin/ifconfig"]
