"""The collector at work on a simulated Mac: removes what is ours and useless, and nothing else, whatever goes on meanwhile."""

import asyncio
import errno
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.names import pod_vm
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kubelet.entry import Stage
from applecart.kubelet.golden_intents import Intent, Intents
from applecart.sim.mac import Call, SimulatedMac
from applecart.tart.files import Files
from applecart.tart.marks import MARK_FILE, PodMark
from tests.kube.embedded_api import serving
from tests.kubelet.agents import IMAGE, fault
from tests.kubelet.garbage.hosts import CollectingHost, bind, pod_vms, pods_of, run_vm
from tests.tart.hostile_folders import DEEP, few_handles_and_frames, nest
from tests.virtual_time import elapse

# Whose VM goes


async def test_a_vm_goes_when_its_pod_left_the_api_and_stays_while_it_is_there(
    mac: SimulatedMac, clock: Clock, tmp_path: Path
) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        pods = [await bind(client, name) for name in ("stays", "goes", "elsewhere")]
        for pod in pods:
            await host.make_pod_vm(pod.metadata.uid, pod.metadata.name)
        await host.collector.collect()
        assert len(pod_vms(host)) == 3
        await client.delete(Pod, Key("ci", "goes"), grace_s=0)
        await host.collector.collect()
    assert pod_vms(host) == ["ci-elsewhere", "ci-stays"]
    assert sorted(path.name for path in host.userdata.iterdir()) == ["ci-elsewhere", "ci-stays"]
    assert host.counted == ["vm"]
    assert host.collector.last == "the last pass removed 1 vm"


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_vm_whose_name_a_newer_pod_has_is_left_to_that_pods_worker_as_long_as_it_may_do_it(
    host: CollectingHost, is_whole: bool
) -> None:
    """The worker makes way for its own VM; it must not meet one that somebody else is in the middle of deleting."""
    vm = await host.make_pod_vm("first-uid", "web-0")
    folder = host.mac.home / "vms" / vm
    if not is_whole:
        (folder / "nvram.bin").unlink()
    host.enter("second-uid", Stage.ACCEPTED, "web-0")
    await host.collector.collect()
    assert folder.exists()
    assert (host.userdata / vm).exists()
    host.enter("second-uid", Stage.REMOVED, "web-0")
    await host.collector.collect()
    assert not folder.exists()
    assert not (host.userdata / vm).exists()


async def test_a_pod_that_comes_while_the_vm_of_its_name_is_deleted_keeps_its_own_vm_and_files(host: CollectingHost) -> None:
    """I3: the slow deletion of the old VM took the new one, and the removal after it the files staged for it."""
    vm = await host.make_pod_vm("uid-old", "web")
    fault(host.mac, on="delete", kind="slow", seconds=60, vm=vm, times=1)
    collecting = asyncio.create_task(host.collector.collect())
    await elapse(30)
    host.enter("uid-new", Stage.CLONING, "web")
    host.files.make_folder(host.userdata / vm)
    host.files.write(host.userdata / vm / "tuist.env", b"OF=the new Pod\n")
    (host.mac.home / "vms" / vm).rename(host.mac.home / "vms" / "kept-so-that-its-number-is-not-given-again")
    await host.goldens.clone(await host.goldens.ensure(IMAGE), vm)
    assert collecting.done()
    assert vm in host.mac.vms()
    assert (host.userdata / vm / "tuist.env").read_bytes() == b"OF=the new Pod\n"


async def test_a_vm_that_is_being_cloned_is_not_deleted(host: CollectingHost) -> None:
    vm = await host.make_pod_vm("uid-old", "web")
    with host.goldens.busy.vm(vm):
        await host.collector.collect()
    assert pod_vms(host) == [vm]


async def test_files_of_a_guest_that_nested_folders_without_end_go_with_its_vm(host: CollectingHost) -> None:
    """I5: Python gave up after 1000 levels; the pass ended, the agent with it, and again at every start."""
    vm = await host.make_pod_vm("uid")
    nest(host.userdata / vm / "status", DEEP)
    with few_handles_and_frames():
        await host.collector.collect()
    assert os.listdir(host.userdata) == []
    assert pod_vms(host) == []


