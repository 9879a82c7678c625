"""Incidents of images, goldens and garbage collection: nothing is pulled twice, nothing of others is touched."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.names import golden_vm
from applecart.api.pods import RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock, VirtualClock
from applecart.kube.patch import Merge
from applecart.kubelet.entry import Stage
from applecart.sim.mac import Call
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.store import read_config
from tests.kubelet.incidents.scene import (
    GB,
    calls,
    delete,
    events,
    go_wrong,
    image_bytes,
    job,
    person_runs,
    scene,
    vm_pid,
    waiting_reason,
    within,
)
from tests.kubelet.world import IMAGE, World, vm_pod
from tests.virtual_time import elapse

TAG = "ghcr.io/acme/runner:latest"


def _image(number: int) -> str:
    return f"ghcr.io/acme/runner-{number}@sha256:" + f"{number:x}" * 64


def _goldens(here: World) -> list[str]:
    return [vm for vm in here.mac.vms() if vm.startswith("tuist-golden-")]


async def _a_day(clock: Clock, hours: int = 25) -> None:
    """As far as the wall clock and the collector are concerned; nobody wants to see every heartbeat of it."""
    assert isinstance(clock, VirtualClock)
    clock.jump(timedelta(hours=hours))
    await elapse(400)


async def _finish(here: World, name: str, image: str = IMAGE) -> None:
    """A job of that image, from creation to deletion."""
    await here.create(job(name, runs_s=1, image=image))
    await here.until_phase(name, SUCCEEDED, within_s=7200)
    await delete(here, name)
    await here.until_gone(name)


async def test_every_job_after_the_first_starts_without_a_pull(tmp_path: Path, clock: Clock) -> None:
    """Incident 21: every job pulled 41 GB again, 14 TB a day, and waited seven minutes for it."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await _finish(here, "job-0")
        for number in range(1, 4):
            await elapse(310)  # the collector comes by
            await here.create(job(f"job-{number}", runs_s=1))
            with within(here, 15):
                await here.until_phase(f"job-{number}", SUCCEEDED)
            await delete(here, f"job-{number}")
        assert len(calls(here, "pull")) == 1


async def test_a_tag_that_moved_gives_its_new_content_to_the_next_pod(tmp_path: Path, clock: Clock) -> None:
    """Weakness 6: a golden was known by the text of its reference, so a tag that moved was served from the old one for ever."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod("old", image=TAG))
        await here.until_phase("old", RUNNING)
        await _a_day(clock)
        assert len(calls(here, "pull")) == 1
        assert len(_goldens(here)) == 1
        here.mac.registry.move(TAG)
        await _finish(here, "new", image=TAG)
        assert len(_goldens(here)) == 2
        assert here.mac.running() == ["ci-old"]


async def test_every_clone_has_an_identity_of_its_own(tmp_path: Path, clock: Clock) -> None:
    """Incident 32: clones shared one serial number, and Apple's asset checks failed in up to half of the jobs."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        for name in ("job-1", "job-2"):
            await here.create(vm_pod(name))
            await here.until_phase(name, RUNNING)
        configs = [read_config(here.mac.store.vms / vm) for vm in here.mac.vms()]
        assert len(configs) == 3
        assert len({config.serial for config in configs}) == len({config.ecid for config in configs}) == 3


