"""Booting a VM only to see whether the host can: true in both directions, in nobody's way, and never left behind."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from applecart.clock import Clock
from applecart.kubelet.goldens import Golden, Goldens
from applecart.kubelet.node.health import NothingFoundOut
from applecart.kubelet.scratch_vm import ADDRESS_DEADLINE_S, BOOT_DEADLINE_S, LEAVES_WITHIN_S, ScratchVm
from applecart.sim.mac import Call, SimulatedMac
from applecart.tart.driver import Tart
from applecart.tart.failures import NoGuiSession, TartFailed
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.marks import PodMark, ScratchMark
from applecart.tart.run_options import RunOptions
from tests.virtual_time import elapse

IMAGE = "ghcr.io/ci/runner:1"
DIGEST = "ghcr.io/ci/runner@sha256:" + "a" * 64
GOLDEN = Golden("tuist-golden-0123456789abcdef", DIGEST, was_made=False)
SCRATCH = "applecart-scratch-mac-1"
TART = "/usr/local/bin/tart"
MOST_CALLS = 60  # a check makes fewer; a crash test that never reaches its end would prove nothing


class Host:
    """A simulated Mac with one golden, and agents that come and go on it."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock = clock
        self.state = folder / "state"
        self.state.mkdir()
        self.path = folder / "tart"
        self.mac = SimulatedMac(self.path, clock)
        self.tart = Tart(self.mac, TART, self.path, clock)
        self.home = Home(self.path)
        self.is_idle = True

    async def make_golden(self) -> "Host":
        await self.tart.pull(IMAGE)
        await self.tart.clone(IMAGE, GOLDEN.vm)
        self.mac.calls.clear()
        return self

    def agent(self, files: Files | None = None, **options: Any) -> ScratchVm:
        files = files or Files()
        goldens = Goldens(self.tart, self.home, Files(), self.clock, self.state)
        given = {"clone": goldens.clone, "before_run": _nothing, "is_idle": lambda: self.is_idle, **options}
        return ScratchVm(self.mac, self.tart, self.home, files, self.clock, node="mac-1", state=self.state, **given)

    def rule(self, **rule: object) -> None:
        (self.path / "sim" / "guests.json").write_bytes(msgspec.json.encode([rule]))

    def faults(self, **fault: object) -> None:
        (self.path / "faults.json").write_bytes(msgspec.json.encode({"faults": [fault]}))

    def assert_clean(self) -> None:
        assert self.mac.vms() == [GOLDEN.vm]
        assert not self.mac.running()
        assert [file for file in self.state.rglob("*") if file.is_file()] == []


async def _nothing() -> None:
    return None


@pytest.fixture
async def host(tmp_path: Path, clock: Clock) -> Host:
    return await Host(tmp_path, clock).make_golden()


async def test_a_host_that_can_boot_a_vm_is_fine_and_nothing_is_left(host: Host) -> None:
    assert await host.agent().check(GOLDEN) is None
    assert [boot.vm for boot in host.mac.boots] == [SCRATCH]
    host.assert_clean()


@pytest.mark.parametrize("has_intent", [True, False])
async def test_what_an_interrupted_deletion_left_of_a_scratch_vm_goes_too(host: Host, has_intent: bool) -> None:
    """Tart deletes file by file: what was left without its mark, or without the file that Tart looks for, stayed for ever."""
    host.faults(on="delete", kind="crash", when="during", times=2)
    assert await host.agent().check(GOLDEN) is not None
    if not has_intent:
        (host.state / "scratch" / "intent.json").unlink()
    with suppress(TartFailed):
        await host.agent().clean_up()
    await host.agent().clean_up()
    host.assert_clean()
    assert not (host.path / "vms" / SCRATCH).exists()


