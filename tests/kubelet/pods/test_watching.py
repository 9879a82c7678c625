"""A VM that runs: its deadline, its address, its end, whatever the clock does."""

import errno
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from applecart.api.containers import ExecAction, Probe
from applecart.api.meta import Key
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock, VirtualClock
from applecart.kube.patch import Merge
from applecart.kubelet.entry import JournalEntry
from applecart.kubelet.pods.stopping import POWER_BUTTON
from applecart.kubelet.pods.watching import Watching
from applecart.sim.tart.guest_rules import Rule
from tests.kubelet.incidents.scene import events, guests, job, scene, terminated, within
from tests.kubelet.world import NAMESPACE, World, vm_pod
from tests.virtual_time import elapse


async def test_a_pod_that_is_active_too_long_is_ended_and_says_so(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=120))
        with within(here, 180):
            pod = await here.until_phase("job-1", FAILED)
        assert (pod.status.reason, terminated(pod).reason) == ("DeadlineExceeded", "DeadlineExceeded")
        assert "activeDeadlineSeconds of 120" in pod.status.message
        await elapse(60)
        assert here.mac.running() == []


async def test_a_deadline_that_is_set_while_the_pod_runs_counts_from_its_start(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await elapse(600)
        await here.client.patch(Pod, Key(NAMESPACE, "job-1"), Merge({"spec": {"activeDeadlineSeconds": 300}}))
        with within(here, 120):
            await here.until_phase("job-1", FAILED)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_is_set_while_the_pod_runs_does_not_move_its_deadline(
    hours: int, tmp_path: Path, clock: Clock
) -> None:
    assert isinstance(clock, VirtualClock)
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=1200))
        await here.until_phase("job-1", RUNNING)
        clock.jump(timedelta(hours=hours))
        await elapse(900)
        assert here.mac.running() == ["ci-job-1"]
        with within(here, 600):
            await here.until_phase("job-1", FAILED)


async def test_a_pod_that_ends_in_time_keeps_its_own_end(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=30, code=0, active_deadline_seconds=600))
        pod = await here.until_phase("job-1", SUCCEEDED)
        assert terminated(pod).reason == "Completed"


async def test_a_guest_that_reported_its_end_is_believed_although_it_was_being_ended(tmp_path: Path, clock: Clock) -> None:
    """It finished its job while the agent was about to end it."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=120))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / "userdata" / "ci-job-1" / "status" / "runner-rc").write_text("0\n")
        pod = await here.until_phase("job-1", SUCCEEDED)
        assert (terminated(pod).exit_code, terminated(pod).reason) == (0, "Completed")


async def test_the_way_to_a_running_vm_is_told_in_events(tmp_path: Path, clock: Clock) -> None:
    """Incident 8: nothing was recorded between Scheduled and Running, for minutes."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await elapse(5)
        found = await events(here)
        assert {"CreatingVM", "Pulling", "Pulled", "Started"} <= found.keys()
        assert found["Started"].message.startswith("VM ci-job-1 is up at 192.168.64.")


async def test_a_guest_that_has_just_booted_keeps_the_token_it_was_given(tmp_path: Path, clock: Clock) -> None:
    """It was replaced at every boot: two tokens per Pod, and the one that the guest had copied was the one nobody knew."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(automount_service_account_token=True, service_account_name="default"))
        token = tmp_path / "userdata" / "ci-job-1" / "sa_token"
        while not token.exists():
            await elapse(0.1)
        first = token.read_text()
        await here.until_phase("job-1", RUNNING)
        await elapse(600)
        assert token.read_text() == first
        await here.kill_agent()
        here.start_agent()
        await elapse(60)
        assert token.read_text() != first


@pytest.mark.parametrize(("flag", "spoken"), [("20", "20 seconds"), ("150", "150 seconds"), ("180", "3 minutes")])
async def test_a_deadline_is_told_in_words_that_people_use(flag: str, spoken: str, tmp_path: Path, clock: Clock) -> None:
    """It read "0.333333 minutes"."""
    async with scene(tmp_path, clock, f"--boot-deadline={flag}") as here:
        guests(here, Rule(never_gets_ip=True))
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", FAILED)
        assert f"had no address {spoken} after its start" in pod.status.message


def _is_asked_to_halt(here: World) -> bool:
    return any(call.verb == "signal" and call.argv[1] == str(int(POWER_BUTTON)) for call in here.mac.calls)


@pytest.mark.parametrize("is_deaf", [False, True], ids=["guest-halts", "guest-is-deaf"])
@pytest.mark.parametrize("reason", ["TartBootTimedOut", "LivenessProbeFailed", "DeadlineExceeded"])
async def test_why_a_vm_is_ended_outlives_the_agent_that_ends_it(
    reason: str, is_deaf: bool, tmp_path: Path, clock: Clock
) -> None:
    """The agent was killed while the guest shut down as it was asked to; the next one saw a clean halt and called it a success,
    also of a guest that had never booted."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(shutdown_s=20, ignores_shutdown=is_deaf, exit_code=None, never_gets_ip=reason == "TartBootTimedOut"))
        here.start_agent()
        pod = vm_pod(termination_grace_period_seconds=60, active_deadline_seconds=300 if reason == "DeadlineExceeded" else None)
        if reason == "LivenessProbeFailed":
            dead = Probe(exec=ExecAction(command=("false",)), period_seconds=5, failure_threshold=2)
            container = msgspec.structs.replace(pod.spec.containers[0], liveness_probe=dead)
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,)))
        await here.create(pod)
        while not _is_asked_to_halt(here):
            await elapse(1)
        await here.kill_agent()
        await elapse(40)
        assert here.mac.running() == (["ci-job-1"] if is_deaf else [])
        here.start_agent()
        ended = await here.until("job-1", lambda found: found is not None and found.is_terminal, within_s=180)
        assert ended is not None
        assert (ended.status.phase, ended.status.reason, terminated(ended).exit_code) == (FAILED, reason, 137)
        await elapse(60)
        assert here.mac.running() == []
        assert len(here.mac.boots) == 1


@pytest.mark.parametrize(("runs_s", "phase"), [(60, SUCCEEDED), (600, FAILED)], ids=["before", "after"])
async def test_a_deadline_that_passed_while_no_agent_ran_counts_only_for_a_vm_that_outlived_it(
    runs_s: int, phase: str, tmp_path: Path, clock: Clock
) -> None:
    """A VM that had halted by itself in time was called one that ran too long, because somebody looked only afterwards."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(runs_s=runs_s, exit_code=None))
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=300))
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await elapse(900)
        here.start_agent()
        pod = await here.until_phase("job-1", phase, within_s=120)
        assert pod.status.reason == ("TartRunExited" if phase == SUCCEEDED else "DeadlineExceeded")
        ran = terminated(pod).finished_at - terminated(pod).started_at
        assert runs_s <= ran.total_seconds() < runs_s + 60  # not until somebody looked


async def test_what_fails_beside_a_running_vm_keeps_its_class(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk was told as "unhandled errors in a TaskGroup", which says nothing to anybody."""

    async def fail(watching: Watching, entry: JournalEntry) -> None:
        await elapse(5)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Watching, "_refresh_address", fail)
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        pod = await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await elapse(20)
        assert here.agent is not None
        entry = here.agent.host.journal.get(pod.uid)
        assert entry is not None
        assert entry.trouble is not None
        assert entry.trouble.failure == "no-space"
