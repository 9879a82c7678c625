"""The driver with real processes: the simulated Tart as a program, on the machine the tests run on."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.tart import failures
from applecart.tart.deadlines import Deadlines
from applecart.tart.driver import Tart
from applecart.tart.partials import partial_name
from applecart.tart.run_options import RunOptions, Share
from applecart.tart.running import running_vms
from applecart.tart.this_mac import ThisMac
from tests.tart.real_processes import until

pytestmark = pytest.mark.real_time

IMAGE = "ghcr.io/acme/runner:15.5"


@pytest.fixture
def tart(tmp_path: Path, clock: Clock) -> Tart:
    binary = tmp_path / "bin" / "tart"
    binary.parent.mkdir()
    binary.write_text("import sys\nfrom applecart.sim.tart.executable import main\nsys.exit(main())\n")
    script = tmp_path / "bin" / "wrapper" / "tart"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {binary} "$@"\n')
    script.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return Tart(ThisMac(), str(script), home, clock, Deadlines(get_s=2))


async def test_the_life_of_a_vm_survives_the_agent(tart: Tart, tmp_path: Path, clock: Clock) -> None:
    """Incidents 17 to 19: the VM lives on without its agent, is found again by its process, and its end is known."""
    await tart.pull(IMAGE)
    await tart.clone(IMAGE, "golden")
    await tart.clone("golden", "vm-1")
    await tart.set("vm-1", cpu=4, random_serial=True)
    status = tmp_path / "status"
    status.mkdir()
    options = RunOptions((Share("status", status, read_only=False),))
    await tart.run("vm-1", options, folder=tmp_path / "run", log=tmp_path / "vm-1.log")
    assert await tart.ip("vm-1", wait_s=30)

    again = Tart(ThisMac(), tart.binary, tart.home, clock)
    run = await again.mac.adopt(tmp_path / "run")
    assert run
    assert running_vms(await again.mac.processes(), "tart")["vm-1"].pid == run.pid
    assert (await again.exec("vm-1", ["true"], deadline_s=15)).code == 0
    with pytest.raises(failures.VmAlreadyRunning):
        await again.delete("vm-1")
    await again.stop("vm-1")
    assert (await run.wait()).code == 0
    await again.delete("vm-1")
    assert "vm-1" not in {row.name for row in await again.list()}


async def test_a_hung_tart_with_a_grandchild_on_its_pipe_is_given_up_at_the_deadline(tart: Tart) -> None:
    """Incident 8 with real processes."""
    fault = {"on": "get", "kind": "hang", "with_grandchild": True}
    (tart.home / "faults.json").write_text(json.dumps({"faults": [fault]}))
    async with asyncio.timeout(60):
        with pytest.raises(failures.TartHung):
            await tart.get("vm-1")


async def test_what_a_killed_pull_fetched_outlives_our_list(tart: Tart) -> None:
    """Weakness 2 with real processes and real locks."""
    fault = {"on": "pull", "kind": "slow", "bytes_per_s": 10**9}
    (tart.home / "faults.json").write_text(json.dumps({"faults": [fault]}))
    partial = tart.home / "tmp" / partial_name(IMAGE)
    pull = asyncio.create_task(tart.pull(IMAGE))
    await until(lambda: (partial / "disk.img").exists() and (partial / "disk.img").stat().st_size > 16_000)
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    await tart.list()
    assert partial.exists()
    tart.close()
    await tart.mac.run([tart.binary, "list"], deadline_s=30, env={"TART_HOME": str(tart.home)})
    assert not partial.exists()


async def test_a_vm_whose_process_is_killed_ended_by_that_signal(tart: Tart, tmp_path: Path) -> None:
    await tart.pull(IMAGE)
    await tart.clone(IMAGE, "vm-1")
    run = await tart.run("vm-1", RunOptions(), folder=tmp_path / "run", log=tmp_path / "log")
    await tart.ip("vm-1", wait_s=30)
    assert run.pid
    os.kill(run.pid, signal.SIGKILL)
    assert (await run.wait()).code == 128 + signal.SIGKILL