async def test_the_scratch_vm_is_marked_and_shares_nothing_with_the_host(host: Host) -> None:
    marks: list[object] = []

    async def look(call: Call) -> None:
        if call.tart == "run":
            marks.append(host.home.mark(SCRATCH))
            assert "--dir" not in call.argv

    host.mac.before_call = look
    assert await host.agent().check(GOLDEN) is None
    assert [type(mark) for mark in marks] == [ScratchMark]


async def test_a_host_that_gives_no_address_says_so_after_the_deadline(host: Host, clock: Clock) -> None:
    """I11: the host has everything a process list can show, and no VM on it gets an address."""
    host.rule(never_gets_ip=True)
    before_s = clock.monotonic()
    assert await host.agent().check(GOLDEN) == "a scratch VM had no address 10 minutes after its start"
    assert clock.monotonic() - before_s == pytest.approx(ADDRESS_DEADLINE_S, abs=30)
    host.assert_clean()


async def test_a_host_without_a_login_session_says_what_tart_said(host: Host) -> None:
    host.mac.lose_gui_session()
    sentence = await host.agent().check(GOLDEN)
    assert sentence is not None
    assert sentence.startswith("a scratch VM ended before it had an address: ")
    assert "logged in" in sentence
    host.assert_clean()


async def test_what_every_start_needs_comes_before_this_one_too(host: Host) -> None:
    async def refuses() -> None:
        raise NoGuiSession("nobody is logged in")

    sentence = await host.agent(before_run=refuses).check(GOLDEN)
    assert sentence == "a scratch VM cannot be started on this host: nobody is logged in"
    assert not host.mac.boots
    host.assert_clean()


async def test_a_clone_that_fails_is_a_sentence(host: Host) -> None:
    host.faults(on="clone", kind="no-space", vm=SCRATCH)
    sentence = await host.agent().check(GOLDEN)
    assert sentence is not None
    assert "disk is full" in sentence
    host.assert_clean()


async def test_a_golden_that_was_just_collected_says_nothing_about_the_host(host: Host) -> None:
    with pytest.raises(NothingFoundOut, match="the golden was just collected"):
        await host.agent().check(Golden("tuist-golden-gone", DIGEST, was_made=False))
    host.assert_clean()


async def test_a_host_with_work_is_not_disturbed(host: Host) -> None:
    host.is_idle = False
    with pytest.raises(NothingFoundOut, match="a Pod needs this host"):
        await host.agent().check(GOLDEN)
    assert not host.mac.boots
    assert not host.mac.calls


async def test_a_vm_of_somebody_else_counts_as_work(host: Host, tmp_path: Path) -> None:
    await host.tart.clone(GOLDEN.vm, "builder")
    await host.tart.run("builder", RunOptions(), folder=tmp_path / "run", log=tmp_path / "log")
    await elapse(1)
    with pytest.raises(NothingFoundOut, match="other VMs run on this host"):
        await host.agent().check(GOLDEN)
    assert [boot.vm for boot in host.mac.boots] == ["builder"]
    assert host.mac.running() == ["builder"]


async def test_it_makes_way_when_a_pod_comes(host: Host, clock: Clock) -> None:
    host.rule(boot_s=300)
    checking = asyncio.create_task(host.agent().check(GOLDEN))
    await elapse(30)
    assert host.mac.running() == [SCRATCH]
    host.is_idle = False
    before_s = clock.monotonic()
    with pytest.raises(NothingFoundOut, match="a Pod needs this host"):
        await checking
    assert clock.monotonic() - before_s < 15
    host.assert_clean()


async def test_it_does_not_even_start_when_a_pod_comes_while_it_is_cloned(host: Host) -> None:
    """The host has room for two guests, and a Pod may have begun to boot the second."""

    async def pod_comes(call: Call) -> None:
        host.is_idle = host.is_idle and call.tart != "clone"

    host.mac.after_call = pod_comes
    with pytest.raises(NothingFoundOut, match="a Pod needs this host"):
        await host.agent().check(GOLDEN)
    assert not host.mac.boots
    host.assert_clean()


