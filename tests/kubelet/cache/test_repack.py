"""Masters that cost more than they hold."""

import asyncio
import os
from pathlib import Path

import pytest

from applecart.api.metric_names.label_values import CacheOutcome
from applecart.clock import Clock
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.sim.cache_tools import EMPTY_BYTES, Image, write_image
from applecart.sim.mac import Call
from applecart.sim.tart.faults import Fault
from tests.kubelet.cache.stage import ACCOUNT, CLEAN, GIB, Host, binaries, cas, host
from tests.kubelet.killing import AgentKilled, Kill, KillableFiles, KillableMac
from tests.virtual_time import elapse

CONTENTS = binaries("a", "b") | cas("x") | {"other/notes": 3}
SMALL_BYTES = EMPTY_BYTES + sum(CONTENTS.values())


def size(here: Host) -> int:
    return here.master().stat().st_size


def untouched(here: Host) -> bool:
    return (size(here), here.image(here.master()), here.generation()) == (15 * GIB, CONTENTS | {".fseventsd/x": 9}, "3")


def put_bloated_master(here: Host) -> None:
    here.put_master(CONTENTS | {".fseventsd/x": 9}, 3, size_bytes=15 * GIB)


async def look(here: Host) -> CacheVolumes:
    volumes = here.agent()
    await look_again(volumes)
    return volumes


async def look_again(volumes: CacheVolumes) -> None:
    await volumes.look()
    await volumes.repack()


async def test_a_master_that_holds_little_becomes_small_and_stays_the_same(tmp_path: Path, clock: Clock) -> None:
    """Weakness 32: images never shrank, so hardly more than one account's cache found room on a host."""
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)
        volumes = await look(here)
        assert (size(here), here.image(here.master()), here.generation()) == (SMALL_BYTES, CONTENTS, "3")
        assert list((here.root / "_staged").iterdir()) == list((here.root / "_mounts").iterdir()) == []
        assert here.mac.cache.attached == {}
        entry = await here.a_job(volumes)
        assert here.told(entry, "cache-base-generation") == "3"
        await volumes.aclose()


async def test_a_repacked_master_is_no_younger(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)
        os.utime(here.master(), (1_000_000, 1_000_000))
        await look(here)
        assert size(here) == SMALL_BYTES
        assert b"1970-01-12" in here.master().with_name("master.json").read_bytes()


async def test_a_full_or_a_small_master_is_left_alone_and_looked_at_once(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master({"tuist/Binaries/big": 14 * GIB}, 3, size_bytes=15 * GIB)
        here.put_master(binaries("a"), 1, "7", size_bytes=GIB)
        volumes = await look(here)
        calls = len(here.mac.calls)
        await volumes.repack()
        assert [call.argv[0] for call in here.mac.calls[calls:]] == ["/usr/bin/stat"]
        assert (size(here), here.master("7").stat().st_size) == (15 * GIB, GIB)


async def test_nothing_is_evicted_for_it_and_nothing_begins_while_a_job_runs(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)
        volumes = here.agent()
        entry = await here.a_job(volumes)
        await look_again(volumes)
        assert untouched(here)
        await volumes.finish(entry, CLEAN, here.status(entry))
        await volumes.attach(here.entry("next"), here.share(here.entry("next")))
        here.mac.cache.other_bytes = 40 * GIB
        await look_again(volumes)
        assert untouched(here)
        here.mac.cache.other_bytes = 0
        await look_again(volumes)
        assert size(here) == SMALL_BYTES
        await volumes.aclose()


@pytest.mark.parametrize("fault", ["cp", "ditto", "hdiutil", "chmod"])
async def test_a_failure_leaves_the_master_as_it_was(tmp_path: Path, clock: Clock, fault: str) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)
        here.fault(Fault(on=fault, kind="fail"))
        await look(here)
        assert untouched(here)
        assert list((here.root / "_staged").iterdir()) == []
        assert here.mac.cache.attached == {}


async def test_a_copy_that_lost_something_is_not_used(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)

        async def lose_a_file(call: Call) -> None:
            if "ditto" in call.argv[0] and call.argv[-1].endswith("tuist"):
                (Path(call.argv[-1]) / "Binaries" / "b").unlink()

        here.mac.after_call = lose_a_file
        await look(here)
        assert untouched(here)


async def test_a_master_that_was_replaced_meanwhile_stays(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)

        async def replace(call: Call) -> None:
            if "ditto" in call.argv[0]:
                write_image(here.root / "newer", Image(binaries("newer"), GIB))
                (here.root / "newer").replace(here.master())

        here.mac.after_call = replace
        await look(here)
        assert here.image(here.master()) == binaries("newer")


@pytest.mark.parametrize("after", [False, True])
async def test_killed_anywhere_there_is_one_whole_master(tmp_path: Path, clock: Clock, after: bool) -> None:
    number = 0
    while True:
        number += 1
        async with host(tmp_path / str(number), clock) as here:
            put_bloated_master(here)
            kill = Kill(number, "after" if after else "before")
            kill.on_death = here.mac.kill_agent
            try:
                await look_again(here.agent(KillableMac(here.mac, kill), KillableFiles(kill)))
            except AgentKilled:
                here.mac.start_agent()
                assert untouched(here) or here.image(here.master()) == CONTENTS
                volumes = await look(here)
                assert (size(here), here.image(here.master()), here.generation()) == (SMALL_BYTES, CONTENTS, "3")
                assert list((here.root / "_staged").iterdir()) == list((here.root / "_mounts").iterdir()) == []
                assert list(volumes.labels()) == [f"tuist.dev/cache-master-{ACCOUNT}"]
            else:
                break
    assert number > 20


async def test_what_a_job_leaves_is_repacked_too(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)
        volumes = await look(here)
        entry = await here.a_job(volumes)
        here.guest_ends(entry, CONTENTS)
        write_image(here.branch_image(entry), Image(CONTENTS, 15 * GIB))
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.PROMOTED
        assert size(here) == 15 * GIB
        await look_again(volumes)
        assert (size(here), here.generation()) == (SMALL_BYTES, "7")
        await volumes.aclose()


async def test_room_is_kept_while_a_large_cache_is_being_repacked(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        put_bloated_master(here)
        here.put_master(binaries("other"), 1, "7", size_bytes=8 * GIB)
        os.utime(here.master("7"), (1_000_000, 1_000_000))
        here.fault(Fault(on="ditto", kind="slow", seconds=500.0))
        volumes = here.agent()
        task = asyncio.create_task(volumes.run())
        await elapse(10)
        here.mac.cache.other_bytes = 34 * GIB
        await elapse(300)
        assert [call.argv[0] for call in here.mac.calls].count("/usr/bin/ditto") == 1
        assert list(volumes.labels()) == [f"tuist.dev/cache-master-{ACCOUNT}"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await volumes.aclose()
        assert len(asyncio.all_tasks()) == 1


async def test_a_guest_cannot_keep_us_packing_for_ever(tmp_path: Path, clock: Clock) -> None:
    """Everything that lies at the top is copied by a program of its own, and a guest may put a million folders there."""
    async with host(tmp_path, clock) as here:
        files = {f"folder-{number}/x": 1 for number in range(9)}
        here.put_master(files, 3, size_bytes=15 * GIB)
        here.fault(Fault(on="ditto", kind="slow", seconds=600.0, times=None))
        began_s = clock.monotonic()
        await look(here)
        assert clock.monotonic() - began_s < 1900
        assert (here.image(here.master()), size(here)) == (files, 15 * GIB)
        assert list((here.root / "_staged").iterdir()) == []
        assert here.mac.cache.attached == {}
