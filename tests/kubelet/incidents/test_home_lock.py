"""Tart has one lock per home: what a command that hangs while it holds it may hold up, and what it may not."""

from pathlib import Path

from applecart.api.conditions import READY
from applecart.api.pods import RUNNING, SUCCEEDED
from applecart.clock import Clock
from applecart.sim.tart.faults import Fault
from applecart.tart.deadlines import Deadlines
from tests.kubelet.incidents.scene import calls, delete, go_wrong, job, node_condition, scene, within
from tests.kubelet.world import vm_pod
from tests.virtual_time import elapse

BOOT_S = 60  # of a Pod whose image is on the host, with a retry or two
OTHER = "ghcr.io/acme/other:1"


async def test_a_clone_that_hangs_in_its_copy_holds_up_others_no_longer_than_its_deadline(tmp_path: Path, clock: Clock) -> None:
    """Incident 8: Tart copies under a lock that every clone and every start of the host needs (I13: a hung call is killed).

    Nobody can go around that lock. What needs none goes on: a VM that runs, a Pod that is deleted, the heartbeat.
    """
    clone_s = Deadlines().clone_s
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job("works", runs_s=120))
        await here.until_phase("works", RUNNING)
        go_wrong(here, Fault(on="clone", vm="ci-stuck", kind="hang", when="during"))
        await here.create(vm_pod("stuck"))
        while not calls(here, "clone", "ci-stuck"):
            await elapse(0.1)
        await here.until_phase("works", SUCCEEDED, within_s=150)
        await delete(here, "works")
        await here.until_gone("works", within_s=30)
        assert (await node_condition(here, READY)).status == "True"
        await here.create(vm_pod("other"))
        with within(here, clone_s + BOOT_S):
            await here.until_phase("other", RUNNING)
        await here.until_phase("stuck", RUNNING, within_s=clone_s)
        assert (await node_condition(here, READY)).status == "True"
        assert sorted(boot.vm for boot in here.mac.boots) == ["ci-other", "ci-stuck", "ci-works"]


async def test_a_pod_whose_pull_waits_for_another_says_that_it_pulls(tmp_path: Path, clock: Clock) -> None:
    """I10: Tart pulls one image of a registry at a time, and the one behind has no percent to show."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="pull", kind="hang", when="during"))
        here.start_agent()
        await here.create(vm_pod("first"))
        await elapse(30)
        await here.create(vm_pod("second", image=OTHER))
        await elapse(30)
        pod = await here.pod("second")
        assert pod is not None
        state = pod.status.container_statuses[0].state
        assert state is not None
        assert state.waiting is not None
        assert state.waiting.message == f"pulling image {OTHER}"