@pytest.mark.parametrize("stage", [Stage.CLONING, Stage.CLONED, Stage.BOOTING, Stage.RUNNING, Stage.ENDED, Stage.PUBLISHED])
async def test_a_vm_of_a_journal_entry_stays_at_every_stage(host: CollectingHost, stage: Stage) -> None:
    """Incident 28: a VM that was just cloned was not in the list of Pods yet, and was deleted."""
    await host.make_pod_vm("uid")
    host.enter("uid", stage)
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]


async def test_a_vm_that_is_cloned_while_the_collector_looks_survives(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    """Incident 28, the race itself: the Pod is bound, journaled and cloned between two readings of one pass."""

    made: CollectingHost

    async def pods() -> Sequence[Pod]:
        if made.journal.get("uid") is None:
            made.enter("uid", Stage.CLONING)
            await made.make_pod_vm("uid")
        return ()

    made = CollectingHost(mac, clock, tmp_path, pods)
    await made.collector.collect()
    assert pod_vms(made) == ["ci-uid"]


async def test_a_vm_that_changes_hands_between_plan_and_deed_survives(host: CollectingHost) -> None:
    vm = await host.make_pod_vm("dead", "web-0")
    looks = 0

    async def re_create(call: Call) -> None:
        nonlocal looks
        looks += call.verb == "processes"
        if looks == 2:  # right before the deed
            mark = host.home.mark(vm)
            assert isinstance(mark, PodMark)
            host.home.write_mark(vm, PodMark("new", "ci", "web-0", mark.image, mark.digest, mark.made_at), host.files)

    host.mac.after_call = re_create
    await host.collector.collect()
    assert pod_vms(host) == [vm]


async def test_an_orphan_goes_while_a_vm_with_a_longer_name_runs(host: CollectingHost, tmp_path: Path) -> None:
    """Incident 26: `job` counted as running because `job-2` did."""
    for uid in ("job", "job-2"):
        await host.make_pod_vm(uid)
    await run_vm(host, "ci-job-2", tmp_path)
    await host.collector.collect()
    assert pod_vms(host) == ["ci-job-2"]


async def test_two_pods_whose_long_names_begin_alike_have_two_vms(host: CollectingHost) -> None:
    """Incident 29: cut names were the same, so one Pod's end was the other's."""
    names = [f"runner-{'x' * 60}-{end}" for end in "ab"]
    vms = [await host.make_pod_vm(name[-1] * 4, name) for name in names]
    assert vms[0] != vms[1]
    host.journal.write(host.enter("bbbb", Stage.RUNNING, names[1]))
    await host.collector.collect()
    assert pod_vms(host) == [pod_vm("ci", names[1])]


async def test_an_orphan_that_runs_is_left_alone_until_it_stops(host: CollectingHost, tmp_path: Path) -> None:
    await host.make_pod_vm("uid")
    await run_vm(host, "ci-uid", tmp_path)
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]
    await host.tart.stop("ci-uid")
    await host.collector.collect()
    assert pod_vms(host) == []


async def test_a_removal_that_failed_is_done_by_the_next_pass(host: CollectingHost) -> None:
    """Weakness 16: a VM whose delete failed once was protected for ever."""
    await host.make_pod_vm("uid")
    fault(host.mac, on="delete", kind="fail", times=1)
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]
    assert host.counted == []
    await host.collector.collect()
    assert pod_vms(host) == []


async def test_half_a_vm_of_a_gone_pod_goes_and_half_of_a_foreign_one_stays(host: CollectingHost) -> None:
    await host.make_pod_vm("uid")
    vms = host.mac.home / "vms"
    (vms / "ci-uid" / "nvram.bin").unlink()
    (vms / "foreign").mkdir()
    await host.collector.collect()
    assert not (vms / "ci-uid").exists()
    assert (vms / "foreign").exists()


async def test_the_rest_of_a_vm_whose_deletion_was_cut_short_goes_although_its_mark_went_first(host: CollectingHost) -> None:
    await host.make_pod_vm("uid")
    vm = host.mac.home / "vms" / "ci-uid"
    fault(host.mac, on="delete", kind="crash", vm="ci-uid", times=1)
    await host.collector.collect()
    for file in ("applecart.json", "config.json"):
        (vm / file).unlink()
    await host.collector.collect()
    assert not vm.exists()
    assert list((host.state / "deleting").iterdir()) == []


