"""A simulated Mac and an agent that collects garbage on it; no Pods in the API unless a test brings them."""

from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from tests.kubelet.garbage.hosts import CollectingHost


@pytest.fixture
def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    return SimulatedMac(tmp_path / "tart", clock)


@pytest.fixture
async def host(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> CollectingHost:
    return CollectingHost(mac, clock, tmp_path)
