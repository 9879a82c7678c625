"""How full guests are: the right column, and nobody waits for a guest that hangs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.kubelet.garbage.disk import DEADLINE_S, capacity_percent, guest_disks
from applecart.sim.mac import SimulatedMac
from applecart.tart.run_options import RunOptions
from tests.kubelet.agents import IMAGE, Agent
from tests.virtual_time import elapse

MACOS = """Filesystem     1024-blocks      Used Available Capacity iused     ifree %iused  Mounted on
/dev/disk3s1s1   239362496  11214328  17811976    39%  404475 178119760    0%   /
"""
LINUX = """Filesystem     1K-blocks     Used Available Use% Mounted on
/dev/vda1      239362496 215426246  11214328  95% /
"""


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        (MACOS, 39),
        (LINUX, 95),
        ("x\nmap auto home 0 0 0 100% 0 0 - /home\n", 100),
        ("x\n/dev/d 100 120 -20 120% 1 2 3% /\n", 120),
        ("", None),
        ("\n\n", None),
        ("df: /: No such file or directory", None),
        ("Filesystem Capacity\n/dev/disk 50% 3% /", None),
    ],
)
def test_the_capacity_is_read_and_not_the_inodes(text: str, percent: int | None) -> None:
    """The first percentage of the last line; the second one counts inodes and is always near 0."""
    assert capacity_percent(text) == percent


@given(st.text())
def test_any_text_is_a_percentage_or_none(text: str) -> None:
    found = capacity_percent(text)
    assert found is None or 0 <= found <= 999


async def test_a_guest_that_hangs_delays_nobody_else(tmp_path: Path, clock: Clock) -> None:
    mac = SimulatedMac(tmp_path / "tart", clock)
    agent = Agent(mac, clock, tmp_path)
    golden = await agent.goldens.ensure(IMAGE)
    for vm in ("ci-a", "ci-b"):
        await agent.goldens.clone(golden, vm)
        await agent.tart.run(vm, RunOptions(), folder=tmp_path / vm, log=tmp_path / f"{vm}.log")
    await elapse(30)
    (mac.home / "faults.json").write_text(json.dumps({"faults": [{"on": "exec", "vm": "ci-a", "kind": "hang"}]}))
    began_s = clock.monotonic()
    assert list(await guest_disks(agent.tart, ["ci-a", "ci-b", "ci-gone"])) == ["ci-b"]
    assert clock.monotonic() - began_s <= DEADLINE_S + 1
    assert set(await guest_disks(agent.tart, ["ci-a", "ci-b"])) == {"ci-a", "ci-b"}
