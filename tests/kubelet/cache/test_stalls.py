"""What takes for ever costs a VM its cache, and never a Pod its boot or its end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from applecart.api.metric_names.label_values import CacheOutcome
from applecart.clock import Clock
from applecart.kubelet.cache import walk
from applecart.kubelet.cache.sweep import REMOVAL_DEADLINE_S
from applecart.kubelet.cache.volumes import ATTACH_DEADLINE_S, FINISH_DEADLINE_S
from applecart.sim.tart.faults import Fault
from applecart.tart.files import Files
from tests.kubelet.cache.stage import CLEAN, binaries, host, pod
from tests.virtual_time import elapse

FOR_EVER_S = 10.0**7


def is_there(path: Path) -> bool:
    return path.exists()


class StuckFiles(Files):
    """A guest left more than can be removed in time."""

    async def remove_aside(self, path: Path) -> None:
        if is_there(path):
            await asyncio.sleep(FOR_EVER_S)


async def never_ends(*_: Any) -> None:
    """A thread that has not ended yet; on virtual time none could run for long."""
    await asyncio.sleep(FOR_EVER_S)


@pytest.fixture
def endless_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "to_thread", never_ends)


@pytest.mark.usefixtures("endless_walk")
async def test_an_image_that_cannot_be_walked_through_in_time_is_not_promoted(tmp_path: Path, clock: Clock) -> None:
    """I13, I5: the Pod's teardown waited for the walk, was given up after 15 minutes, and began it anew, for ever."""
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a"), result="accepted 1")
        began_s = clock.monotonic()
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert clock.monotonic() - began_s < walk.DEADLINE_S + 5
        assert list((here.root / "branches").iterdir()) == list((here.root / "_records").iterdir()) == []
        assert here.mac.cache.attached == {}
        await volumes.aclose()


@pytest.mark.usefixtures("endless_walk")
async def test_the_next_job_of_an_account_does_not_wait_for_a_walk(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock, cas_gib=8) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("b"))
        finishing = asyncio.create_task(volumes.finish(entry, CLEAN, here.status(entry)))
        await elapse(1)
        following = await here.a_job(volumes, "job-2")
        assert here.told(following, "cache-base-generation") == "3"
        assert not finishing.done()
        await finishing
        await volumes.aclose()


@pytest.mark.usefixtures("endless_walk")
async def test_after_a_restart_a_boot_does_not_wait_for_what_another_vm_left(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a"))
        finishing = asyncio.create_task(volumes.finish(entry, CLEAN, here.status(entry)))
        await elapse(1)
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)
        await volumes.aclose()
        here.entries.clear()
        volumes = here.agent()
        began_s = clock.monotonic()
        assert await volumes.attach(here.entry("job-2"), here.share(here.entry("job-2")), here.skipped.append) == ()
        assert clock.monotonic() - began_s <= ATTACH_DEADLINE_S
        assert here.skipped == ["cache volume not attached: it was not ready within 45 s"]
        await elapse(300)
        assert await volumes.attach(here.entry("job-3"), here.share(here.entry("job-3")))
        assert [path.name for path in (here.root / "branches").iterdir()] == ["uid-job-3"]
        await volumes.aclose()


async def test_images_that_cannot_be_detached_cost_no_boot_more_than_its_deadline(tmp_path: Path, clock: Clock) -> None:
    """A dead agent had left five; each took its minute, and the first VM after the restart waited for all of them."""
    async with host(tmp_path, clock) as here:
        await here.agent().look()
        for number in range(5):
            (here.root / "_mounts" / f"left-{number}").mkdir()
        here.fault(Fault(on="hdiutil", kind="hang", times=5))
        volumes = here.agent()
        began_s = clock.monotonic()
        assert await volumes.attach(here.entry(), here.share(here.entry()), here.skipped.append) == ()
        assert clock.monotonic() - began_s <= ATTACH_DEADLINE_S
        await elapse(20)
        assert await volumes.attach(here.entry("next"), here.share(here.entry("next")))
        assert clock.monotonic() - began_s < 70  # they were detached side by side
        await volumes.aclose()


