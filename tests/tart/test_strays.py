import asyncio
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from applecart.tart.mac import Process
from applecart.tart.strays import changes, end_strays

BINARY = "/usr/local/bin/tart"
REAL = "/usr/local/lib/tart.app/Contents/MacOS/tart"


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        (f"{REAL} clone golden ci-job", True),
        (f"{BINARY} clone golden ci-job", True),
        ("/usr/bin/python3 /opt/bin/tart clone golden ci-job", True),
        (f"{REAL} set ci-job --cpu 4", True),
        (f"{REAL} delete ci-job", True),
        (f"{REAL} stop ci-job --timeout 30", True),
        (f"{REAL} clone ci-job other", False),
        (f"{REAL} clone golden ci-job-2", False),
        (f"{REAL} run ci-job --no-graphics", False),
        (f"/bin/sh -c supervise {REAL} run ci-job", False),
        (f"{REAL} exec ci-job true", False),
        (f"{REAL} push ci-job ghcr.io/acme/runner:1", False),
        ("vim clone ci-job", False),
        ("git clone golden ci-job", False),
        (f"vim notes {BINARY} clone golden ci-job", False),
        (f"/bin/sh -c supervise {BINARY} set ci-job", False),
        ("", False),
    ],
)
def test_only_commands_that_change_the_vm_are_strays(command: str, is_one: bool) -> None:
    assert changes(Process(7, "then", command), BINARY, "ci-job") is is_one


async def test_a_clone_that_outlived_its_agent_is_ended(tmp_path: Path, clock: Clock) -> None:
    mac = SimulatedMac(tmp_path, clock)
    image = "ghcr.io/acme/runner@sha256:" + "a" * 64
    await mac.run([BINARY, "clone", image, "golden"], deadline_s=None)
    faults = {"faults": [{"on": "clone", "kind": "slow", "seconds": 600}]}
    (tmp_path / "faults.json").write_bytes(msgspec.json.encode(faults))
    late = asyncio.create_task(mac.run([BINARY, "clone", "golden", "ci-job"], deadline_s=None))
    await asyncio.sleep(1)
    await end_strays(mac, clock, BINARY, "ci-job")
    assert (await late).code == 137
    assert mac.vms() == ["golden"]
