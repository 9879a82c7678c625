import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from applecart.tart.mac import Mac
from applecart.tart.ps import START_JITTER, STARTED
from applecart.tart.running import running_vms
from applecart.tart.this_mac import ThisMac
from tests.tart.real_processes import sh

pytestmark = pytest.mark.real_time


async def test_processes_hold_ourselves_with_a_start_that_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    mac: Mac = ThisMac()
    starts = []
    for zone in ("EAST-11", "WEST+7"):  # Tokyo or Texas, summer or winter
        monkeypatch.setenv("TZ", zone)
        own = {it.pid: it for it in await mac.processes()}[os.getpid()]
        assert "python" in own.command
        starts.append(datetime.strptime(own.began, STARTED).replace(tzinfo=UTC))
    assert abs(starts[0] - starts[1]) <= START_JITTER
    assert starts[0] <= datetime.now(UTC) + START_JITTER


async def test_a_vm_is_found_among_real_processes_and_its_supervisor_is_not_it(tmp_path: Path) -> None:
    """Incident 19: a running VM was not recognised after a restart and was started again, which failed for ever."""
    tart = tmp_path / "tart"
    tart.write_text("#!/bin/sh\nwhile :; do sleep 0.02; done\n")
    tart.chmod(0o755)
    mac = ThisMac()
    vm = f"vm-{tmp_path.parent.name}-{os.getpid()}"  # other tests on this machine have VMs of their own
    run = await mac.start([str(tart), "run", vm, "--no-graphics"], folder=tmp_path / "run", log=tmp_path / "log")
    try:
        while not (found := running_vms(await mac.processes(), "tart").get(vm)):
            pass  # its pid is known a moment before it becomes the program
        assert found.pid == run.pid
    finally:
        assert await run.signal(signal.SIGKILL)
    assert (await run.wait()).code == 128 + signal.SIGKILL
    assert vm not in running_vms(await mac.processes(), "tart")


async def test_a_signal_to_nobody_or_to_everybody_is_refused() -> None:
    mac = ThisMac()
    session = await mac.open(sh("exit 0"))
    await session.wait()
    assert mac.signal(0, signal.SIGKILL) is False
    assert mac.signal(-1, signal.SIGKILL) is False
    assert mac.signal(2**31 - 1, signal.SIGTERM) is False
    await session.kill()


def test_the_disk_is_that_of_the_path(tmp_path: Path) -> None:
    disk = ThisMac().disk(tmp_path)
    assert 0 <= disk.free_bytes <= disk.total_bytes
    with pytest.raises(OSError):
        ThisMac().disk(tmp_path / "nowhere")
