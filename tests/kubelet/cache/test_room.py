"""Room for caches: who gets some, what goes first, and what happens when the disk is not there."""

from pathlib import Path

from applecart.clock import Clock
from applecart.errors import DeadlineExceeded
from applecart.kubelet.cache.mount import is_mounted, wait_for_mount
from applecart.sim.cache_tools import Image, write_image
from applecart.sim.tart.faults import Fault
from tests.kubelet.cache.stage import ACCOUNT, CLEAN, GIB, binaries, host, pod
from tests.virtual_time import elapse


async def test_a_root_that_is_not_mounted_is_never_written_to(tmp_path: Path, clock: Clock) -> None:
    """Incident 51: caches went to the boot disk while the host looked idle."""
    async with host(tmp_path, clock) as here:
        here.mac.cache.is_mounted = False
        volumes = here.agent()
        entry = here.entry()
        assert await volumes.attach(entry, here.share(entry), here.skipped.append) == ()
        assert here.skipped == [f"cache volume not attached: the disk for caches is not mounted at {here.root}"]
        assert list(here.root.iterdir()) == []
        await volumes.look()
        assert (here.counted("enabled"), here.counted("root_mounted")) == (1, 0)


async def test_a_disk_that_comes_up_late_is_used_from_then_on(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        here.mac.cache.is_mounted = False
        assert volumes_labels(volumes := here.agent()) == {}
        import asyncio

        task = asyncio.create_task(volumes.run())
        await elapse(35)
        assert volumes.labels() == {}
        here.mac.cache.is_mounted = True
        await elapse(10)
        assert list(volumes.labels()) == [f"tuist.dev/cache-master-{ACCOUNT}"]
        assert here.counted("root_mounted") == 1
        here.mac.cache.is_mounted = False  # and a label goes with its disk
        await elapse(301)
        assert volumes.labels() == {}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def volumes_labels(volumes: object) -> dict[str, str]:
    return volumes.labels()  # type: ignore[attr-defined,no-any-return]
