"""Goldens and the collector with real processes: the driver, the store's locks and the simulated Tart as an executable."""

import asyncio
import sys
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.kubelet.goldens import Goldens
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.marks import GoldenMark
from applecart.tart.this_mac import ThisMac
from tests.kubelet.agents import IMAGE

pytestmark = pytest.mark.real_time


@pytest.fixture
def goldens(tmp_path: Path, clock: Clock) -> Goldens:
    binary = tmp_path / "tart-executable"
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m applecart.sim.tart.executable "$@"\n')
    binary.chmod(0o755)
    home = Home(tmp_path / "tart")
    tart = Tart(ThisMac(), str(binary), home.path, clock)
    return Goldens(tart, home, Files(), clock, tmp_path / "state")


async def test_two_pods_share_a_golden_that_is_then_only_cloned(goldens: Goldens, tmp_path: Path) -> None:
    first, second = await asyncio.gather(goldens.ensure(IMAGE), goldens.ensure(IMAGE))
    assert first == second
    home = Home(tmp_path / "tart")
    assert isinstance(home.mark(first.vm), GoldenMark)
    assert goldens.ledger.pulled() == {first.digest}
    again = await goldens.ensure(IMAGE)
    assert not again.was_made
    await goldens.clone(again, "ci-job")
    assert [vm.name for vm in home.vms()] == sorted(["ci-job", first.vm])
    assert home.mark("ci-job") is None  # a mark never travels onto a clone
