"""The collector at work on a simulated Mac: removes what is ours and useless, and nothing else, whatever goes on meanwhile."""

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.names import golden_vm, pod_vm
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kube.client import Client
from applecart.kubelet.entry import Stage
from applecart.kubelet.garbage.collect import EVERY_S
from applecart.kubelet.garbage.leftovers import LARGEST_LOG_BYTES
from applecart.sim.mac import Call, SimulatedMac
from applecart.tart.mac import Process
from applecart.tart.marks import GoldenMark, PodMark
from applecart.tart.run_options import RunOptions
from tests.kube.embedded_api import serving
from tests.kubelet.agents import IMAGE
from tests.kubelet.garbage.hosts import CollectingHost, bind, pods_of
from tests.virtual_time import elapse

DAY = timedelta(hours=25)


@pytest.fixture
def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    return SimulatedMac(tmp_path / "tart", clock)


@pytest.fixture
async def host(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> CollectingHost:
    return CollectingHost(mac, clock, tmp_path)


def fault(mac: SimulatedMac, **fault: object) -> None:
    (mac.home / "faults.json").write_text(json.dumps({"faults": [fault]}))


async def run_vm(host: CollectingHost, vm: str, folder: Path) -> None:
    await host.tart.run(vm, RunOptions(), folder=folder / f"run-{vm}", log=folder / f"{vm}.txt")
    await elapse(30)


def pod_vms(host: CollectingHost) -> list[str]:
    return [vm.name for vm in host.home.vms() if isinstance(vm.mark, PodMark)]


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


async def test_a_pod_of_the_same_name_as_a_dead_one_does_not_inherit_its_vm(host: CollectingHost) -> None:
    await host.make_pod_vm("first-uid", "web-0")
    host.enter("second-uid", Stage.ACCEPTED, "web-0")
    await host.collector.collect()
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


async def test_an_image_that_was_here_before_us_is_not_ours_because_we_pulled_it_again(host: CollectingHost) -> None:
    latest = "ghcr.io/acme/macos:latest"
    await host.tart.pull(latest)
    vm = await host.make_golden(latest)
    assert host.tart_calls("pull") == [f"pull {latest}"] * 2
    await host.tart.delete(vm)
    await host.collector.collect()
    assert len(host.home.images()) == 1


# Goldens and images


async def test_a_golden_and_its_image_go_a_day_after_their_last_use(host: CollectingHost) -> None:
    old = await host.make_golden("ghcr.io/acme/macos:14", DAY)
    new = await host.make_golden(IMAGE)
    await host.collector.collect()
    assert host.mac.vms() == [new]
    assert [image.tags for image in host.home.images()] == [("15",)]
    assert sorted(host.counted) == ["golden", "image"]
    assert old not in host.mac.vms()


async def test_a_golden_that_was_booted_by_hand_is_not_deleted_under_it(host: CollectingHost, tmp_path: Path) -> None:
    """Incident 25: a golden booted for a benchmark was past its retention."""
    old = await host.make_golden("ghcr.io/acme/macos:14", DAY)
    await host.make_golden(IMAGE)
    await run_vm(host, old, tmp_path)
    await host.collector.collect()
    assert old in host.mac.vms()


async def test_when_processes_cannot_be_listed_nothing_is_deleted(
    host: CollectingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Incident 25: not knowing counts as running."""
    await host.make_pod_vm("uid")
    await host.make_golden("ghcr.io/acme/macos:14", DAY)

    async def fails() -> list[Process]:
        raise Unreachable("ps cannot be run")

    monkeypatch.setattr(host.mac, "processes", fails)
    await host.collector.collect()
    host.mac.fill_disk(10**9)
    await host.collector.reclaim("a test")
    assert host.tart_calls("delete") == []


async def test_the_golden_of_a_tag_pod_survives_any_number_of_passes(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    """Incident 23: the Pod said a tag, the listing a digest, and the image of a living Pod went at every pass."""
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        await bind(client, "job")
        vm = await host.make_golden(IMAGE, DAY)
        await host.make_golden("ghcr.io/acme/other:1")
        for _ in range(12):
            await host.collector.collect()
            await elapse(EVERY_S)
    assert vm in mac.vms()
    assert len(host.home.images()) == 2
    mark = host.home.mark(vm)
    assert isinstance(mark, GoldenMark)
    assert clock.now() - mark.used_at < timedelta(hours=2)


async def test_an_image_with_two_tags_is_deleted_by_one_command(host: CollectingHost) -> None:
    """Weakness 25: a delete per listed row made every second one fail."""
    vm = await host.make_golden(IMAGE)
    host.mac.registry.move("ghcr.io/acme/macos:16", _digest(host, vm).partition("@")[2])
    await host.goldens.ensure("ghcr.io/acme/macos:16")
    await host.make_golden("ghcr.io/acme/other:1")
    host.set_used(vm, _mark(host, vm), host.clock.now() - DAY)
    await host.collector.collect()
    assert len(host.tart_calls("delete")) == 2
    assert [image.repository for image in host.home.images()] == ["ghcr.io/acme/other"]


# A short disk


async def test_a_disk_full_of_goldens_is_relieved_step_by_step_and_no_further(host: CollectingHost) -> None:
    """Incident 30: goldens of old images, each pinned for a day, filled the disk until nothing could be written to the host.

    Incident 31: a golden gave nothing back while its image held the same blocks, and a list read once could take the last one.
    """
    goldens = [await host.make_golden(f"ghcr.io/acme/macos:{tag}", timedelta(hours=4 * tag)) for tag in range(5)]
    host.mac.fill_disk(10 * 10**9)  # 2 % of 494 GB; each golden shares 40 GB with its image
    host.mac.calls.clear()
    await host.collector.collect()
    free = host.mac.disk(host.mac.home).free_percent
    assert 15 <= free < 25
    assert host.mac.vms() == sorted(goldens[:3])  # the two least recently used are gone
    deletes = host.tart_calls("delete")
    assert [delete.partition("@")[1] for delete in deletes] == ["@"] * 5 + [""] * 2


async def test_one_golden_stays_on_a_disk_that_cannot_be_relieved(host: CollectingHost) -> None:
    """Incident 31: a list that was read once let the last golden go too."""
    goldens = [await host.make_golden(f"ghcr.io/acme/macos:{tag}", timedelta(hours=4 * tag)) for tag in range(3)]
    host.mac.fill_disk(-(10**12))
    await host.collector.collect()
    assert host.mac.vms() == [goldens[0]]


async def test_a_disk_too_full_to_write_anything_is_still_relieved(
    host: CollectingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    await host.make_pod_vm("uid")
    for tag in range(3):
        await host.make_golden(f"ghcr.io/acme/macos:{tag}")
    host.mac.fill_disk(0)

    def full(path: Path, data: bytes, mode: int = 0) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host.files, "write", full)
    await host.collector.collect()
    assert host.mac.disk(host.mac.home).free_percent >= 15
    assert pod_vms(host) == []


async def test_a_disk_with_room_is_left_alone(host: CollectingHost) -> None:
    for tag in range(3):
        await host.make_golden(f"ghcr.io/acme/macos:{tag}")
    host.mac.fill_disk(int(0.16 * 494 * 10**9))
    await host.collector.collect()
    assert host.tart_calls("delete") == []


async def test_a_pull_without_room_gets_it_and_succeeds(host: CollectingHost) -> None:
    for tag in range(3):
        await host.make_golden(f"ghcr.io/acme/macos:{tag}")
    host.mac.fill_disk(10**9)
    golden = await host.goldens.ensure(IMAGE)
    assert golden.was_made
    assert len(host.tart_calls("pull")) == 5
    assert host.collector.deleted["golden"] >= 2


async def test_the_only_golden_makes_way_for_one_that_a_pod_waits_for(host: CollectingHost) -> None:
    await host.make_golden("ghcr.io/acme/macos:14")
    host.mac.fill_disk(10**9)
    golden = await host.goldens.ensure(IMAGE)
    assert host.mac.vms() == [golden.vm]


async def test_the_golden_of_a_living_pod_is_kept_even_when_a_pull_has_no_room(
    mac: SimulatedMac, clock: Clock, tmp_path: Path
) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        await bind(client, "job")
        vm = await host.make_golden(IMAGE, DAY)
        mac.fill_disk(10**9)
        await host.collector.reclaim("a test")
    assert mac.vms() == [vm]
    assert len(host.home.images()) == 1


async def test_two_pulls_without_room_do_not_wait_for_each_other_for_ever(host: CollectingHost) -> None:
    await host.make_golden("ghcr.io/acme/macos:14")
    fault(host.mac, on="pull", kind="no-space", times=2)
    async with asyncio.timeout(7200):
        await asyncio.gather(*(host.goldens.ensure(f"{name}.io/acme/macos:1") for name in ("one", "two")))


# How passes run


async def test_a_pass_that_cannot_list_pods_deletes_nothing_and_says_so(
    mac: SimulatedMac, clock: Clock, tmp_path: Path
) -> None:
    async def unreachable() -> Sequence[Pod]:
        raise Unreachable("the API does not answer")

    host = CollectingHost(mac, clock, tmp_path, unreachable)
    await host.make_pod_vm("uid")
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]
    assert host.collector.last == "the last pass was given up: the API does not answer"


async def test_a_pass_that_cannot_read_the_store_deletes_nothing(host: CollectingHost) -> None:
    await host.make_pod_vm("uid")
    oci = host.mac.home / "cache" / "OCIs"
    oci.rename(host.mac.home / "aside")
    oci.symlink_to(oci)
    pulled = host.goldens.ledger.pulled()
    await host.collector.collect()
    assert pod_vms(host) == ["ci-uid"]
    assert host.goldens.ledger.pulled() == pulled


async def test_a_pass_runs_at_the_start_and_every_five_minutes(host: CollectingHost) -> None:
    passes = asyncio.create_task(host.collector.run())
    await host.make_pod_vm("early")
    await elapse(1)
    assert pod_vms(host) == ["ci-early"]
    await elapse(EVERY_S)
    assert pod_vms(host) == []
    passes.cancel()


async def test_passes_run_one_at_a_time(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    asking = 0

    async def pods() -> Sequence[Pod]:
        nonlocal asking
        asking += 1
        assert asking == 1
        await asyncio.sleep(1)
        asking -= 1
        return ()

    host = CollectingHost(mac, clock, tmp_path, pods)
    await host.make_pod_vm("uid")
    await asyncio.gather(host.collector.collect(), host.collector.reclaim("a test"), host.collector.collect())
    assert host.tart_calls("delete").count("delete ci-uid") == 1
    assert host.counted.count("vm") == 1


# Files


async def test_staged_secrets_of_a_pod_that_never_had_a_vm_go(host: CollectingHost) -> None:
    """Weakness 15: files staged for a VM that never came to be were not looked at by anybody."""
    for name in ("ci-never", "ci-waiting"):
        host.files.make_folder(host.userdata / name)
        host.files.write(host.userdata / name / "tuist.env", b"TOKEN=x\n")
        _age(host, host.userdata / name, timedelta(hours=1))
    host.enter("waiting", Stage.ACCEPTED)
    await host.collector.collect()
    assert [path.name for path in host.userdata.iterdir()] == ["ci-waiting"]


async def test_old_logs_go_and_a_log_without_end_is_cut_under_its_writer(host: CollectingHost) -> None:
    """Weakness 19: logs were kept for ever, whatever their size."""
    old, wild = host.logs / "ci-old.log", host.logs / "ci-wild.log"
    old.write_text("done\n")
    _age(host, old, timedelta(days=8))
    writer = os.open(wild, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.truncate(wild, LARGEST_LOG_BYTES)
    os.write(writer, b"last words\n")
    await host.collector.collect()
    os.write(writer, b"new words\n")
    os.close(writer)
    assert not old.exists()
    assert wild.read_bytes() == b"new words\n"
    assert (host.logs / "ci-wild.log.1").read_bytes().endswith(b"last words\n")


async def test_a_log_that_is_a_link_is_not_touched(host: CollectingHost, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("x")
    os.truncate(precious, LARGEST_LOG_BYTES + 1)
    (host.logs / "ci-a.log").symlink_to(precious)
    await host.collector.collect()
    assert precious.stat().st_size == LARGEST_LOG_BYTES + 1


def _age(host: CollectingHost, path: Path, by: timedelta) -> None:
    at = (host.clock.now() - by).timestamp()
    os.utime(path, (at, at))


def _mark(host: CollectingHost, vm: str) -> GoldenMark:
    mark = host.home.mark(vm)
    assert isinstance(mark, GoldenMark)
    return mark


def _digest(host: CollectingHost, vm: str) -> str:
    digest = _mark(host, vm).digest
    assert golden_vm(digest) == vm
    return digest
