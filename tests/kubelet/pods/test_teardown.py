"""Taking a VM off the host, however often that is cut short and however long its guest may take."""

from pathlib import Path

import msgspec
import pytest

from applecart.api.meta import Key
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from applecart.kubelet.agent import DEADLINE_S
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.kubelet.entry import Stage
from applecart.kubelet.pods.reconciler import LONGEST_TEARDOWN_S
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kube.faults import Says
from tests.kubelet.incidents.scene import calls, cut_off, delete, events, go_wrong, guests, scene, terminated, within
from tests.kubelet.world import NAMESPACE, World, vm_pod
from tests.virtual_time import elapse

GONE_FIRST = [("applecart.json", "config.json"), ("applecart.json",), ("config.json",)]
OTHERS = "batch.kubernetes.io/job-tracking"
LONG_GRACE_S = 1800
CUT_OFF_S = 60  # the power, the end of the process, and the deletion


def guarded(pod: Pod) -> Pod:
    """One that somebody else wants to see the end of."""
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=(OTHERS,)))


async def _cut_short(here: World, gone: tuple[str, ...]) -> Path:
    """The deletion of a running Pod whose `tart delete` dies when it has removed some files; where the VM is."""
    here.start_agent()
    await here.create(vm_pod())
    await here.until_phase("job-1", RUNNING)
    vm = here.mac.store.vms / "ci-job-1"
    go_wrong(here, Fault(on="delete", vm="ci-job-1", kind="crash"))
    await delete(here)
    while not calls(here, "delete", "ci-job-1"):
        await elapse(0.01)
    await elapse(0.05)
    for file in gone:
        (vm / file).unlink()
    return vm


@pytest.mark.parametrize("gone", GONE_FIRST, ids="-".join)
@pytest.mark.parametrize("is_restarted", [False, True], ids=["same-agent", "next-agent"])
async def test_a_vm_whose_deletion_was_cut_short_goes_with_its_pod_and_frees_its_name(
    is_restarted: bool, gone: tuple[str, ...], tmp_path: Path, clock: Clock
) -> None:
    """I3: Tart deletes file by file. With the mark gone first the rest was nobody's: it stayed, and held the name, for ever."""
    async with scene(tmp_path, clock) as here:
        vm = await _cut_short(here, gone)
        if is_restarted:
            await here.kill_agent()
            here.start_agent()
        await here.until_gone("job-1", within_s=120)
        assert not vm.exists()
        assert list((tmp_path / "state" / "deleting").iterdir()) == []
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert here.mac.running() == ["ci-job-1"]


@pytest.mark.parametrize("kind", ["crash", "hang"])
async def test_a_vm_whose_deletion_ends_in_the_middle_goes_with_its_pod(kind: str, tmp_path: Path, clock: Clock) -> None:
    """The same as Tart does it by itself: it dies, or hangs until its deadline, with the first file gone."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        go_wrong(here, Fault(on="delete", vm="ci-job-1", kind=kind, when="during"))
        await delete(here)
        await here.until_gone("job-1", within_s=900)
        assert not (here.mac.store.vms / "ci-job-1").exists()
        assert list((tmp_path / "state" / "deleting").iterdir()) == []


async def test_the_rest_of_a_deleted_vm_holds_up_no_pod_of_its_name_although_its_entry_is_lost(
    tmp_path: Path, clock: Clock
) -> None:
    async with scene(tmp_path, clock, "--disable-vm-gc") as here:
        vm = await _cut_short(here, ("applecart.json",))
        await here.kill_agent()
        (entry,) = (tmp_path / "state" / "pods").iterdir()
        (entry / "entry.json").unlink()
        here.start_agent()
        await here.until_gone("job-1", within_s=120)
        assert vm.exists()  # nobody collects here
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert len(here.mac.boots) == 2


async def test_a_foreign_vm_that_took_the_name_of_a_deleted_one_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    """I3: what was written down is the folder, not the name."""
    async with scene(tmp_path, clock) as here:
        vm = await _cut_short(here, ())
        await here.kill_agent()
        vm.rename(vm.with_name("kept-so-that-its-number-is-not-given-again"))
        vm.mkdir()
        (vm / "note").write_text("mine")
        here.start_agent()
        await here.until_gone("job-1", within_s=120)
        assert (vm / "note").exists()


def test_a_teardown_that_takes_too_long_is_noticed_before_the_look_at_its_pod_is_cut_off() -> None:
    assert LONGEST_TEARDOWN_S < DEADLINE_S


@pytest.mark.parametrize("grace_s", [int(LONGEST_TEARDOWN_S), int(DEADLINE_S), LONG_GRACE_S])
async def test_a_guest_that_ignores_its_power_button_goes_after_its_grace_however_long_that_is(
    grace_s: int, tmp_path: Path, clock: Clock
) -> None:
    """I5: a grace longer than one look at a Pod was begun anew with every look, and the power was never cut."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(ignores_shutdown=True))
        here.start_agent()
        await here.create(vm_pod(termination_grace_period_seconds=grace_s))
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        await elapse(grace_s - 10)
        assert here.mac.running() == ["ci-job-1"]
        with within(here, 10 + CUT_OFF_S):
            await here.until_gone("job-1")
        assert here.mac.running() == []
        assert "TeardownIncomplete" not in await events(here)


async def test_a_guest_with_a_long_grace_goes_as_soon_as_it_has_shut_down(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(shutdown_s=1200))
        here.start_agent()
        await here.create(vm_pod(termination_grace_period_seconds=LONG_GRACE_S))
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        with within(here, 1200 + CUT_OFF_S):
            await here.until_gone("job-1")
        assert calls(here, "stop", "ci-job-1") == []


