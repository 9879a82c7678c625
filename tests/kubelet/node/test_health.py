"""Checks of a host in their own tasks, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from applecart.api.conditions import HOST_BUSY
from applecart.clock import Clock
from applecart.errors import DeadlineExceeded
from applecart.kubelet.node.health import (
    Check,
    Health,
    NothingFoundOut,
    gui_session_exists,
    scratch_vm_boots,
    tart_answers,
)
from applecart.secrets import Secret
from applecart.tart.failures import NoGuiSession
from tests.kubelet.node.host import Host
from tests.virtual_time import elapse


class Thing:
    """Something on the host that is looked at, and how it is."""

    def __init__(self) -> None:
        self.fault: Exception | str | None = None
        self.hangs = False
        self.looks = 0

    async def __call__(self) -> object:
        self.looks += 1
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.fault, Exception):
            raise self.fault
        return self.fault if self.fault else ["a", "list"]


@asynccontextmanager
async def checked(clock: Clock, host: Host, *checks: Check, **options: object) -> AsyncIterator[Health]:
    health = Health(host, clock, checks, **options)  # type: ignore[arg-type]
    task = asyncio.create_task(health.run())
    try:
        yield health
    finally:
        task.cancel()
        await asyncio.wait([task])


def says(health: Health, type_: str) -> tuple[str, str]:
    condition = next(each for each in health.conditions(None) if each.type == type_)
    return condition.status, condition.reason


async def test_a_host_becomes_ready_when_its_checks_have_spoken(clock: Clock) -> None:
    async with checked(clock, Host(), tart_answers(Thing()), gui_session_exists(Thing())) as health:
        assert says(health, "Ready") == ("False", "TartKubeletStarting")
        await elapse(0.1)
        assert says(health, "Ready") == ("True", "TartKubeletReady")


async def test_a_tart_that_hangs_makes_the_host_unready_and_delays_no_other_check(clock: Clock) -> None:
    """Weaknesses 21 and 22: one hung `tart list` held up everything else that the Node had to say."""
    tart, gui, host = Thing(), Thing(), Host()
    async with checked(clock, host, tart_answers(tart), gui_session_exists(gui)) as health:
        await elapse(1)
        tart.hangs = True
        host.free_percent = 5.0
        await elapse(31)
        assert says(health, "Ready")[0] == "True"
        assert says(health, "DiskPressure")[0] == "True"
        await elapse(120)
        assert says(health, "Ready") == ("False", "TartNotAnswering")
        assert gui.looks >= 5
        tart.hangs = False
        await elapse(61)
        assert says(health, "Ready")[0] == "True"


async def test_a_screen_without_a_session_is_told_by_its_own_sentence(clock: Clock) -> None:
    gui = Thing()
    gui.fault = NoGuiSession("nobody is logged in on the screen")
    async with checked(clock, Host(), tart_answers(Thing()), gui_session_exists(gui)) as health:
        await elapse(31)
        ready = health.conditions(None)[0]
        assert (ready.status, ready.reason) == ("False", "NoGuiSession")
        assert "nobody is logged in on the screen (since 2026-01-01T00:00:00Z)" in ready.message


async def test_a_check_that_never_speaks_holds_ready_back_for_a_minute_only(clock: Clock) -> None:
    gui = Thing()
    slow = Check("slow", gui, gui_session_exists(gui).reason, "wait", deadline_s=1000)
    gui.hangs = True
    async with checked(clock, Host(), tart_answers(Thing()), slow) as health:
        await elapse(59)
        assert says(health, "Ready") == ("False", "TartKubeletStarting")
        await elapse(2)
        assert says(health, "Ready") == ("True", "TartKubeletReady")


async def test_a_secret_in_an_error_does_not_reach_the_condition(clock: Clock) -> None:
    token = Secret("hunter2-hunter2")
    tart = Thing()
    tart.fault = RuntimeError(f"refused {token.reveal()}")
    async with checked(clock, Host(), tart_answers(tart)) as health:
        await elapse(31)
        assert "hunter2" not in str(health.conditions(None))
        assert "refused ***" in health.outcomes[0].fault


async def test_what_runs_is_seen_and_unknown_is_not_idle(clock: Clock) -> None:
    host = Host()
    async with checked(clock, host) as health:
        assert says(health, "TartKubeletHostBusy")[0] == "Unknown"
        assert not health.is_idle
        await elapse(1)
        assert says(health, "TartKubeletHostBusy") == ("False", "NothingRuns")
        host.commands.append("/usr/local/bin/tart push base registry.example.com/base:1")
        await elapse(30)
        assert says(health, "TartKubeletHostBusy") == ("True", "VmOrBuildRuns")
        host.ps_fault = DeadlineExceeded("ps did not end")
        await elapse(30)
        assert says(health, "TartKubeletHostBusy") == ("Unknown", "ProcessesUnreadable")
        assert not health.is_idle


async def test_a_disk_that_cannot_be_read_any_more_keeps_its_last_word(clock: Clock) -> None:
    """Incident 37: a failing probe must not turn pressure into Unknown."""
    host = Host()
    host.free_percent = 3.0
    async with checked(clock, host) as health:
        await elapse(1)
        host.disk_fault = OSError("input/output error")
        await elapse(60)
        assert says(health, "DiskPressure") == ("True", "TartKubeletHasDiskPressure")


async def test_the_scratch_vm_is_booted_once_an_hour_and_never_beside_another_vm(clock: Clock) -> None:
    scratch, host = Thing(), Host()
    host.commands.append("tart run ci-job")
    async with checked(clock, host, scratch_vm_boots(scratch)) as health:
        await elapse(7200)
        assert scratch.looks == 0
        assert says(health, "Ready")[0] == "True"
        host.commands.pop()
        await elapse(3 * 3600)
        assert scratch.looks == 3
        scratch.fault = "it got no address within 600 s"
        await elapse(3600 + 301)
        assert says(health, "Ready") == ("False", "ScratchVmFailed")


async def test_a_look_that_found_nothing_out_changes_nothing_and_is_tried_again_soon(clock: Clock) -> None:
    """I11: it was taken for a good word, and a host that could boot no VM was Ready again."""
    scratch = Thing()
    scratch.fault = "it got no address within 600 s"
    async with checked(clock, Host(), scratch_vm_boots(scratch)) as health:
        await elapse(400)
        failed = health.outcomes
        assert says(health, "Ready") == ("False", "ScratchVmFailed")
        scratch.fault = NothingFoundOut("the registry is out of order")
        await elapse(4000)
        assert scratch.looks > 10
        assert health.outcomes == failed
        scratch.fault = None
        await elapse(301)
        assert says(health, "Ready")[0] == "True"


async def test_a_scratch_vm_that_was_left_keeps_the_host_neither_busy_nor_from_being_checked(clock: Clock) -> None:
    """It kept the host from the very check that would have removed it."""
    scratch, host = Thing(), Host()
    host.commands.append("tart run scratch")
    async with checked(clock, host, scratch_vm_boots(scratch), scratch_vms=lambda: ["scratch"]) as health:
        await elapse(61)
        assert scratch.looks == 1
        assert says(health, "TartKubeletHostBusy")[0] == "False"


async def test_a_scratch_vm_may_take_its_time(clock: Clock) -> None:
    """Its image may take hours to come; what must end keeps its own deadline."""
    scratch = Thing()
    scratch.hangs = True
    async with checked(clock, Host(), scratch_vm_boots(scratch)) as health:
        await elapse(3 * 3600)
        assert scratch.looks == 1
        assert says(health, "Ready")[0] == "True"


async def test_a_host_whose_tart_hangs_is_not_ready_at_any_moment_after_a_start(clock: Clock) -> None:
    """It was for half a minute, in which Pods were bound to it."""
    tart = Thing()
    tart.hangs = True
    async with checked(clock, Host(), tart_answers(tart), gui_session_exists(Thing())) as health:
        for _ in range(200):
            await elapse(1)
            assert says(health, "Ready")[0] == "False"
        assert says(health, "Ready")[1] == "TartNotAnswering"


async def test_full_guests_are_handed_on_and_only_name_themselves_when_the_host_is_short(clock: Clock) -> None:
    """Weakness 23: a full guest is its Pod's trouble."""
    seen: list[Mapping[str, int]] = []

    async def used() -> dict[str, int]:
        return {"ci-a": 95}

    host = Host()
    async with checked(clock, host, guest_disks=used, on_guest_disks=seen.append) as health:
        await elapse(1)
        assert seen == [{"ci-a": 95}]
        assert says(health, "DiskPressure")[0] == "False"
        host.free_percent = 5.0
        await elapse(30)
        assert "ci-a at 95%" in str(health.conditions(None))


async def test_everything_found_out_is_reported(clock: Clock) -> None:
    reports = 0

    def report() -> None:
        nonlocal reports
        reports += 1

    async with checked(clock, Host(), tart_answers(Thing())) as health:
        health.on_report = report
        await elapse(1)
        assert reports == 4


async def test_a_vm_that_was_just_started_keeps_the_host_busy_before_anybody_looked(clock: Clock) -> None:
    """I7: between two looks the Node said that nothing runs, and the host might have been rebooted under a job."""
    ours: list[str] = []
    health = Health(Host(), clock, [], our_vms=lambda: ours)
    running = asyncio.create_task(health.run())
    await elapse(1)
    assert health.is_idle
    ours.append("ci-job-1")
    assert not health.is_idle
    busy = next(each for each in health.conditions(None) if each.type == HOST_BUSY)
    assert (busy.status, busy.message) == ("True", "VM ci-job-1 runs")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