async def test_a_boot_that_takes_too_long_altogether_is_ended_and_leaves_nothing(host: Host, clock: Clock) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    before_s = clock.monotonic()
    assert await host.agent(before_run=hangs).check(GOLDEN) == "a scratch VM did not come up within 15 minutes"
    assert clock.monotonic() - before_s == pytest.approx(BOOT_DEADLINE_S, abs=30)
    host.assert_clean()


async def test_a_check_that_is_cancelled_removes_its_vm_and_takes_little_time_for_it(host: Host, clock: Clock) -> None:
    host.rule(boot_s=300)
    for fault in ({}, {"on": "stop", "kind": "hang"}):
        if fault:
            host.faults(**fault)
        agent = host.agent()
        checking = asyncio.create_task(agent.check(GOLDEN))
        await elapse(30)
        assert host.mac.running() == [SCRATCH]
        before_s = clock.monotonic()
        checking.cancel()
        await asyncio.wait([checking])
        assert checking.cancelled()
        assert clock.monotonic() - before_s <= LEAVES_WITHIN_S
        if not fault:
            host.assert_clean()
    await host.agent().clean_up()
    host.assert_clean()


async def test_a_check_that_is_cancelled_while_it_removes_its_vm_removes_it_all_the_same(host: Host, clock: Clock) -> None:
    """Nobody may come after this agent, and the VM ran on."""
    host.rule(boot_s=300)
    host.faults(on="stop", kind="slow", seconds=5, times=1)
    checking = asyncio.create_task(host.agent().check(GOLDEN))
    await elapse(30)
    host.is_idle = False
    await elapse(4)
    assert [call.tart for call in host.mac.calls].count("stop") == 1
    assert host.mac.running() == [SCRATCH]
    before_s = clock.monotonic()
    checking.cancel()
    await asyncio.wait([checking])
    assert checking.cancelled()
    assert clock.monotonic() - before_s <= LEAVES_WITHIN_S
    host.assert_clean()


async def test_a_clone_of_a_dead_agent_that_still_runs_is_ended_before_anybody_looks(host: Host) -> None:
    host.faults(on="clone", kind="slow", seconds=120, vm=SCRATCH)
    checking = asyncio.create_task(host.agent().check(GOLDEN))
    await elapse(30)
    host.mac.kill_agent()
    checking.cancel()
    await asyncio.wait([checking])
    host.mac.start_agent()
    await host.agent().clean_up()
    await elapse(300)
    host.assert_clean()


