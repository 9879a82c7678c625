"""A host with screens on virtual time: VMs that printed where their screens are, viewers, and the host's port.

The screens are simulated VNC servers; connections are pipes in this process. `Viewer` is a small VNC viewer that speaks any
published version and, like real ones, believes what it is told.
"""

import asyncio
import base64
import errno
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from applecart.api import annotations as names
from applecart.api.labels import RUNNER
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kubelet.screen.endpoint import Endpoint
from applecart.kubelet.screen.listener import Accept
from applecart.kubelet.screen.relay import Relay
from applecart.kubelet.screen.screens import Screens
from applecart.kubelet.screen.wire import Wire
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED, Network
from applecart.observe.logs import logger
from applecart.secrets import Secret
from applecart.sim.vnc_server import SimulatedScreen, pair
from applecart.tart.files import Files
from applecart.tart.mac import Connection, Mac

NODE_IP = "10.0.0.7"
PERSON = "10.0.0.9"
TOKEN = b"a-token-of-a-person"
PASSWORD = "apple-cart-mini-fleet"
PORT = 51234
KEY_A = bytes([4, 1, 0, 0, 0, 0, 0, 0x61])  # the viewer pressed a key
WHOLE_SCREEN = bytes([3, 0, 0, 0, 0, 0, 0, 64, 0, 48])


def hash_of(token: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(token).digest()).decode().rstrip("=")


def line_of(token: bytes) -> bytes:
    return b"tuist-vnc-token " + token + b"\n"


def printed(port: int = PORT, password: str = PASSWORD) -> str:
    return f"VNC server is running at vnc://:{password}@127.0.0.1:{port}\n"


def pod(
    name: str = "job", *, session: str = "", token: bytes | None = TOKEN, runner: str = "true", more: Mapping[str, str] = {}
) -> Pod:
    asked = {names.VNC_SESSION_ID: session} if session else {}
    if session and token is not None:
        asked[names.VNC_RELAY_TOKEN_HASH] = hash_of(token)
    meta = ObjectMeta(name=name, namespace="ci", uid=f"uid-{name}", labels={RUNNER: runner}, annotations={**asked, **more})
    return Pod(metadata=meta)


def told(pod_: Pod, changes: dict[str, str | None] | None) -> Pod:
    """The Pod once the API holds the changes."""
    annotations: dict[str, str | None] = {**pod_.metadata.annotations, **(changes or {})}
    more = {name: text for name, text in annotations.items() if text is not None}
    return pod(pod_.name, more=more)


class ScreensMac:
    """A Mac of which only the loopback ports are there."""

    def __init__(self) -> None:
        self.screens: dict[int, SimulatedScreen] = {}
        self.dialled: list[tuple[str, int, float]] = []

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
        self.dialled.append((address, port, deadline_s))
        if port not in self.screens:
            raise Unreachable(f"no connection to {address} port {port}: refused")
        return self.screens[port].dial()

    @property
    def as_mac(self) -> Mac:
        return cast(Mac, self)


class Listener:
    def __init__(self, ports: "Ports", port: int) -> None:
        self.port = port
        self._ports = ports

    async def aclose(self) -> None:
        self._ports.open.pop(self.port, None)


class Ports:
    """Who listens where on the node's address."""

    def __init__(self) -> None:
        self.open: dict[int, Accept] = {}
        self.bound: list[tuple[str, int]] = []
        self.is_taken = False

    async def __call__(self, host: str, port: int, accept: Accept) -> Listener:
        await asyncio.sleep(0)
        self.bound.append((host, port))
        chosen = port or 49152 + len(self.bound)
        if self.is_taken or chosen in self.open:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.open[chosen] = accept
        return Listener(self, chosen)

    def dial(self, port: int, source: str = PERSON) -> "Viewer":
        ours, theirs = pair()
        self.open[port](theirs, source)
        return Viewer(ours)


