"""Commands and metrics through the Tart driver, in guests of a simulated Mac."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from applecart.api.annotations import PROMETHEUS_PORT, PROMETHEUS_SCRAPE
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kubelet.serve.exec import open_command
from applecart.kubelet.serve.forwarder import Forwarders
from applecart.kubelet.serve.guests import Guest, State
from applecart.kubelet.serve.stats import Stats
from applecart.kubelet.serve.terminal import Streams
from applecart.sim.mac import SimulatedMac
from applecart.tart.driver import Tart
from applecart.tart.run_options import RunOptions
from tests.kubelet.serve.local_guests import GuestsHere
from tests.kubelet.serve.pages import Ports
from tests.virtual_time import elapse

IMAGE = "ghcr.io/acme/runner@sha256:" + "a" * 64
VM = "default-job"
PRINTS = Streams(stdin=False, stdout=True, stderr=True, tty=False)


class Host:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.mac = SimulatedMac(folder / "tart", clock)
        self.tart = Tart(self.mac, "/usr/local/bin/tart", self.mac.home, clock)
        self.guests = GuestsHere(folder)

    async def boot(self) -> Guest:
        await self.tart.pull(IMAGE)
        await self.tart.clone(IMAGE, VM)
        await self.tart.run(VM, RunOptions(), folder=self.folder / "run", log=self.folder / "job.log")
        await elapse(60)
        return self.guests.add()


@pytest.fixture
async def host(tmp_path: Path, clock: Clock) -> AsyncIterator[Host]:
    host = Host(tmp_path, clock)
    yield host
    await host.tart.stop(VM)
    host.tart.close()


async def test_a_command_runs_in_the_guest(host: Host) -> None:
    guest = await host.boot()
    session = await open_command(host.tart, guest, ["echo", "a b"], PRINTS)
    assert (await session.read_out(), await session.wait()) == (b"a b\n", 0)


async def test_a_guest_without_an_agent_is_known_by_what_tart_says(host: Host) -> None:
    (host.mac.home / "sim").mkdir(parents=True, exist_ok=True)
    (host.mac.home / "sim" / "guests.json").write_text(json.dumps([{"vm": "*", "no_agent": True}]))
    guest = await host.boot()
    session = await open_command(host.tart, guest, ["echo"], PRINTS)
    assert b"Tart Guest Agent" in await session.read_err()
    assert await session.wait() != 0


async def test_usage_comes_from_the_guest_and_its_host(host: Host, clock: Clock) -> None:
    guest = await host.boot()
    stats = Stats("mac-1", host.mac, host.tart, host.guests, clock)
    summary = await stats.summary()
    assert [pod["podRef"]["uid"] for pod in summary["pods"]] == [guest.uid]
    assert summary["pods"][0]["memory"]["workingSetBytes"] > 0
    assert guest.state is State.RUNNING


async def test_metrics_come_out_of_the_guest(host: Host, clock: Clock) -> None:
    guest = await host.boot()
    annotations = {PROMETHEUS_SCRAPE: "true", PROMETHEUS_PORT: "9091"}
    pod = Pod(metadata=ObjectMeta(name="job", namespace="default", uid=guest.uid, annotations=annotations))
    ports = Ports()
    forwarders = Forwarders(host.mac, "10.0.0.7", clock, resolve=lambda _: host.tart.ip(VM), warn=lambda *_: None, listen=ports)
    address = await host.tart.ip(VM)
    assert address is not None
    assert await forwarders.sync(pod, address)
    assert (await ports.get(9091)).status == 200
    await elapse(3600)
    assert (await ports.get(9091)).status == 200
    await host.tart.stop(VM)
    answer = await ports.get(9091)
    assert (answer.status, answer.body) == (502, b"bad gateway\n")
    await forwarders.aclose()