async def test_a_clone_that_cannot_get_an_identity_runs_and_its_pod_says_so(tmp_path: Path, clock: Clock) -> None:
    """Incident 32: a job without Xcode can do without."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="set", kind="fail", times=1, text="no"))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        assert "IdentityRegenSkipped" in await events(here)


# What is not ours


@pytest.mark.parametrize("flags", [(), ("--disable-vm-gc",)], ids=["collector on", "collector off"])
async def test_a_builders_vm_survives_ten_minutes_of_being_pushed(flags: tuple[str, ...], tmp_path: Path, clock: Clock) -> None:
    """Incident 27: the collector deleted a VM that was being pushed; the push died at its last file, again and again."""
    async with scene(tmp_path, clock, *flags) as here:
        await person_runs(here, "create", "builder")
        go_wrong(here, Fault(on="push", kind="slow", bytes_per_s=GB // 600))
        here.start_agent()
        push = asyncio.create_task(person_runs(here, "push", "builder", "ghcr.io/acme/built:1"))
        await elapse(60)
        await _finish(here, "job-1")
        ended = await push
        assert ended.code == 0, ended.err
        assert "builder" in here.mac.vms()
        assert clock.monotonic() > 600


async def test_nothing_that_others_made_is_touched_by_an_agent_that_collects(tmp_path: Path, clock: Clock) -> None:
    """Weakness 26: every local VM that no Pod explained was deleted; a name like ours proves nothing either."""
    async with scene(tmp_path, clock) as here:
        theirs = ["builder", "ci-nobody", "tuist-golden-0123456789abcdef"]
        for vm in theirs:
            await person_runs(here, "create", vm)
        await person_runs(here, "pull", "ghcr.io/acme/theirs:1")
        here.start_agent()
        await _finish(here, "job-1")
        here.mac.fill_disk(5 * GB)
        await _a_day(clock)
        await _a_day(clock)
        assert set(theirs) <= set(here.mac.vms())
        listed = await person_runs(here, "list", "--source", "oci", "--quiet")
        assert b"ghcr.io/acme/theirs:1" in listed.out


async def test_a_pod_whose_name_is_taken_by_a_foreign_vm_fails_and_leaves_it_alone(tmp_path: Path, clock: Clock) -> None:
    """Weakness 4: a VM that could not be read counted as absent and was replaced by a clone, even while it ran."""
    async with scene(tmp_path, clock) as here:
        await person_runs(here, "create", "ci-job-1")
        before = read_config(here.mac.store.vms / "ci-job-1")
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", "Failed", within_s=60)
        assert "was not made for a Pod" in pod.status.message
        await delete(here)
        await here.until_gone("job-1", within_s=60)
        assert read_config(here.mac.store.vms / "ci-job-1") == before
        assert here.mac.boots == []


@pytest.mark.parametrize("is_deleted", [False, True], ids=["pod-stays", "pod-deleted"])
async def test_a_foreign_vm_that_runs_under_a_pods_name_runs_on_with_its_files(
    is_deleted: bool, tmp_path: Path, clock: Clock
) -> None:
    """Weakness 4 and I7: the Pod failed as it should, and its teardown shut the other VM down."""
    async with scene(tmp_path, clock) as here:
        await person_runs(here, "create", "ci-job-1")
        run = asyncio.create_task(person_runs(here, "run", "ci-job-1", "--no-graphics"))
        theirs = tmp_path / "userdata" / "ci-job-1" / "theirs"
        theirs.parent.mkdir(parents=True)
        theirs.write_text("read by the guest")
        await elapse(600)
        pid = await vm_pid(here)
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", "Failed", within_s=60)
        if is_deleted:
            await delete(here)
            await here.until_gone("job-1", within_s=60)
        await elapse(900)
        assert await vm_pid(here) == pid
        assert theirs.exists()
        assert calls(here, "stop") == []
        run.cancel()


async def test_the_vm_of_an_earlier_pod_that_runs_on_is_never_ended_by_a_pod_of_its_name(tmp_path: Path, clock: Clock) -> None:
    """I7: with the earlier Pod's memory lost, its successor waited an hour, gave up, and took the VM along."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        pid = await vm_pid(here)
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state" / "pods")
        await here.client.patch(Pod, Key("ci", "job-1"), Merge({"metadata": {"finalizers": []}}))
        await delete(here, grace_s=0)
        await here.until_gone("job-1")
        await here.create(vm_pod())
        here.start_agent()
        pod = await here.until_phase("job-1", "Failed", within_s=2 * 3600)
        assert "of an earlier Pod" in pod.status.message
        await elapse(60)
        assert await vm_pid(here) == pid
        assert (tmp_path / "userdata" / "ci-job-1" / "tuist.env").exists()


async def test_a_vm_that_somebody_makes_under_a_pods_name_during_the_pull_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    """I3: a name that was free when the pull began counted as ours when the clone began."""
    async with scene(tmp_path, clock) as here:
        image_bytes(here, 20 * GB)
        here.start_agent()
        await here.create(vm_pod())
        await elapse(60)
        await person_runs(here, "create", "ci-job-1")
        before = read_config(here.mac.store.vms / "ci-job-1")
        pod = await here.until_phase("job-1", "Failed")
        assert "was not made for a Pod" in pod.status.message
        await elapse(60)
        assert read_config(here.mac.store.vms / "ci-job-1") == before


