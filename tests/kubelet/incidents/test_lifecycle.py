"""Incidents of a Pod's life: it ends when its VM does, goes when it is deleted, and never boots twice."""

import shutil
from pathlib import Path

import pytest

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.kube.patch import Strategic
from applecart.kube.transport import Request
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kube import stuck
from tests.kube.faults import Slow
from tests.kubelet.incidents.scene import (
    calls,
    cut_off,
    delete,
    events,
    go_wrong,
    guests,
    job,
    person_runs,
    scene,
    terminated,
    told,
    waiting_reason,
    within,
)
from tests.kubelet.world import NAMESPACE, vm_pod
from tests.virtual_time import elapse

STUCK_PODS = 504
GONE_WITHIN_S = 5.0
ANSWER_S = 0.05  # of an API that is far away


async def test_reconcile_terminal_pod_with_deletion_timestamp_removes_finalizer(tmp_path: Path, clock: Clock) -> None:
    """Incident 1: "it has ended" was asked before "is it being deleted", so nobody ever removed the finalizer."""
    async with scene(tmp_path, clock) as here:
        pod = await stuck.store(here.client, "job-1", namespace=NAMESPACE)
        assert pod.metadata.finalizers == (VM_CLEANUP,)
        here.start_agent()
        await here.until_gone("job-1", GONE_WITHIN_S)
        assert here.mac.boots == []


async def test_504_finished_pods_are_gone_within_five_seconds_of_the_agents_start(tmp_path: Path, clock: Clock) -> None:
    """Incident 1, in its size: 504 Pods were stuck for four days; the first repair took 49 s."""
    async with scene(tmp_path, clock) as here:
        for number in range(STUCK_PODS):
            await stuck.store(here.client, f"job-{number}", namespace=NAMESPACE)
        wire = cut_off(here)
        wire.plan = lambda request: Slow(ANSWER_S)
        here.start_agent()
        await elapse(GONE_WITHIN_S)
        assert await here.client.list(Pod) == []
        writes = [call for call in wire.calls if call.method != "GET" and f"/{NAMESPACE}/pods/" in call.path]
        assert len(writes) <= STUCK_PODS, "one call per Pod"
        assert list((tmp_path / "state" / "pods").iterdir()) == []


async def test_a_finished_pod_never_boots_again_even_for_an_agent_that_remembers_nothing(tmp_path: Path, clock: Clock) -> None:
    """Incident 2: with the memory of the Pod gone, the next look cloned and booted a VM for a job that was done."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job())
        await here.until_phase("job-1", SUCCEEDED)
        await elapse(60)
        assert "ci-job-1" not in here.mac.vms()
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state")
        here.start_agent()
        await elapse(600)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.status.phase == SUCCEEDED
        assert len(calls(here, "clone", "ci-job-1")) == len(here.mac.boots) == 1


async def test_a_vm_that_halted_ends_its_pod_although_tart_still_knows_its_address(tmp_path: Path, clock: Clock) -> None:
    """Incidents 3 and 4: `tart ip` answers after the halt, so Pods stayed Running; and a clean halt once counted as Failed."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        go_wrong(here, Fault(on="delete", kind="hang", vm="ci-job-1"))
        await here.create(job(runs_s=60))
        running = await here.until_phase("job-1", RUNNING)
        with within(here, 75):
            ended = await here.until_phase("job-1", SUCCEEDED)
        still_known = await person_runs(here, "ip", "ci-job-1")
        assert still_known.out.decode().strip() == running.status.pod_ip
        assert terminated(ended).reason == "Completed"


async def test_a_guest_that_boots_for_five_minutes_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    """Incident 5: a wait inside the start gave up on slow first boots, deleted the VM and began again, for ever."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(boot_s=300))
        here.start_agent()
        await here.create(vm_pod())
        await elapse(250)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.status.phase == PENDING
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert len(here.mac.boots) == len(calls(here, "clone", "ci-job-1")) == 1


@pytest.mark.parametrize("crashes_after_s", [20, 90], ids=["while booting", "while running"])
async def test_a_guest_that_crashes_late_fails_its_pod_at_once(crashes_after_s: int, tmp_path: Path, clock: Clock) -> None:
    """Incident 6: whoever died after the first five seconds was not looked at again; its Pod stayed Pending for ever."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(boot_s=60, crashes_after_s=crashes_after_s))
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: bool(here.mac.running()))
        with within(here, crashes_after_s + 3):
            pod = await here.until_phase("job-1", FAILED)
        assert "virtualization error" in pod.status.message
        assert terminated(pod).exit_code != 0
        assert len(here.mac.boots) == 1


async def test_a_pod_goes_on_although_the_event_of_its_finalizer_was_lost(tmp_path: Path, clock: Clock) -> None:
    """Incident 7: the agent set the finalizer and relied on the watch to hear of it; a lost event stranded the Pod."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)

        def lose_what_follows(request: Request) -> None:
            if request.method == "PATCH" and request.path.endswith("/pods/job-1"):
                wire.freeze()

        wire.plan = lose_what_follows
        here.start_agent()
        await elapse(5)  # it watches
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=60)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.metadata.finalizers == (VM_CLEANUP,)


async def test_a_change_that_no_watch_told_is_noticed_all_the_same(tmp_path: Path, clock: Clock) -> None:
    """Incident 7 once more: also a deletion whose event was lost is carried out, when silence shows that the watch is dead."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        wire.freeze()
        await delete(here)
        await here.until_gone("job-1", within_s=300)
        assert "ci-job-1" not in here.mac.vms()