async def test_what_cannot_be_removed_in_time_is_removed_later(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        stuck = here.agent(files=StuckFiles())
        entry = await here.a_job(stuck)
        began_s = clock.monotonic()
        assert await stuck.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.NONE
        assert clock.monotonic() - began_s <= FINISH_DEADLINE_S
        await asyncio.wait_for(stuck.look(), 700)
        await stuck.aclose()
        assert here.branch_image(entry).exists()
        volumes = here.agent()
        await volumes.look()
        assert here.branch_image(entry).parent.exists()  # the journal says that its end is still to come
        here.entries.clear()
        await volumes.look()
        assert list((here.root / "branches").iterdir()) == list((here.root / "_records").iterdir()) == []
        await volumes.aclose()


async def test_a_vm_whose_folder_cannot_be_emptied_in_time_boots_without_a_cache(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent(files=StuckFiles())
        entry = await here.a_job(volumes)
        began_s = clock.monotonic()
        assert await volumes.attach(entry, here.share(entry), here.skipped.append) == ()
        assert clock.monotonic() - began_s <= ATTACH_DEADLINE_S
        assert here.skipped == ["cache volume not attached: it was not ready within 45 s"]
        volumes.see(pod(), entry, here.share(entry))
        await elapse(1)
        await volumes.aclose()


async def test_a_leftover_that_takes_for_ever_to_remove_keeps_nobody_from_a_cache(tmp_path: Path, clock: Clock) -> None:
    """Its removal was waited for without an end, and until then no VM of that host got a cache."""
    async with host(tmp_path, clock) as here:
        await here.agent().look()
        for name in ("left", "left-too"):
            (here.root / "branches" / name).mkdir()
        volumes = here.agent(files=StuckFiles())
        assert await volumes.attach(here.entry(), here.share(here.entry()), here.skipped.append) == ()
        await elapse(REMOVAL_DEADLINE_S - ATTACH_DEADLINE_S + 5)
        assert await volumes.attach(here.entry("next"), here.share(here.entry("next")), here.skipped.append), here.skipped
        await volumes.aclose()


async def test_a_vm_that_started_without_a_cache_is_not_told_of_the_one_of_its_first_start(
    tmp_path: Path, clock: Clock
) -> None:
    """A new agent took the old record over after the VM had started without the share, and told its guest of an image there."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await volumes.aclose()
        here.share(entry).stage({}, "mac-1")
        (here.root / "_mounts" / "left").mkdir()
        here.fault(Fault(on="hdiutil", kind="hang"))
        volumes = here.agent()
        assert await volumes.attach(entry, here.share(entry), here.skipped.append) == ()
        volumes.see(pod(), entry, here.share(entry))
        await elapse(60)
        volumes.see(pod(), entry, here.share(entry))
        await elapse(60)
        assert here.told(entry, "cache-ready") is None
        await volumes.look()
        assert list((here.root / "branches").iterdir()) == list((here.root / "_records").iterdir()) == []
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.NONE
        await volumes.aclose()


async def test_an_image_that_could_not_be_detached_in_its_time_is_detached_later(tmp_path: Path, clock: Clock) -> None:
    """It kept the room of a whole volume until the agent was started anew, although its file was long removed."""
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a"), result="accepted 1")
        here.fault(Fault(on="hdiutil", vm="detach", kind="fail", text="hdiutil: couldn't eject - Resource busy"))
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.PROMOTED
        assert len(here.mac.cache.attached) == 1
        await volumes.look()
        assert here.mac.cache.attached == {}
        assert list((here.root / "_mounts").iterdir()) == []
        await volumes.aclose()


@pytest.mark.usefixtures("endless_walk")
async def test_an_image_is_not_detached_while_somebody_looks_into_it(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a"), result="accepted 1")
        finishing = asyncio.create_task(volumes.finish(entry, CLEAN, here.status(entry)))
        await elapse(5)
        await volumes.look()
        assert len(here.mac.cache.attached) == 1
        await finishing
        assert here.mac.cache.attached == {}
        await volumes.aclose()


async def test_a_whole_download_is_kept_when_it_could_not_be_walked_through_in_time(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that was too slow for two minutes threw 20 GiB away and fetched them once more for the next job."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5)
        with monkeypatch.context() as slow:
            slow.setattr(walk, "to_thread", never_ends)
            entry = await here.a_job(volumes)
            await elapse(300)
        assert here.generation() == ""
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.put_head(here.entry("next"), binaries("a"), 5)
        await here.a_job(volumes, "next")
        await elapse(60)
        assert here.generation() == "5"
        assert len([call for call in here.mac.calls if call.argv and call.argv[0].endswith("curl")]) == 1
        await volumes.aclose()