async def test_the_rest_of_a_vm_goes_also_when_the_disk_has_no_room_for_the_mark_of_a_golden(
    host: CollectingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is most of a disk, and the mark waits for nothing but room."""
    golden = await host.goldens.ensure(IMAGE)
    await host.make_pod_vm("uid")
    vms = host.mac.home / "vms"
    fault(host.mac, on="delete", kind="crash", vm="ci-uid", times=1)
    await host.collector.collect()
    (vms / "ci-uid" / MARK_FILE).unlink()
    (vms / golden.vm / MARK_FILE).unlink()
    Intents(host.state, host.files).write(Intent(golden.digest, IMAGE, host.clock.now()))
    write = Files.write

    def full(self: Files, path: Path, data: bytes, mode: int = 0o600) -> None:
        if path.name == MARK_FILE:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, path, data, mode)

    monkeypatch.setattr(Files, "write", full)
    await host.collector.collect()
    assert os.listdir(vms) == [golden.vm]


async def test_a_new_vm_of_the_same_name_is_not_the_rest_of_a_deleted_one(host: CollectingHost) -> None:
    await host.make_pod_vm("uid")
    vm = host.mac.home / "vms" / "ci-uid"
    fault(host.mac, on="delete", kind="crash", vm="ci-uid", times=1)
    await host.collector.collect()
    vm.rename(vm.with_name("kept-so-that-its-number-is-not-given-again"))
    await host.tart.clone(IMAGE, "ci-uid")
    await host.collector.collect()
    assert vm.exists()


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b'{"vm": "../x", "folder_number": 1}', b'{"vm": "x", "folder_number": 1}']
)
async def test_a_tombstone_that_makes_no_sense_is_removed(host: CollectingHost, content: bytes) -> None:
    (host.state / "deleting" / "ci-uid.json").write_bytes(content)
    await host.collector.collect()
    assert list((host.state / "deleting").iterdir()) == []
    assert host.collector.last == "the last pass removed nothing"


# What is not ours


async def test_a_builders_vm_survives_ten_minutes_of_being_pushed(host: CollectingHost) -> None:
    """Incident 27: the collector deleted the VM of an image build during its push, which then failed at its last file."""
    await host.tart.pull(IMAGE)
    await host.tart.clone(IMAGE, "macos-bake")
    passes = asyncio.create_task(host.collector.run())
    began_s = host.clock.monotonic()
    await host.tart.push("macos-bake", "ghcr.io/acme/baked:1")
    assert host.clock.monotonic() - began_s >= 600
    passes.cancel()
    assert "macos-bake" in host.mac.vms()
    assert host.tart_calls("delete") == []


async def test_nothing_that_others_made_is_ever_touched(host: CollectingHost) -> None:
    """Weakness 26: whatever matched no Pod by its name was deleted, unless it ran."""
    await host.tart.pull(IMAGE)
    for name in ("macos-bake", "ci-job", "tuist-golden-0123456789abcdef"):
        await host.tart.clone(IMAGE, name)
    host.mac.fill_disk(10**9)
    await host.collector.collect()
    await host.collector.reclaim("a test")
    await elapse(timedelta(days=30).total_seconds())
    await host.collector.collect()
    assert host.tart_calls("delete") == []
    assert len(host.home.images()) == 1


async def test_a_vm_that_a_person_renamed_is_the_persons(host: CollectingHost) -> None:
    """I3: an engineer keeps the VM of a failing job to look into it. Tart takes our mark along."""
    vm = await host.make_pod_vm("uid")
    await host.mac.run([host.tart.binary, "rename", vm, "debug-copy"], deadline_s=60)
    assert isinstance(host.home.mark("debug-copy"), PodMark)
    await host.collector.collect()
    await host.collector.reclaim("a test")
    assert "debug-copy" in host.mac.vms()


async def test_an_image_that_was_here_before_us_is_not_ours_because_we_pulled_it_again(host: CollectingHost) -> None:
    latest = "ghcr.io/acme/macos:latest"
    await host.tart.pull(latest)
    vm = await host.make_golden(latest)
    assert host.tart_calls("pull") == [f"pull {latest}"] * 2
    await host.tart.delete(vm)
    await host.collector.collect()
    assert len(host.home.images()) == 1
