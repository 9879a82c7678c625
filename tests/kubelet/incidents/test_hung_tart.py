"""Incidents of waiting: whatever one Pod waits for, no other Pod does, and its own wait ends."""

import signal
from pathlib import Path

import pytest

from applecart.api.conditions import READY
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED
from applecart.clock import Clock
from applecart.kube.conditions import find, is_true
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from applecart.sim.tart.leases import Lease, Leases, write_leases
from tests.kubelet.incidents.scene import (
    GB,
    calls,
    delete,
    events,
    go_wrong,
    guests,
    image_bytes,
    job,
    person_runs,
    scene,
    terminated,
    within,
)
from tests.kubelet.world import NODE, vm_pod
from tests.virtual_time import elapse

OTHER_IMAGE = "ghcr.io/acme/other@sha256:" + "b" * 64
BOOT_S = 20  # of a Pod whose image is on the host, with room to spare


@pytest.mark.parametrize(
    ("verb", "with_grandchild"), [("clone", False), ("clone", True), ("set", True), ("ip", True), ("list", True)]
)
async def test_a_hung_call_delays_its_own_pod_only_and_ends(
    verb: str, with_grandchild: bool, tmp_path: Path, clock: Clock
) -> None:
    """Incident 8: one hung call held the only worker; Pods were Pending on idle hosts for minutes, without a word.

    Killing it was not enough at first: a grandchild held its output open, and the agent waited on.
    """
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job("warms-up", runs_s=0))
        await here.until_phase("warms-up", SUCCEEDED)
        vm = "*" if verb == "list" else "ci-stuck"
        go_wrong(here, Fault(on=verb, kind="hang", vm=vm, with_grandchild=with_grandchild))
        await here.create(vm_pod("stuck"))
        await elapse(2)
        await here.create(job("other", runs_s=30))
        with within(here, BOOT_S):
            await here.until_phase("other", RUNNING)
        assert (await events(here, "stuck")).keys() >= {"CreatingVM"}
        await here.until_phase("other", SUCCEEDED, within_s=60)
        await delete(here, "other")
        await here.until_gone("other", within_s=10)
        await here.until_phase("stuck", RUNNING, within_s=400)
        assert [boot.vm for boot in here.mac.boots].count("ci-stuck") == 1


@pytest.mark.parametrize("verb", ["stop", "delete"])
async def test_a_hung_teardown_delays_its_own_pod_only_and_ends(verb: str, tmp_path: Path, clock: Clock) -> None:
    """Incident 8, at the other end of a Pod's life."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(vm="ci-stuck", ignores_shutdown=True))
        go_wrong(here, Fault(on=verb, kind="hang", vm="ci-stuck"))
        here.start_agent()
        await here.create(vm_pod("stuck", termination_grace_period_seconds=5))
        await here.until_phase("stuck", RUNNING)
        await delete(here, "stuck")
        await here.create(job("other", runs_s=30))
        with within(here, BOOT_S):
            await here.until_phase("other", RUNNING)
        await here.until_gone("stuck", within_s=600)
        assert "ci-stuck" not in here.mac.vms()


async def test_a_start_that_hangs_fails_its_pod_at_the_boot_deadline(tmp_path: Path, clock: Clock) -> None:
    """Incident 8: a `tart run` that never gets anywhere is ended as well; whether its disk was used nobody can say."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="hang", vm="ci-job-1"))
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", FAILED, within_s=900)
        assert pod.status.reason == "TartBootTimedOut"
        await delete(here)
        await here.until_gone("job-1", within_s=60)
        assert [process.command for process in await here.mac.processes() if " run " in process.command] == []