async def test_the_wait_of_a_pod_is_announced_and_counted_once_however_often_it_is_tried(tmp_path: Path, clock: Clock) -> None:
    """Incident 9: every retry was counted as one more wait, a short one, which hid the long ones."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="clone", kind="fail", vm="ci-job-1", times=3, text="disk I/O error"))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        assert len(calls(here, "clone", "ci-job-1")) == 4
        assert here.agent is not None
        (delay,) = here.agent.host.metrics._delay.of("unknown").collect()
        assert [sample.value for sample in delay.samples if sample.name.endswith("_count")] == [1.0]
        assert told((await events(here))["CreatingVM"]) == 1


async def test_a_pod_always_says_something_about_its_container(tmp_path: Path, clock: Clock) -> None:
    """Incidents 10 and 11: READY was 0/1 for VMs that worked, and an ended Pod did not say how or when it ended."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60, code=3))
        await elapse(5)
        assert waiting_reason(await here.pod("job-1")) == "ContainerCreating"
        running = await here.until_phase("job-1", RUNNING)
        status = running.status.container_statuses[0]
        assert (status.ready, status.started, status.container_id) == (True, True, "tart://ci-job-1")
        ended = await here.until_phase("job-1", FAILED)
        end = terminated(ended)
        assert (end.exit_code, end.reason) == (3, "Error")
        assert end.started_at < end.finished_at <= clock.now()
        assert (await events(here)).keys() >= {"CreatingVM"}


async def test_a_job_is_billed_until_its_vm_ended_not_until_somebody_noticed(tmp_path: Path, clock: Clock) -> None:
    """Incident 13: the time of the look, after the teardown, was published as the end of the job."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        while here.mac.running():
            await elapse(1)
        ended_at = clock.now()
        await elapse(600)
        here.start_agent()
        pod = await here.until_phase("job-1", SUCCEEDED, within_s=30)
        assert abs((terminated(pod).finished_at - ended_at).total_seconds()) <= 2


@pytest.mark.parametrize("grace_s", [None, 0, 5])
async def test_a_deleted_pod_is_gone_with_its_vm_and_waits_for_nothing_else(
    grace_s: int | None, tmp_path: Path, clock: Clock
) -> None:
    """Incident 14: objects that stayed behind kept their host port and their place in the spread taken."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await delete(here, grace_s=grace_s)
        await here.until_gone("job-1", within_s=10)
        assert "ci-job-1" not in here.mac.vms()
        await here.create(vm_pod())  # its name is free
        await here.until_phase("job-1", RUNNING)
        await delete(here)


async def test_the_guest_is_asked_to_shut_down_before_its_power_is_cut(tmp_path: Path, clock: Clock) -> None:
    """Weakness 20: the grace period was ignored and every stop pulled the plug."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(vm="ci-polite", shutdown_s=20), Rule(vm="ci-deaf", ignores_shutdown=True))
        here.start_agent()
        for name in ("polite", "deaf"):
            await here.create(vm_pod(name, termination_grace_period_seconds=40))
            await here.until_phase(name, RUNNING)
        await delete(here, "polite")
        with within(here, 25):
            await here.until_gone("polite")
        assert calls(here, "stop", "ci-polite") == []
        assert "guest has stopped the virtual machine" in (tmp_path / "vm-log" / "ci-polite.log").read_text()
        await delete(here, "deaf")
        await elapse(38)
        assert here.mac.running() == ["ci-deaf"]
        with within(here, 10):
            await here.until_gone("deaf")
        assert len(calls(here, "stop", "ci-deaf")) == 1


async def test_the_pod_of_a_vm_that_is_already_gone_can_be_deleted(tmp_path: Path, clock: Clock) -> None:
    """Weakness 14: deleting what is not there was an error, so such a Pod was Terminating until the agent restarted."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        shutil.rmtree(here.mac.store.vms / "ci-job-1")  # as a person in a hurry does
        await delete(here)
        await here.until_gone("job-1", within_s=60)


async def test_a_status_keeps_what_others_wrote_into_it(tmp_path: Path, clock: Clock) -> None:
    """Weakness 11: the whole status was replaced, and one failed look made a Running Pod Pending again."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await elapse(3)
        theirs = {"status": {"conditions": [{"type": "example.com/Theirs", "status": "True"}]}}
        await here.client.patch_status(Pod, Key(NAMESPACE, "job-1"), Strategic(theirs))
        running = await here.until_phase("job-1", RUNNING)
        go_wrong(here, Fault(on="ip", kind="fail", times=None, text="no"))
        await elapse(600)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.status.phase == RUNNING
        assert pod.status.pod_ip == running.status.pod_ip != ""
        assert here.agent is not None
        (entry,) = here.agent.host.journal
        assert entry.address == running.status.pod_ip
        types = {condition.type for condition in pod.status.conditions}
        assert types >= {"Ready", "ContainersReady", "Initialized", "PodScheduled", "example.com/Theirs"}
