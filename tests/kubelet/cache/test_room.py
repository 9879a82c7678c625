"""Room for caches: who gets some, what goes first, and what happens when the disk is not there."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.clock import Clock, VirtualClock
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.mount import is_mounted, wait_for_mount
from applecart.kubelet.cache.room import Room, converge_holder
from applecart.sim.cache_tools import Image, write_image
from applecart.sim.tart.faults import Fault
from applecart.tart.files import Files
from tests.kubelet.cache.stage import ACCOUNT, CLEAN, GIB, Host, binaries, host, pod
from tests.virtual_time import elapse


async def test_a_root_that_is_not_mounted_is_never_written_to(tmp_path: Path, clock: Clock) -> None:
    """Incident 51: caches went to the boot disk while the host looked idle."""
    async with host(tmp_path, clock) as here:
        here.mac.cache.is_mounted = False
        volumes = here.agent()
        entry = here.entry()
        assert await volumes.attach(entry, here.share(entry), here.skipped.append) == ()
        assert here.skipped == [f"cache volume not attached: the disk for caches is not mounted at {here.root}"]
        volumes.see(pod(), entry, here.share(entry))
        await volumes.look()
        await volumes.finish(entry, CLEAN, here.status(entry))
        assert list(here.root.iterdir()) == []
        assert (here.counted("enabled"), here.counted("root_mounted")) == (1, 0)
        assert here.counted("admission_declined_total") == 0


async def test_a_disk_that_comes_up_late_is_used_from_then_on_and_its_labels_go_with_it(tmp_path: Path, clock: Clock) -> None:
    """Incident 51: nobody waited for the disk, so every start of a Mac began without its caches."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        here.mac.cache.is_mounted = False
        volumes = here.agent()
        task = asyncio.create_task(volumes.run())
        await elapse(35)
        assert volumes.labels() == {}
        here.mac.cache.is_mounted = True
        await elapse(10)
        assert list(volumes.labels()) == [f"tuist.dev/cache-master-{ACCOUNT}"]
        assert (here.counted("root_mounted"), here.counted("resident_count")) == (1, 1)
        here.mac.cache.is_mounted = False
        await elapse(301)
        assert volumes.labels() == {}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_waiting_for_the_disk_ends_after_two_minutes(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.mac.cache.is_mounted = False
        assert not await wait_for_mount(here.mac, here.root)
        assert 119 < clock.monotonic() < 125


@pytest.mark.parametrize("fault", [Fault(on="stat", kind="hang"), Fault(on="stat", kind="fail")])
async def test_a_disk_that_does_not_answer_is_not_there(tmp_path: Path, clock: Clock, fault: Fault) -> None:
    async with host(tmp_path, clock) as here:
        here.fault(fault)
        assert not await is_mounted(here.mac, here.root)
        assert await is_mounted(here.mac, here.root)


async def test_a_missing_root_is_not_mounted(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        assert not await is_mounted(here.mac, here.root / "nowhere")


async def test_every_vm_is_promised_a_whole_volume_and_one_too_many_is_declined(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.mac.cache.quota_bytes = 50 * GIB
        volumes = here.agent()
        for name in ("one", "two", "three"):
            entry = here.entry(name)
            given = await volumes.attach(entry, here.share(entry), here.skipped.append)
            assert bool(given) == (name != "three")
        assert here.skipped == ["cache volume not attached: there is no room for another cache volume"]
        assert here.counted("admission_declined_total") == 1
        await volumes.finish(here.entry("one"), CLEAN, here.status(here.entry("one")))
        assert await volumes.attach(here.entry("three"), here.share(here.entry("three")))


async def test_promises_of_an_earlier_agent_are_kept(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.mac.cache.quota_bytes = 50 * GIB
        for name in ("one", "two"):
            await here.agent().attach(here.entry(name), here.share(here.entry(name)))
        entry = here.entry("three")
        assert await here.agent().attach(entry, here.share(entry)) == ()


async def test_the_cache_that_was_used_longest_ago_goes_first_and_its_label_with_it(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        assert isinstance(clock, VirtualClock)
        volumes = here.agent()
        for number, account in enumerate(("1", "2", "3")):
            entry = await here.a_job(volumes, f"job-{account}", account)
            here.guest_ends(entry, binaries(account), result="accepted 1")
            await volumes.finish(entry, CLEAN, here.status(entry))
            await elapse(60 * (number + 1))
        again = await here.a_job(volumes, "again", "1")  # so 2 is now the one that nobody wanted for longest
        await volumes.finish(again, CLEAN, here.status(again))
        here.mac.cache.other_bytes = 80 * GIB - 22 * GIB - GIB // 2
        entry = here.entry("next")
        assert await volumes.attach(entry, here.share(entry))
        assert sorted(volumes.labels()) == ["tuist.dev/cache-master-1", "tuist.dev/cache-master-3"]
        assert not (here.root / "2").exists()
        await volumes.aclose()


async def test_room_is_kept_free_for_the_next_job(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        for account in ("1", "2", "3"):
            here.put_master({f"tuist/Binaries/{account}": 14 * GIB}, 1, account, size_bytes=15 * GIB)
        here.mac.cache.other_bytes = 20 * GIB
        volumes = here.agent()
        task = asyncio.create_task(volumes.run())
        await elapse(1)
        assert here.mac.cache.disk().free_bytes >= 24 * GIB
        assert len(volumes.labels()) == 2
        assert here.counted("root_free_bytes") >= 24 * GIB
        here.mac.cache.other_bytes += 10 * GIB
        await elapse(301)
        assert len(volumes.labels()) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def a_room(here: Host) -> tuple[Room, Masters]:
    layout = Layout(here.root)
    masters = Masters(layout, Images(here.mac, Files(), layout.mounts), Files(), here.clock)
    return Room(layout, masters, here.mac, Files(), 20 * GIB), masters


async def test_unfinished_downloads_go_before_any_master(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 1)
        partials = Layout(here.root).partials(ACCOUNT)
        partials.mkdir(parents=True)
        write_image(partials / "0.part", Image(size_bytes=30 * GIB), 15 * GIB)
        here.mac.cache.other_bytes = 50 * GIB
        room, masters = a_room(here)
        assert room.reserve("a")
        assert not partials.exists()
        masters.look()
        assert masters.accounts == (ACCOUNT,)


async def test_neither_a_running_download_nor_a_master_in_use_is_evicted(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 1)
        partials = Layout(here.root).partials(ACCOUNT)
        partials.mkdir(parents=True)
        write_image(partials / "0.part", Image(size_bytes=30 * GIB), 15 * GIB)
        room, masters = a_room(here)
        room.hold(converge_holder(ACCOUNT))
        here.mac.cache.other_bytes = 70 * GIB
        async with masters.lock(ACCOUNT):
            assert not room.reserve("a")
        assert partials.exists()
        assert here.master().exists()
        assert not room.reserve("a", sparing=ACCOUNT)
        assert here.master().exists()


async def test_nothing_goes_when_all_of_it_would_not_be_enough(tmp_path: Path, clock: Clock) -> None:
    """Every account of a host began cold because something else had filled the disk, and there was no room after all."""
    async with host(tmp_path, clock) as here:
        for account in ("1", "2", "3"):
            here.put_master(binaries(account), 1, account)
        partials = Layout(here.root).partials(ACCOUNT)
        partials.mkdir(parents=True)
        write_image(partials / "0.part", Image(size_bytes=30 * GIB), GIB)
        here.mac.cache.other_bytes = 61 * GIB  # with everything gone there would be 19 GiB
        room, masters = a_room(here)
        assert not room.reserve("a")
        assert not room.keep_watermark()
        assert masters.by_last_use() == ["1", "2", "3"]
        assert partials.exists()
        here.mac.cache.other_bytes -= GIB
        assert room.reserve("a")
        assert masters.by_last_use() == []


async def test_a_master_without_notes_is_as_old_as_its_file(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 1)
        _, masters = a_room(here)
        masters.look()
        assert masters.used_at(ACCOUNT) > clock.now() - timedelta(days=10_000)
        here.master().with_name("master.json").write_text('{"generation": 1, "used_at": "yesterday"}')
        assert masters.used_at(ACCOUNT).tzinfo is not None


async def test_only_numbers_are_accounts_and_only_whole_masters_count(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        for name in ("acme", "_converge", "branches", "007", "9" * 20):
            (here.root / name / "tuist-cache").mkdir(parents=True)
            write_image(here.root / name / "tuist-cache" / "master.sparseimage", Image())
        here.put_master(binaries("a"), 1, "7")
        here.put_master(binaries("b"), 5, "8")
        here.master("8").unlink()  # a generation without its image
        (here.root / "9" / "tuist-cache").mkdir(parents=True)
        (here.root / "9" / "tuist-cache" / "master.sparseimage").symlink_to(here.master("7"))
        volumes = here.agent()
        await volumes.look()
        assert list(volumes.labels()) == ["tuist.dev/cache-master-7"]
        _, masters = a_room(here)
        assert (masters.generation("7"), masters.generation("8")) == (1, 0)
