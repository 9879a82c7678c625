"""Every kind of fault, when it strikes and how often; and what a wrong `faults.json` says."""

import asyncio
import signal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.errors import DeadlineExceeded
from applecart.sim.mac import SimulatedMac
from tests.sim.tart.both_ways import SimTart, in_process
from tests.virtual_time import elapse


@pytest.fixture
async def tart(tmp_path: Path, clock: Clock) -> SimTart:
    tart = in_process(tmp_path, clock)
    await tart.out("create", "golden")
    return tart


@pytest.fixture
async def mac(tart: SimTart) -> SimulatedMac:
    assert isinstance(tart.mac, SimulatedMac)
    return tart.mac


async def test_a_fault_strikes_as_often_as_it_says_and_then_no_more(tart: SimTart) -> None:
    tart.faults({"on": "get", "kind": "fail", "code": 9, "text": "boom", "times": 2})
    codes = [(await tart.run("get", "golden")).code for _ in range(4)]
    assert codes == [9, 9, 0, 0]
    tart.faults({"on": "get", "kind": "fail", "text": "again"})  # written anew, counted anew
    assert (await tart.run("get", "golden")).err == b"again\n"


async def test_a_fault_without_a_number_strikes_always_and_only_what_it_names(tart: SimTart) -> None:
    tart.faults({"on": "*", "vm": "pod-*", "kind": "fail", "times": None})
    for _ in range(3):
        assert (await tart.run("clone", "golden", "pod-1")).code == 1
    assert (await tart.run("clone", "golden", "other")).code == 0


@pytest.mark.parametrize(("when", "is_made"), [("before", False), ("after", True)])
async def test_a_fault_strikes_before_or_after_the_effect(tart: SimTart, mac: SimulatedMac, when: str, is_made: bool) -> None:
    tart.faults({"on": "clone", "kind": "fail", "when": when})
    assert (await tart.run("clone", "golden", "v")).code == 1
    assert ("v" in mac.vms()) is is_made


async def test_a_hang_is_ended_by_the_deadline_with_everything_it_started(tart: SimTart, mac: SimulatedMac) -> None:
    tart.faults({"on": "clone", "kind": "hang", "with_grandchild": True})
    hung = asyncio.create_task(tart.run("clone", "golden", "v", deadline_s=300))
    await elapse(1)
    assert len(mac.table.all()) == 2
    for process in mac.table.all():
        if process.argv[1] == "clone":
            mac.signal(process.pid, signal.SIGINT)
            mac.signal(process.pid, signal.SIGTERM)
    await elapse(1)
    assert len(mac.table.all()) == 2
    with pytest.raises(DeadlineExceeded):
        await hung
    assert mac.table.all() == []


async def test_a_crash_has_the_code_of_its_signal(tart: SimTart) -> None:
    tart.faults({"on": "set", "kind": "crash"}, {"on": "set", "kind": "crash", "signal": 9})
    assert [(await tart.run("set", "golden", "--cpu", "6")).code for _ in range(3)] == [133, 137, 0]


async def test_no_space_says_what_the_command_would_say(tart: SimTart) -> None:
    tart.faults(
        {"on": "*", "kind": "no-space", "times": 2}, {"on": "pull", "kind": "no-space", "text": "database or disk is full"}
    )
    assert "enough space" in (await tart.run("clone", "golden", "v")).err.decode()
    assert b"No space left on device" in (await tart.run("pull", "ghcr.io/a/b:1")).err
    assert (await tart.run("pull", "ghcr.io/a/b:1")).err == b"database or disk is full\n"


async def test_slow_slows_down(tart: SimTart, clock: Clock) -> None:
    tart.faults({"on": "pull", "kind": "slow", "bytes_per_s": 2 * 10**7}, {"on": "list", "kind": "slow", "seconds": 100})
    await tart.out("pull", "ghcr.io/a/b:1")
    assert clock.monotonic() == pytest.approx(2000, abs=5)
    await tart.out("list")
    assert clock.monotonic() == pytest.approx(2100, abs=5)


async def test_kill_agent_leaves_the_command_to_itself(tart: SimTart, mac: SimulatedMac) -> None:
    """The agent dies in the middle of a clone, and the clone is made."""
    tart.faults({"on": "clone", "kind": "kill-agent", "when": "before"})
    agent = asyncio.create_task(tart.run("clone", "golden", "v"))

    def killed() -> None:
        agent.cancel()

    mac.on_kill_agent = killed
    with pytest.raises(asyncio.CancelledError):
        await agent
    assert mac.vms() == ["golden"]
    await elapse(5)
    assert mac.vms() == ["golden", "v"]


async def test_programs_of_the_host_have_faults_too(tart: SimTart, mac: SimulatedMac) -> None:
    tart.faults({"on": "launchctl", "kind": "hang"}, {"on": "sw_vers", "kind": "fail", "code": 5})
    with pytest.raises(DeadlineExceeded):
        await mac.run(["sudo", "-n", "launchctl", "print", "gui/501"], deadline_s=10)
    assert (await mac.run(["/usr/bin/sw_vers"], deadline_s=10)).code == 5
    assert (await mac.run(["sudo", "-n", "launchctl", "print", "gui/501"], deadline_s=10)).code == 0


WORDS = st.sampled_from(["list", "fail", "slow", "crash"]) | st.text(max_size=8)
KEYS = st.sampled_from(["faults", "on", "kind", "times", "x"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(content=st.binary(max_size=40) | ANYTHING.map(msgspec.json.encode))
def test_a_wrong_faults_file_is_a_sentence_and_never_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    async def main() -> None:
        tart = in_process(folder, VirtualClock(asyncio.get_running_loop()))
        (tart.home / "faults.json").write_bytes(content)
        ended = await tart.run("list", "-q", deadline_s=60)
        assert ended.code in (0, 1, 133)
        assert ended.err or ended.code != 1

    run_virtual(main())