async def test_a_pod_that_must_go_goes_although_its_vm_cannot_be_deleted(tmp_path: Path, clock: Clock) -> None:
    """Incident 8 and weakness 16: every delete hangs; the Pod is released in the end, and the VM goes when it can."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="delete", kind="hang", vm="ci-job-1", times=None))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        await here.until_gone("job-1", within_s=1800)
        assert here.mac.running() == []
        assert "ci-job-1" in here.mac.vms()
        go_wrong(here)
        await elapse(900)
        assert "ci-job-1" not in here.mac.vms()
        assert here.agent is not None
        assert list(here.agent.host.journal) == []


async def test_a_pull_of_forty_minutes_delays_no_other_pod(tmp_path: Path, clock: Clock) -> None:
    """Weaknesses 1 and 2: the one worker sat in the pull, which was killed after 20 minutes and began again from zero."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job("warms-up", runs_s=0))
        await here.until_phase("warms-up", SUCCEEDED)
        image_bytes(here, 240 * GB)
        await here.create(vm_pod("slow", image=OTHER_IMAGE))
        await elapse(60)
        await here.create(job("quick", runs_s=30))
        with within(here, BOOT_S):
            await here.until_phase("quick", RUNNING)
        with within(here, 40):
            await here.until_phase("quick", SUCCEEDED)
        await delete(here, "quick")
        await here.until_gone("quick", within_s=10)
        await elapse(1200)
        pod = await here.pod("slow")
        assert pod is not None
        assert pod.status.phase == PENDING
        await here.until_phase("slow", RUNNING, within_s=1500)
        assert len(calls(here, "pull", OTHER_IMAGE)) == 1


async def test_a_stalled_pull_is_ended_and_the_next_one_goes_on_where_it_stood(tmp_path: Path, clock: Clock) -> None:
    """Weakness 2: the agent's own `tart list` wiped what a killed pull had fetched."""
    async with scene(tmp_path, clock) as here:
        image_bytes(here, 60 * GB)  # ten minutes
        here.start_agent()
        await here.create(vm_pod())
        await elapse(300)  # half of it
        go_wrong(here, Fault(on="pull", kind="hang"))
        pull = next(process for process in here.mac.table.all() if " pull " in process.shown().command)
        here.mac.table.signal(pull.pid, signal.SIGKILL)  # the next one hangs
        await elapse(1)
        await person_runs(here, "list")
        await elapse(60)
        assert here.agent is not None
        await here.agent.host.tart.list()
        with within(here, 240 + 300 + 120):  # until it counts as stalled, then the other half
            await here.until_phase("job-1", RUNNING)
        assert len(calls(here, "pull")) == 3


async def test_a_vm_without_an_address_fails_at_its_deadline_with_a_reason(tmp_path: Path, clock: Clock) -> None:
    """Weakness 7: it was Pending for ever."""
    async with scene(tmp_path, clock, "--boot-deadline=300") as here:
        guests(here, Rule(never_gets_ip=True))
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", FAILED, within_s=400)
        assert (pod.status.reason, terminated(pod).reason) == ("TartBootTimedOut", "TartBootTimedOut")
        assert "no address 5 minutes after its start" in pod.status.message
        assert here.mac.running() == []


async def test_a_host_without_free_addresses_is_named_as_a_cause(tmp_path: Path, clock: Clock) -> None:
    """Weakness 7: 253 addresses with leases of a day are used up by a busy host; its next VMs never came up."""
    async with scene(tmp_path, clock, "--boot-deadline=300") as here:
        taken = Lease("aa:bb:cc:dd:ee:ff", "192.168.64.2", clock.now().replace(year=clock.now().year + 1))
        write_leases(here.mac.store.sim, Leases([taken], last_host_number=2))
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", FAILED, within_s=400)
        assert "has no address left to give" in pod.status.message


async def test_a_slow_tart_never_makes_its_node_look_dead(tmp_path: Path, clock: Clock) -> None:
    """Weakness 21: the heartbeat stood behind `tart list`, and a slow Tart turned the Node to Unknown."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        go_wrong(here, Fault(on="*", kind="hang", times=None))
        assert here.agent is not None
        assert here.agent.registration is not None
        for _ in range(30):
            await elapse(10)
            age_s = here.agent.registration.lease.age_s
            assert age_s is not None
            assert age_s <= 10
        node = await here.client.get(Node, Key("", NODE))
        ready = find(node.status.conditions, READY)
        assert ready is not None
        assert not is_true(node.status.conditions, READY)
        assert ready.reason == "TartNotAnswering"