async def test_what_is_left_goes_without_any_check_and_is_tried_again_until_it_has(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.rule(boot_s=300)
    checking = asyncio.create_task(host.agent().check(GOLDEN))
    await elapse(30)
    host.mac.kill_agent()
    checking.cancel()
    await asyncio.wait([checking])
    host.mac.start_agent()
    host.faults(on="delete", kind="fail", text="the disk is sleepy", times=3)
    tidying = asyncio.create_task(host.agent().keep_tidy())
    await elapse(60)
    assert host.mac.vms() == [SCRATCH, GOLDEN.vm]
    await elapse(600)
    host.assert_clean()
    assert [record.message for record in caplog.records].count("a scratch VM is still there") == 1
    tidying.cancel()
    await asyncio.wait([tidying])


async def test_the_vm_of_a_check_that_is_under_way_is_not_tidied_away(host: Host) -> None:
    host.rule(boot_s=300)
    agent = host.agent()
    tidying = asyncio.create_task(agent.keep_tidy())
    assert await agent.check(GOLDEN) is None
    host.assert_clean()
    tidying.cancel()
    await asyncio.wait([tidying])


async def test_a_scratch_vm_is_told_apart_from_one_that_only_has_its_name(host: Host) -> None:
    host.rule(boot_s=300)
    agent = host.agent()
    assert not agent.ours
    checking = asyncio.create_task(agent.check(GOLDEN))
    await elapse(30)
    assert agent.ours == (SCRATCH,)
    checking.cancel()
    await asyncio.wait([checking])
    await host.tart.clone(GOLDEN.vm, SCRATCH)
    assert not agent.ours


@pytest.mark.parametrize(("is_of_a_pod", "has_intent"), [(False, False), (True, False), (True, True)])
async def test_a_vm_of_the_scratch_name_that_is_not_ours_is_never_touched(
    host: Host, clock: Clock, is_of_a_pod: bool, has_intent: bool
) -> None:
    """I3: a VM is ours by its mark, not by its name; an intent speaks only for one that nobody else has marked."""
    await host.tart.clone(GOLDEN.vm, SCRATCH)
    if has_intent:
        Files().make_folder(host.state / "scratch")
        Files().write(host.state / "scratch" / "intent.json", b"{}")
    if is_of_a_pod:
        mark = PodMark("uid", "applecart", "scratch-mac-1", IMAGE, "digest", clock.now())
        host.home.write_mark(SCRATCH, mark, Files())
    sentence = await host.agent().check(GOLDEN)
    assert sentence is not None
    assert f"a VM named {SCRATCH} is on this host and is not ours" in sentence
    assert SCRATCH in host.mac.vms()
    assert not host.mac.boots


async def test_a_stop_that_hangs_leaves_no_vm_behind(host: Host) -> None:
    host.faults(on="stop", kind="hang")
    assert await host.agent().check(GOLDEN) is None
    host.assert_clean()


async def test_a_vm_that_cannot_be_deleted_is_told_and_deleted_the_next_time(host: Host) -> None:
    host.faults(on="delete", kind="fail", text="the disk is sleepy")
    sentence = await host.agent().check(GOLDEN)
    assert sentence is not None
    assert sentence.startswith("a scratch VM cannot be removed again: ")
    await host.agent().clean_up()
    host.assert_clean()


class Killer(Files):
    """Kills the agent at its nth touch of the world: before it, or right after."""

    def __init__(self, host: Host, at: int, when: str) -> None:
        self.host = host
        self.left = at
        self.when = when
        self.has_struck = False
        host.mac.before_call = lambda call: self._at_call("before")
        host.mac.after_call = lambda call: self._at_call("after")

    def disarm(self) -> None:
        self.host.mac.before_call = self.host.mac.after_call = None

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        self._around(lambda: Files.write(self, path, data, mode))

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        self._around(lambda: Files.make_folder(self, path, mode))

    def remove(self, path: Path) -> None:
        self._around(lambda: Files.remove(self, path))

    def _around(self, work: Callable[[], None]) -> None:
        if self._is_due("before"):
            raise asyncio.CancelledError
        work()
        if self._is_due("after"):
            raise asyncio.CancelledError

    async def _at_call(self, when: str) -> None:
        self._is_due(when)

    def _is_due(self, when: str) -> bool:
        if when != self.when:
            return False
        self.left -= 1
        if self.left == 0:
            self.has_struck = True
            self.host.mac.kill_agent()
        return self.left == 0


async def _checked(host: Host, killer: Killer) -> str | None:
    return await host.agent(killer).check(GOLDEN)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_agent_that_is_killed_anywhere_leaves_nothing_that_the_next_one_does_not_clear_away(
    tmp_path: Path, clock: Clock, when: str
) -> None:
    for at in range(1, MOST_CALLS):
        folder = tmp_path / str(at)
        folder.mkdir()
        host = await Host(folder, clock).make_golden()
        killer = Killer(host, at, when)
        checking = asyncio.create_task(_checked(host, killer))
        await elapse(120)
        checking.cancel()
        with suppress(asyncio.CancelledError):
            await checking
        killer.disarm()
        host.mac.start_agent()
        await host.agent().clean_up()
        host.assert_clean()
        assert len(host.mac.boots) <= 1
        assert await host.agent().check(GOLDEN) is None
        host.assert_clean()
        if not killer.has_struck:
            assert at > 10  # the kills went through the whole check
            return
    pytest.fail("the check makes more calls than the test kills at")
