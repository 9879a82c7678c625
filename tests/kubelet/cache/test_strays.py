"""Caches that could not be ended in their time, and disks that come and go: nobody's cache is taken for another's."""

import asyncio
import os
import shutil
from pathlib import Path

from msgspec.structs import replace

from applecart.api.metric_names.label_values import CacheOutcome
from applecart.clock import Clock
from applecart.kubelet.entry import Stage
from applecart.tart.files import Files
from tests.kubelet.cache.stage import CLEAN, binaries, host, pod
from tests.virtual_time import elapse

DEEPER_THAN_PYTHON = 1100  # its functions nest a thousand times


def nest(folder: Path, depth: int) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def is_there(path: Path) -> bool:
    return path.exists()


async def test_what_is_left_of_a_pod_never_takes_the_cache_of_the_next_one_of_that_name(tmp_path: Path, clock: Clock) -> None:
    """I3: the disk was away when the first one's VM went; its record then removed the folder under the second one's job."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        old = await here.a_job(volumes)
        here.mac.cache.is_mounted = False
        assert await volumes.finish(old, CLEAN, here.status(old)) is CacheOutcome.NONE
        here.mac.cache.is_mounted = True
        new = replace(old, uid="uid-of-the-next")
        here.entries = {new.uid: new}
        here.share(new).stage({}, "mac-1")
        assert await volumes.attach(new, here.share(new))
        volumes.see(pod(), new, here.share(new))
        await elapse(5)
        await volumes.look()
        assert here.image(here.branch_image(new)) == binaries("a")
        assert [path.name for path in (here.root / "branches").iterdir()] == [new.uid]
        assert [path.name for path in (here.root / "_records").iterdir()] == [f"{new.uid}.json"]
        await volumes.aclose()


async def test_a_cache_that_is_taken_over_after_its_pod_was_cleared_away_is_ended(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await volumes.aclose()
        here.mac.cache.is_mounted = False
        volumes = here.agent()
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.mac.cache.is_mounted = True
        await volumes.look()  # the disk comes up before the journal says that the VM is gone
        assert here.branch_image(entry).exists()
        here.entries[entry.uid] = replace(entry, stage=Stage.REMOVED)
        await volumes.look()
        assert list((here.root / "branches").iterdir()) == list((here.root / "_records").iterdir()) == []
        here.mac.cache.quota_bytes = 20 << 30
        assert await volumes.attach(here.entry("next"), here.share(here.entry("next")))  # its room is free again
        await volumes.aclose()


async def test_a_vm_that_starts_anew_while_what_it_left_is_removed_keeps_its_new_folder(tmp_path: Path, clock: Clock) -> None:
    class SlowFiles(Files):
        async def remove_aside(self, path: Path) -> None:
            if is_there(path):
                await asyncio.sleep(100)
            await super().remove_aside(path)

    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await volumes.aclose()
        volumes = here.agent(files=SlowFiles())
        here.mac.cache.is_mounted = False
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.mac.cache.is_mounted = True
        await volumes.look()
        here.entries.clear()
        looking = asyncio.create_task(volumes.look())
        await elapse(50)
        shutil.rmtree(here.branch_image(entry).parent)
        assert await volumes.attach(here.entry(), here.share(entry))
        await elapse(200)
        assert looking.done()
        assert here.branch_image(entry).parent.is_dir()
        assert (here.root / "_records" / f"{entry.uid}.json").exists()
        await volumes.aclose()


async def test_a_disk_that_was_formatted_while_the_agent_runs_is_used_again(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        running = await here.a_job(volumes, "running")
        here.mac.cache.is_mounted = False
        await volumes.look()
        shutil.rmtree(here.root)
        here.root.mkdir()
        here.mac.cache.is_mounted = True
        assert await volumes.attach(here.entry("next"), here.share(here.entry("next")), here.skipped.append), here.skipped
        assert await volumes.finish(running, CLEAN, here.status(running)) is CacheOutcome.DISCARDED
        await volumes.look()
        assert [path.name for path in (here.root / "branches").iterdir()] == ["uid-next"]
        await volumes.aclose()


async def test_folders_nested_deeper_than_python_can_follow_cost_nobody_else_a_cache(tmp_path: Path, clock: Clock) -> None:
    """One guest left such folders, and from the next restart on no VM of that host got a cache."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        nest(here.branch_image(entry).parent, DEEPER_THAN_PYTHON)
        await volumes.aclose()
        here.entries.clear()
        volumes = here.agent()
        assert await volumes.attach(here.entry("next"), here.share(here.entry("next")), here.skipped.append), here.skipped
        assert [path.name for path in (here.root / "branches").iterdir()] == ["uid-next"]
        await volumes.aclose()


async def test_a_leftover_that_cannot_be_removed_for_whatever_reason_stays_alone(tmp_path: Path, clock: Clock) -> None:
    class FailingFiles(Files):
        async def remove_aside(self, path: Path) -> None:
            if path.name == "b-broken":
                raise RecursionError("as deep as that")
            await super().remove_aside(path)

    async with host(tmp_path, clock) as here:
        await here.agent().look()
        for name in ("a", "b-broken", "c"):
            (here.root / "branches" / name).mkdir()
        volumes = here.agent(files=FailingFiles())
        assert await volumes.attach(here.entry(), here.share(here.entry()), here.skipped.append), here.skipped
        assert sorted(path.name for path in (here.root / "branches").iterdir()) == ["b-broken", "uid-job-1"]
        await volumes.aclose()