async def test_a_golden_of_another_agent_is_named_at_once_and_the_pod_goes_on_when_it_is_gone(
    tmp_path: Path, clock: Clock
) -> None:
    """I14: an agent that was replaced left goldens of the same name; every Pod of their image failed an hour later."""
    async with scene(tmp_path, clock) as here:
        await person_runs(here, "pull", IMAGE)
        await person_runs(here, "clone", IMAGE, golden_vm(IMAGE))
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: waiting_reason(pod) == "VmInTheWay", within_s=60)
        assert f"`tart delete {golden_vm(IMAGE)}`" in (await events(here))["TartCreateFailed"].message
        await elapse(2 * 3600)
        assert waiting_reason(await here.pod("job-1")) == "VmInTheWay"
        await person_runs(here, "delete", golden_vm(IMAGE))
        await here.until_phase("job-1", RUNNING, within_s=330)


async def test_a_vm_that_is_just_being_cloned_is_no_orphan(tmp_path: Path, clock: Clock) -> None:
    """Incident 28: between clone and memory the collector saw a VM of no Pod, and deleted it."""
    async with scene(tmp_path, clock) as here:
        seen: list[Stage] = []

        async def collect_right_now(call: Call) -> None:
            if call.tart == "set" and here.agent is not None and here.agent.collector is not None:
                seen.extend(entry.stage for entry in here.agent.host.journal)
                await here.agent.collector.collect()

        here.mac.before_call = collect_right_now
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        assert seen == [Stage.CLONING]
        assert len(calls(here, "clone", "ci-job-1")) == 1


# A full disk


async def test_a_host_makes_room_before_its_disk_is_full(tmp_path: Path, clock: Clock) -> None:
    """Incidents 30 and 31: unwanted goldens filled the disk, and deleting them freed nothing while their images stayed."""
    async with scene(tmp_path, clock) as here:
        image_bytes(here, 20 * GB)
        here.mac.fill_disk(100 * GB)
        here.start_agent()
        for number in range(4):
            await _finish(here, f"job-{number}", _image(number))
            await elapse(310)  # the collector comes by
            assert here.mac.store.free_bytes() > 60 * GB, f"after image {number}"
        await here.create(vm_pod("last", image=_image(3)))
        with within(here, 15):
            await here.until_phase("last", RUNNING)


async def test_a_pull_that_finds_no_room_makes_some_and_goes_on(tmp_path: Path, clock: Clock) -> None:
    """Incident 30, weaknesses 3 and 25: what nobody wants goes, least recently used first, and the pull is tried once more."""
    async with scene(tmp_path, clock) as here:
        image_bytes(here, 10 * GB)
        here.start_agent()
        await _finish(here, "job-1", _image(1))
        await _finish(here, "job-2", _image(2))
        here.mac.fill_disk(1 * GB)
        await here.create(vm_pod("job-3", image=_image(3)))
        await here.until_phase("job-3", RUNNING, within_s=1800)
        assert "TartCreateFailed" not in await events(here, "job-3")
        assert here.agent is not None
        assert _image(1) not in here.agent.host.goldens.images_here()


@pytest.mark.parametrize("kind", ["fail", "hang", "no-space"])
async def test_a_clone_that_fails_costs_no_golden(kind: str, tmp_path: Path, clock: Clock) -> None:
    """Weakness 3: the golden was blamed for every failed clone, deleted, and pulled again."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await _finish(here, "job-0")
        go_wrong(here, Fault(on="clone", kind=kind, vm="ci-job-1", times=2))
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=1800)
        assert len(calls(here, "pull")) == 1
        assert [argv[-1] for argv in calls(here, "clone") if argv[-1] not in ("ci-job-0", "ci-job-1")] == _goldens(here)


async def test_a_host_that_stays_full_says_so_and_fails_the_pod_in_the_end(tmp_path: Path, clock: Clock) -> None:
    """Incident 30: the Node was Ready and its disk full, and nobody was told."""
    async with scene(tmp_path, clock) as here:
        image_bytes(here, 40 * GB)
        here.mac.fill_disk(1 * GB)
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: waiting_reason(pod) == "HostDiskFull", within_s=300)
        pod = await here.until_phase("job-1", "Failed", within_s=3600)
        assert pod.status.reason == "HostDiskFull"
        assert "given up after" in pod.status.message


async def test_a_restart_does_not_make_goldens_look_used(tmp_path: Path, clock: Clock) -> None:
    """Weakness 25: when a golden was last wanted was only in memory, so every restart kept all of them for another day."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        for number in (1, 2):
            await _finish(here, f"job-{number}", _image(number))
        for _ in range(3):
            await here.kill_agent()
            await _a_day(clock, hours=11)
            here.start_agent()
            await _finish(here, "again", _image(2))
        await elapse(400)
        assert here.agent is not None
        kept = here.agent.host.goldens.images_here()
        assert _image(2) in kept
        assert _image(1) not in kept