async def test_whoever_loses_patience_cuts_the_grace_of_a_guest_short(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(ignores_shutdown=True))
        here.start_agent()
        await here.create(vm_pod(termination_grace_period_seconds=LONG_GRACE_S))
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        await elapse(5)
        await delete(here, grace_s=0)
        await here.until_gone("job-1", within_s=CUT_OFF_S)


async def test_a_pod_goes_although_its_teardown_never_ends(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: a teardown that was cut off with the look at its Pod was no failure, so nobody let the Pod go without its VM."""

    async def never(*args: object) -> None:
        await elapse(10**7)

    monkeypatch.setattr(CacheVolumes, "finish", never)
    async with scene(tmp_path, clock, f"--runner-cache-root={tmp_path / 'cache'}") as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        await here.until_gone("job-1", within_s=2 * DEADLINE_S)
        assert "did not end within" in (await events(here))["TeardownIncomplete"].message
        assert here.mac.running() == []


@pytest.mark.parametrize("is_agent_killed", [False, True], ids=["same-agent", "next-agent"])
@pytest.mark.parametrize("report", [None, 0, 3])
async def test_a_pod_that_is_deleted_while_its_vm_runs_is_no_success_unless_its_guest_says_so(
    report: int | None, is_agent_killed: bool, tmp_path: Path, clock: Clock
) -> None:
    """A guest that halts because we ask it to halts cleanly; whoever counts jobs counted every cancelled one as done."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(shutdown_s=20, exit_code=None))
        here.start_agent()
        await here.create(guarded(vm_pod()))
        await here.until_phase("job-1", RUNNING)
        if report is not None:
            (tmp_path / "userdata" / "ci-job-1" / "status" / "runner-rc").write_text(f"{report}\n")
        await delete(here)
        await elapse(10)
        if is_agent_killed:
            await here.kill_agent()
            await elapse(60)
            here.start_agent()
        pod = await here.until("job-1", lambda found: found is not None and found.is_terminal, within_s=120)
        assert pod is not None
        if report is None:
            assert (pod.status.phase, pod.status.reason) == (FAILED, "PodDeleted")
            assert pod.status.message == "the Pod was deleted while its VM ran"
        else:
            assert pod.status.phase == (FAILED if report else SUCCEEDED)
            assert terminated(pod).exit_code == report


@pytest.mark.parametrize("is_released", [False, True], ids=["finalizer-refused", "finalizer-gone"])
async def test_an_end_that_was_told_stays_although_the_watch_has_not_shown_it_yet(
    is_released: bool, tmp_path: Path, clock: Clock
) -> None:
    """I4: the status was written, then the API stumbled; the next look knew the Pod as one that runs and nothing of it on the
    host any more, and wrote that it never ran, or that its VM was lost, over a success."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        guests(here, Rule(shutdown_s=20, exit_code=None))
        here.start_agent()
        await here.create(guarded(vm_pod()))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / "userdata" / "ci-job-1" / "status" / "runner-rc").write_text("0\n")
        await delete(here)
        await elapse(5)
        is_refused = not is_released

        def blind(request: Request) -> Says | None:
            is_change = request.method == "PATCH" and request.path.endswith("/pods/job-1")
            is_look = request.method == "GET" and request.path.endswith("/pods")
            return Says(503) if is_look or (is_change and is_refused) else None

        wire.plan = blind
        wire.sever()
        await here.until_phase("job-1", SUCCEEDED, within_s=60)
        await elapse(60)
        is_refused = False
        assert here.agent is not None
        await here.agent.reconciler.reconcile(Key(NAMESPACE, "job-1"))
        pod = await here.until("job-1", lambda found: found is not None and found.metadata.finalizers == (OTHERS,), 60)
        assert pod is not None
        assert (pod.status.phase, terminated(pod).exit_code) == (SUCCEEDED, 0)
        wire.heal()
        await here.client.patch(Pod, pod.key, Merge({"metadata": {"finalizers": []}}))
        await here.until_gone("job-1", within_s=60)
        await elapse(60)
        assert list(here.agent.host.journal) == []


async def test_a_vm_that_had_ended_before_its_pod_was_deleted_keeps_its_own_end(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(runs_s=60, exit_code=None))
        here.start_agent()
        await here.create(guarded(vm_pod()))
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await elapse(120)
        await delete(here)
        here.start_agent()
        pod = await here.until("job-1", lambda found: found is not None and found.is_terminal, within_s=120)
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == (SUCCEEDED, "TartRunExited")


@pytest.mark.parametrize("is_known", [True, False], ids=["accepted", "never-seen"])
async def test_a_pod_that_is_deleted_before_it_has_a_vm_ends_although_somebody_else_keeps_it(
    is_known: bool, tmp_path: Path, clock: Clock
) -> None:
    """A Job waits for the end of each of its Pods, with a finalizer of its own: for ever for one that stayed Pending."""
    async with scene(tmp_path, clock) as here:
        if is_known:
            here.start_agent()
        await here.create(guarded(vm_pod()))
        await elapse(3)  # its image is pulled
        await delete(here)
        if not is_known:
            here.start_agent()
        pod = await here.until_phase("job-1", FAILED, within_s=60)
        assert (pod.status.reason, terminated(pod).exit_code) == ("PodDeleted", 255)
        await here.until("job-1", lambda found: found is not None and found.metadata.finalizers == (OTHERS,), 60)
        assert here.mac.boots == []
        assert here.agent is not None
        assert [entry for entry in here.agent.host.journal if entry.stage is not Stage.REMOVED] == []