class Viewer:
    """The person's end."""

    def __init__(self, connection: Connection) -> None:
        self.wire = Wire(connection)

    async def send(self, data: bytes) -> None:
        await self.wire.write(data)

    async def rest(self) -> bytes:
        """Everything until the host closes."""
        found = b""
        while piece := await self.wire.piece():
            found += piece
        return found

    async def enter(self, token: bytes = TOKEN, minor: int = 8) -> bytes:
        """Up to the name of the guest's screen."""
        await self.send(line_of(token))
        assert await self.wire.exactly(12) == b"RFB 003.008\n"
        await self.send(b"RFB 003.%03d\n" % minor)
        if minor == 3:
            assert await self.wire.exactly(4) == bytes([0, 0, 0, 1])
        else:
            assert await self.wire.exactly(2) == bytes([1, 1])
            await self.send(bytes([1]))
            if minor == 8:
                assert await self.wire.exactly(4) == bytes(4)
        await self.send(bytes([1]))
        return await self.init()

    async def init(self) -> bytes:
        head = await self.wire.exactly(24)
        return await self.wire.exactly(int.from_bytes(head[20:]))

    async def look(self) -> bytes:
        """The pixels of the whole screen."""
        await self.send(WHOLE_SCREEN)
        await self.wire.exactly(16)
        return await self.wire.exactly(64 * 48 * 4)


class Host:
    """One host and its agent's screens; what was said about its Pods."""

    def __init__(
        self, folder: Path, clock: Clock, *, relay_port: int = 0, node_ip: str = NODE_IP, relay_host: str = ""
    ) -> None:
        self.mac = ScreensMac()
        self.mac.screens[PORT] = SimulatedScreen(Secret(PASSWORD), clock.random, name="job's screen")
        self.ports = Ports()
        self.said: list[tuple[str, str]] = []
        self.control = folder / "vnc-control"
        self.logs = folder / "logs"
        self.logs.mkdir(exist_ok=True)
        self.clock = clock
        self.options = {"relay_port": relay_port, "node_ip": node_ip, "relay_host": relay_host}
        self.screens = self.start_agent()

    def start_agent(self) -> Screens:
        """As after a kill: the ports are free again, the files are as they were."""
        self.ports.open.clear()
        self.screens = Screens(
            self.mac.as_mac,
            Files(),
            self.clock,
            control_dir=self.control,
            warn=lambda pod, text: self.said.append((pod.name, text)),
            listen=self.ports,
            **self.options,  # type: ignore[arg-type]
        )
        return self.screens

    def log(self, vm: str = "ci-job") -> Path:
        return self.logs / f"{vm}.log"

    def boot(self, vm: str = "ci-job", text: str | None = None) -> None:
        with self.log(vm).open("a") as file:
            file.write(printed() if text is None else text)

    async def sync(self, pod: Pod) -> dict[str, str | None] | None:
        vm = f"{pod.namespace}-{pod.name}"
        changes = await self.screens.sync(pod, vm, self.log(vm))
        return None if changes is None else dict(changes)

    def ask(self, content: str, name: str = "job") -> Path:
        """An operator on the host."""
        file = self.control / "requests" / f"ci_{name}"
        file.write_text(content)
        return file

    def state(self, name: str = "job") -> Path:
        return self.control / "state" / f"ci_{name}.json"


def nothing_runs() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


class OneRelay:
    """One relay with its guest's screen."""

    def __init__(self, clock: Clock, *, allowed: Sequence[Network] = DEFAULT_ALLOWED, mac: ScreensMac | None = None) -> None:
        self.mac = mac or ScreensMac()
        self.screen = self.mac.screens[PORT] = SimulatedScreen(Secret(PASSWORD), clock.random, name="job's screen")
        self.endpoint: Endpoint | None = Endpoint(PORT, Secret(PASSWORD))
        self.relay = Relay(
            self.mac.as_mac,
            clock,
            logger("test"),
            token_hash=hash_of(TOKEN),
            endpoint=lambda: self.endpoint,
            allowed=allowed,
        )

    def dial(self, source: str = PERSON) -> Viewer:
        ours, theirs = pair()
        self.relay.accept(theirs, source)
        return Viewer(ours)
