"""A screen from its VM's start to the viewer: Tart's own words in the log, the Pod in the API, agents that come and go."""

import stat
from pathlib import Path

import pytest

from applecart.api import annotations as names
from applecart.api.containers import Container
from applecart.api.meta import Key
from applecart.api.pods import Pod, PodSpec
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from applecart.kubelet.screen.endpoint import LOOPBACK, ScreenLog
from applecart.kubelet.screen.screens import Screens
from applecart.secrets import Secret
from applecart.sim.mac import SimulatedMac
from applecart.sim.vnc_server import SimulatedScreen
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.mac import Connection
from applecart.tart.run_options import RunOptions
from tests.kube.embedded_api import serving
from tests.kubelet.screen.stage import NODE_IP, TOKEN, Ports, hash_of, pod

IMAGE = "ghcr.io/ci/runner:1"
VM = "ci-job"
KEY = Key("ci", "job")


class Mac(SimulatedMac):
    """With the screens of its VMs on the loopback address, where Tart said they are."""

    screens: dict[int, SimulatedScreen]

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
        if address == LOOPBACK and port in self.screens:
            return self.screens[port].dial()
        return await super().connect(address, port, deadline_s=deadline_s)


class Host:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        self.log = folder / f"{VM}.log"
        self.mac = Mac(folder / "tart", clock)
        self.mac.screens = {}
        self.ports = Ports()
        self.start_agent()

    def start_agent(self) -> None:
        self.ports.open.clear()
        self.screens = Screens(
            self.mac,
            Files(),
            self.clock,
            control_dir=self.folder / "control",
            node_ip=NODE_IP,
            warn=lambda pod, text: None,
            listen=self.ports,
        )

    async def boot(self) -> Secret:
        """The password that Tart chose."""
        tart = Tart(self.mac, "/usr/local/bin/tart", self.folder / "tart", self.clock)
        await tart.pull(IMAGE)
        await tart.clone(IMAGE, VM)
        await tart.run(VM, RunOptions(is_vnc=True), folder=self.folder / "run-1", log=self.log)
        await tart.ip(VM, wait_s=300)
        log = ScreenLog(self.log)
        endpoint = log.endpoint()
        log.close()
        assert endpoint is not None
        self.mac.screens[endpoint.port] = SimulatedScreen(endpoint.password, self.clock.random, name=VM)
        return endpoint.password


@pytest.fixture
def host(tmp_path: Path, clock: Clock) -> Host:
    return Host(tmp_path, clock)


async def test_what_tart_prints_leads_to_the_screen_also_for_a_later_agent(host: Host) -> None:
    """Weaknesses 30 and 31: the log, which only the agent's user can read, is all that has to survive."""
    password = await host.boot()
    assert stat.S_IMODE(host.log.stat().st_mode) == 0o600
    for _ in range(2):
        changes = await host.screens.sync(pod(session="s-1"), VM, host.log)
        assert changes is not None
        viewer = host.ports.dial(int(changes[names.VNC_RELAY_PORT] or 0))
        assert await viewer.enter() == VM.encode()
        host.start_agent()
    kept = [file for file in (host.folder / "control").rglob("*") if file.is_file()]
    assert not any(password.reveal() in file.read_text() for file in kept)
    await host.mac.reboot()


async def test_a_session_in_the_api_is_written_once_and_taken_back_once(host: Host, clock: Clock) -> None:
    """Weakness 13: as long as somebody looked at a screen, the agent woke itself with its own writes."""
    await host.boot()
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        spec = PodSpec(node_name="mac-1", containers=(Container(name="vm", image=IMAGE),))
        await client.create(Pod(metadata=pod(session="s-1").metadata, spec=spec))

        async def writes_until_quiet() -> int:
            """What a worker does that is called for every change of its Pod."""
            for writes in range(10):
                seen = await client.get(Pod, KEY)
                changes = await host.screens.sync(seen, VM, host.log)
                if changes is None:
                    return writes
                await client.patch(Pod, KEY, Merge({"metadata": {"annotations": dict(changes)}}))
            return 10

        assert await writes_until_quiet() == 1
        assert (await client.get(Pod, KEY)).metadata.annotations[names.VNC_STATE] == "ready"
        await client.patch(Pod, KEY, Merge({"metadata": {"annotations": {names.VNC_SESSION_ID: None}}}))
        assert await writes_until_quiet() == 1
        left = (await client.get(Pod, KEY)).metadata.annotations
        assert dict(left) == {names.VNC_RELAY_TOKEN_HASH: hash_of(TOKEN)}
    await host.screens.aclose()
    await host.mac.reboot()
