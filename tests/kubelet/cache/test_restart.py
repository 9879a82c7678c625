"""Caches of VMs that outlive their agent."""

import json
from pathlib import Path

import msgspec
import pytest

from applecart.api.metric_names.label_values import CacheOutcome
from applecart.clock import Clock
from applecart.kubelet.entry import Stage
from applecart.sim.cache_tools import Image, write_image
from tests.kubelet.cache.stage import ACCOUNT, CLEAN, GIB, binaries, host, pod
from tests.virtual_time import elapse


async def test_a_restart_keeps_the_caches_of_running_vms_and_removes_the_rest(tmp_path: Path, clock: Clock) -> None:
    """Incident 45: a restart took the caches from under jobs."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        kept, gone = await here.a_job(volumes, "kept"), await here.a_job(volumes, "gone")
        await volumes.aclose()
        here.entries[gone.uid] = msgspec.structs.replace(gone, stage=Stage.REMOVED)
        (here.root / "branches" / "ci-unknown").mkdir()
        (here.root / "_converge" / "ci-unknown").mkdir()
        (here.root / "_staged" / "uid-unknown.sparseimage").write_bytes(b"half")
        volumes = here.agent()
        await volumes.look()
        assert [path.name for path in (here.root / "branches").iterdir()] == [kept.uid]
        assert [path.name for path in (here.root / "_records").iterdir()] == [f"{kept.uid}.json"]
        assert list((here.root / "_converge").iterdir()) == list((here.root / "_staged").iterdir()) == []
        assert here.image(here.branch_image(kept)) == binaries("a")


async def test_a_job_that_ended_while_no_agent_ran_keeps_its_cache(tmp_path: Path, clock: Clock) -> None:
    """Incident 46: the cache of a VM that an earlier agent had started was thrown away although its job did well."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await volumes.aclose()
        here.guest_ends(entry, binaries("b"), result="accepted 1")
        volumes = here.agent()
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.PROMOTED
        assert here.image(here.master()) == binaries("b")
        assert list(volumes.labels()) == [f"tuist.dev/cache-master-{ACCOUNT}"]


async def test_a_strangers_cache_stays_a_strangers_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    """Incident 45: a restart forgot that a job was not trusted."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes, untrusted="true")
        await volumes.aclose()
        volumes = here.agent()
        volumes.see(pod(), entry, here.share(entry))  # even when the label was taken off
        await elapse(5)
        here.guest_ends(entry, binaries("poison"), result="accepted 1")
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert not here.master().exists()
        await volumes.aclose()


async def test_a_vm_that_waits_for_a_job_is_not_taken_for_one_that_has_its_cache(tmp_path: Path, clock: Clock) -> None:
    """Incident 45: after a restart an idle VM counted as served, and its job began without a cache."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        entry = await here.a_job(here.agent(), account="")
        (here.branch_image(entry).parent / ".host-materialized").touch()  # whatever a guest may put there
        volumes = here.agent()
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert here.image(here.branch_image(entry)) == binaries("a")
        assert here.told(entry, "cache-ready") == "1"
        await volumes.aclose()


async def test_a_job_is_given_its_cache_once_although_agents_come_and_go(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await volumes.aclose()
        write_image(here.branch_image(entry), Image(binaries("half a job"), GIB))
        (here.status(entry) / "cache-ready").unlink()
        volumes = here.agent()
        for _ in range(3):
            volumes.see(pod(), entry, here.share(entry))
            await elapse(5)
        assert here.image(here.branch_image(entry)) == binaries("half a job")
        assert here.told(entry, "cache-ready") == "1"
        await volumes.aclose()


async def test_a_download_is_taken_up_again_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        remote = here.put_head(here.entry(), binaries("a"), 5, bytes_per_s=10 << 20)
        entry = await here.a_job(volumes)
        await elapse(20)
        await volumes.aclose()
        volumes = here.agent()
        volumes.see(pod(), entry, here.share(entry))
        await elapse(300)
        assert here.generation() == "5"
        assert remote.asked_from[-1] > 0
        await volumes.aclose()


async def test_an_image_that_a_dead_agent_left_attached_is_detached(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        await here.agent().look()
        mount = here.root / "_mounts" / "left-1"
        mount.mkdir()
        argv = ["/usr/bin/hdiutil", "attach", "-mountpoint", str(mount), str(here.master())]
        assert (await here.mac.run(argv, deadline_s=None)).code == 0
        await here.agent().look()
        assert here.mac.cache.attached == {}
        assert list((here.root / "_mounts").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"uid": "../x", "vm": "y"}', '{"uid": "uid-other", "vm": "y"}'])
async def test_a_record_that_cannot_be_read_costs_one_cache_and_nothing_else(tmp_path: Path, clock: Clock, text: str) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await volumes.aclose()
        (here.root / "_records" / f"{entry.uid}.json").write_text(text)
        here.guest_ends(entry, binaries("a"))
        volumes = here.agent()
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.NONE
        assert [path.name for path in here.root.iterdir() if path.name.isdigit()] == []
        assert list((here.root / "branches").iterdir()) == []


async def test_what_could_not_be_ended_in_its_time_is_ended_later(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a"))
        here.mac.cache.is_mounted = False
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.NONE
        here.mac.cache.is_mounted = True
        await volumes.look()
        assert list((here.root / "branches").iterdir()) == list((here.root / "_records").iterdir()) == []
        await volumes.aclose()


async def test_masters_of_the_agent_before_ours_are_taken_over(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        here.master().with_name("master.json").unlink(missing_ok=True)
        volumes = here.agent()
        entry = await here.a_job(volumes)
        assert here.told(entry, "cache-base-generation") == "3"
        notes = json.loads(here.master().with_name("master.json").read_text())
        assert notes["generation"] == 3
        await volumes.aclose()
