"""The relay on real sockets, in front of a simulated screen on a real port."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.kubelet.screen.listener import listen_viewers
from applecart.kubelet.screen.screens import Screens
from applecart.secrets import Secret
from applecart.sim.vnc_server import SimulatedScreen
from applecart.tart.files import Files
from applecart.tart.mac import Connection
from applecart.tart.stream_connection import StreamConnection
from applecart.tart.this_mac import ThisMac
from tests.kubelet.screen.stage import KEY_A, PASSWORD, TOKEN, Viewer, line_of, pod, printed

pytestmark = pytest.mark.real_time
HERE = "127.0.0.1"


class Host:
    def __init__(self, folder: Path, clock: Clock, screen: SimulatedScreen, port: int) -> None:
        self.screen = screen
        self.log = folder / "ci-job.log"
        self.log.write_text(printed(port))
        self.screens = Screens(
            ThisMac(), Files(), clock, control_dir=folder / "control", node_ip=HERE, warn=lambda pod, text: None
        )

    async def open(self) -> int:
        changes = await self.screens.sync(pod(session="s-1"), "ci-job", self.log)
        assert changes is not None
        return int(changes["tuist.dev/vnc-relay-port"] or 0)


@pytest.fixture
async def host(tmp_path: Path, clock: Clock) -> AsyncIterator[Host]:
    screen = SimulatedScreen(Secret(PASSWORD), clock.random, name="a real port")
    serving: list[asyncio.Task[None]] = []

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(screen.serve(StreamConnection(reader, writer, "the viewer"))))

    server = await asyncio.start_server(connected, HERE, 0)
    found = Host(tmp_path, clock, screen, server.sockets[0].getsockname()[1])
    yield found
    await found.screens.aclose()
    server.close()
    await asyncio.gather(*serving)


async def dial(port: int) -> Viewer:
    return Viewer(StreamConnection(*await asyncio.open_connection(HERE, port), peer="the relay"))


async def test_a_screen_is_seen_through_real_sockets(host: Host) -> None:
    viewer = await dial(await host.open())
    assert await viewer.enter() == b"a real port"
    await viewer.send(KEY_A)
    assert len(await viewer.look()) == 64 * 48 * 4
    assert host.screen.received.startswith(KEY_A)
    await viewer.wire.aclose()


async def test_a_wrong_token_closes_a_real_connection(host: Host) -> None:
    viewer = await dial(await host.open())
    await viewer.send(line_of(b"wrong"))
    assert await viewer.rest() == b""
    await viewer.wire.aclose()


async def test_stopping_disconnects_a_viewer_that_does_not_read_and_frees_the_port(host: Host) -> None:
    port = await host.open()
    viewer = await dial(port)
    await viewer.enter()
    await viewer.send(bytes([3, 0, 0, 0, 0, 0, 0, 64, 0, 48]) * 2000)  # 24 MB that nobody takes
    await host.screens.stop("uid-job")
    again = await listen_viewers(HERE, port, lambda connection, source: None)
    await again.aclose()
    await viewer.wire.aclose()


async def test_a_taken_port_is_an_os_error(host: Host) -> None:
    port = await host.open()
    with pytest.raises(OSError, match="in use"):
        await listen_viewers(HERE, port, lambda connection, source: None)


async def test_the_address_of_a_viewer_is_seen() -> None:
    seen: asyncio.Queue[tuple[Connection, str]] = asyncio.Queue()
    listening = await listen_viewers(HERE, 0, lambda connection, source: seen.put_nowait((connection, source)))
    viewer = await dial(listening.port)
    connection, source = await seen.get()
    assert source == HERE
    await viewer.send(TOKEN)
    assert await connection.read() == TOKEN
    await connection.aclose()
    assert await viewer.rest() == b""
    await viewer.wire.aclose()
    await listening.aclose()
