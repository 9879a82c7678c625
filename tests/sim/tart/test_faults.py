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
from applecart.sim import cache_tools, mac_programs
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.arguments import VERBS
from applecart.sim.tart.faults import PROGRAMS
from applecart.sim.tart.json_file import save
from tests.sim.tart.sim_tart import SimTart, in_process
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


async def test_a_clone_that_hangs_in_its_copy_holds_up_every_clone_and_start_of_its_host(tart: SimTart, clock: Clock) -> None:
    """Tart's one lock per home is held while it copies; a clone that hangs before that holds up nobody."""
    await tart.out("create", "v")
    tart.faults({"on": "clone", "vm": "a", "kind": "hang", "when": "during"})
    hung = asyncio.create_task(tart.run("clone", "golden", "a", deadline_s=300))
    await elapse(1)
    await tart.start("v")
    before_s = clock.monotonic()
    assert (await tart.run("clone", "golden", "b")).code == 0
    assert clock.monotonic() - before_s == pytest.approx(299, abs=2)
    with pytest.raises(DeadlineExceeded):
        await hung
    await tart.out("ip", "v", "--wait", "60")
    assert (await tart.out("list", "-q")).split() == ["b", "golden", "v"]


async def test_a_run_that_hangs_before_its_vm_is_built_holds_up_other_starts(tart: SimTart, mac: SimulatedMac) -> None:
    await tart.out("create", "v")
    tart.faults({"on": "run", "vm": "v", "kind": "hang", "when": "during"})
    hung, _ = await tart.start("v")
    await tart.start("golden")
    await elapse(100)
    assert mac.running() == []
    assert hung.pid is not None
    mac.signal(hung.pid, signal.SIGKILL)
    await elapse(1)
    assert mac.running() == ["golden"]


async def test_a_pull_that_hangs_half_way_holds_up_its_registry_and_goes_on_there(tart: SimTart, clock: Clock) -> None:
    tart.faults({"on": "pull", "vm": "ghcr.io/a/b:1", "kind": "hang", "when": "during"})
    hung = asyncio.create_task(tart.run("pull", "ghcr.io/a/b:1", deadline_s=1000))
    await elapse(500)
    other = asyncio.create_task(tart.run("pull", "ghcr.io/a/b:2"))
    await tart.out("pull", "quay.io/a/b:2")
    assert not other.done()
    with pytest.raises(DeadlineExceeded):
        await hung
    before_s = clock.monotonic()
    assert (await other).code == 0
    await tart.out("pull", "ghcr.io/a/b:1")
    assert clock.monotonic() - before_s == pytest.approx(400 + 200, abs=20)


async def test_guests_go_wrong_from_the_same_file(tart: SimTart, mac: SimulatedMac) -> None:
    """One file has all that can go wrong: a guest that never gets an address, one that halts by itself."""
    await tart.out("create", "halts")
    rules = [{"vm": "golden", "never_gets_ip": True}, {"vm": "halts", "runs_s": 5, "exit_code": 3}]
    tart.rules({"never_gets_ip": False, "runs_s": 1000})  # what the host's guests do otherwise
    save(tart.home / "faults.json", {"guests": rules})
    await tart.start("golden")
    halts, _ = await tart.start("halts")
    assert (await tart.run("ip", "golden", "--wait", "600")).err == b"no IP address found, is your VM running?\n"
    assert (await halts.wait()).code == 0
    assert mac.running() == ["golden"]


def test_a_fault_may_strike_every_program_of_a_simulated_mac_and_no_other() -> None:
    assert set(PROGRAMS) == {"*", *VERBS, *mac_programs.NAMES, *cache_tools.NAMES}


WRONG = [
    ({"on": "lst", "kind": "fail"}, "lst"),
    ({"on": "guest", "kind": "fail"}, "guest"),
    ({"on": "list", "kind": "explode"}, "`kind` is one of hang, fail, crash, no-space, slow, kill-agent, not 'explode'"),
    ({"on": "list", "kind": "fail", "when": "later"}, "`when` is one of before, during, after, not 'later'"),
    ({"on": "list", "kind": "fail", "code": 0}, ">= 1"),
    ({"on": "list", "kind": "fail", "code": 256}, "<= 255"),
    ({"on": "list", "kind": "fail", "code": 1 << 40}, "<= 255"),
    ({"on": "list", "kind": "crash", "signal": 0}, "signal 0"),
    ({"on": "list", "kind": "crash", "signal": int(signal.SIGCHLD)}, "ends no process"),
    ({"on": "list", "kind": "crash", "signal": int(signal.SIGSTOP)}, "ends no process"),
    ({"on": "list", "kind": "crash", "signal": 1 << 40}, "ends no process"),
    ({"on": "list", "kind": "fail", "times": 0}, ">= 1"),
    ({"on": "list", "kind": "slow", "seconds": -1}, ">= 0"),
    ({"on": "pull", "kind": "slow", "bytes_per_s": 0}, ">= 1"),
    ({"on": "list", "kind": "fail", "when": "during"}, "during"),
    ({"on": "list", "kind": "fail", "who": "me"}, "who"),
]


@pytest.mark.parametrize(("fault", "says"), WRONG)
async def test_what_is_wrong_with_a_fault_is_said(fault: dict[str, object], says: str, tart: SimTart) -> None:
    tart.faults(fault)
    ended = await tart.run("list", deadline_s=60)
    assert ended.code == 1
    assert ended.err.startswith(b"simulated Tart: faults.json cannot be used: ")
    assert says in ended.err.decode()


def wild(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return values | st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)


FAULT = st.fixed_dictionaries(
    {"on": wild(st.just("list")), "kind": wild(st.sampled_from(["hang", "fail", "crash", "no-space", "slow", "kill-agent"]))},
    optional={
        "vm": wild(st.sampled_from(["*", "v", "[", "[!"])),
        "when": wild(st.sampled_from(["before", "during", "after"])),
        "times": wild(st.integers(-1, 2)),
        "code": wild(st.integers(-1, 300)),
        "text": wild(st.text(max_size=8)),
        "signal": wild(st.integers(-1, 70)),
        "bytes_per_s": wild(st.integers(-1, 10**9)),
        "seconds": wild(st.floats(-1, 10)),
        "with_grandchild": wild(st.booleans()),
        "x": st.none(),
    },
)
ANYTHING = st.recursive(
    wild(st.just("list")), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner)
)
FILES = (
    st.binary(max_size=40)
    | ANYTHING.map(msgspec.json.encode)
    | st.lists(FAULT | ANYTHING, max_size=3).map(lambda faults: msgspec.json.encode({"faults": faults}))
)


@given(content=FILES)
def test_a_wrong_faults_file_is_a_sentence_and_never_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    async def main() -> None:
        tart = in_process(folder, VirtualClock(asyncio.get_running_loop()))
        (tart.home / "faults.json").write_bytes(content)
        try:
            ended = await tart.run("list", "-q", deadline_s=60)
        except DeadlineExceeded:
            assert b"hang" in content or b"slow" in content
            return
        assert 0 <= ended.code <= 255
        assert ended.err or ended.code == 0 or ended.code > 128 or b'"text"' in content

    run_virtual(main())
