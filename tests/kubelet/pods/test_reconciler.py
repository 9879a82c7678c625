"""Pods that follow one another under one name, while the VM of the first cannot be removed."""

from pathlib import Path

from applecart.api.meta import Key
from applecart.api.pods import RUNNING, Pod
from applecart.clock import Clock
from applecart.kube.patch import Merge
from applecart.sim.tart.faults import Fault
from tests.kubelet.incidents.scene import delete, events, go_wrong, scene, waiting_reason
from tests.kubelet.world import NAMESPACE, World, vm_pod
from tests.virtual_time import elapse


async def vanish(here: World, name: str = "job-1") -> None:
    """Somebody took the finalizer away and deleted the Pod for good."""
    key = Key(NAMESPACE, name)
    await here.client.patch(Pod, key, Merge({"metadata": {"finalizers": []}}))
    await here.client.delete(Pod, key, grace_s=0)
    await here.until_gone(name, within_s=60)


async def test_a_pod_waits_for_the_vm_of_its_predecessor_and_says_so(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        go_wrong(here, Fault(on="delete", vm="ci-job-1", kind="fail", text="the disk is angry", times=None))
        await vanish(here)
        await here.create(vm_pod())
        await elapse(120)
        assert len(here.mac.boots) == 1
        told = (await events(here))["TartCreateFailed"]
        assert "earlier Pod of this name" in told.message
        assert "the disk is angry" in told.message
        waiting = await here.pod("job-1")
        assert waiting_reason(waiting) == "TartCreateFailed"  # I10: an event is gone after an hour
        assert waiting is not None
        assert "earlier Pod of this name" in waiting.status.message
        go_wrong(here)
        await here.until_phase("job-1", RUNNING, within_s=600)
        assert len(here.mac.boots) == 2


async def test_a_pod_that_is_deleted_waits_for_no_vm_but_its_own(tmp_path: Path, clock: Clock) -> None:
    """I5: a Pod being deleted always loses our finalizer, whatever became of an earlier one of its name."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        go_wrong(here, Fault(on="delete", vm="ci-job-1", kind="hang", times=None))
        await vanish(here)
        waiting = vm_pod()
        await here.create(waiting)
        await here.client.patch(Pod, waiting.key, Merge({"metadata": {"finalizers": ["tart-kubelet.tuist.dev/vm-cleanup"]}}))
        await delete(here)
        await here.until_gone("job-1", within_s=330)  # a call that hangs already ends within five minutes
        go_wrong(here)
        await elapse(900)
        assert "ci-job-1" not in here.mac.vms()
        assert len(here.mac.boots) == 1
