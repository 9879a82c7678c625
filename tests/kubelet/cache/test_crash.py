"""An agent that is killed before or after any of its calls in the life of a cache: the next one ends up at the same place.

At no moment is there half of a master, and what was decided is done once.
"""

from contextlib import suppress
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.kubelet.entry import JournalEntry
from applecart.sim.cache_tools import read_image
from tests.kubelet.cache.stage import CLEAN, Host, binaries, cas, host, pod
from tests.kubelet.killing import AgentKilled, Kill, KillableFiles, KillableMac
from tests.soak import sample
from tests.virtual_time import elapse

OLD, NEW = binaries("old") | cas("x"), binaries("old", "new") | cas("x")


class Lives:
    """One job, served by one agent after another; each goes on where the one before it died."""

    def __init__(self, here: Host) -> None:
        self.here = here
        self.entry: JournalEntry = here.entry()
        self.stage = 0
        self.stages = (self.attach, self.give, self.finish)

    async def attach(self, volumes: CacheVolumes, kill: Kill) -> None:
        self.here.share(self.entry).stage({}, "mac-1")
        await volumes.attach(self.entry, self.here.share(self.entry), self.here.skipped.append)

    async def give(self, volumes: CacheVolumes, kill: Kill) -> None:
        while self.here.told(self.entry, "cache-ready") is None:
            kill.refuse_dead()
            volumes.see(pod(), self.entry, self.here.share(self.entry))
            await elapse(1)
        kill.refuse_dead()
        self.here.guest_ends(self.entry, NEW, result="accepted 7")

    async def finish(self, volumes: CacheVolumes, kill: Kill) -> None:
        await volumes.finish(self.entry, CLEAN, self.here.status(self.entry))

    async def live(self, kill: Kill) -> None:
        """As far as this agent gets."""
        kill.on_death = self.here.mac.kill_agent
        volumes = self.here.agent(KillableMac(self.here.mac, kill), KillableFiles(kill))
        try:
            while self.stage < len(self.stages):
                await self.stages[self.stage](volumes, kill)
                self.stage += 1
        except AgentKilled:
            pass
        finally:
            with suppress(AgentKilled):
                await volumes.aclose()
            self.here.mac.start_agent()
            assert_whole(self.here)


def assert_whole(here: Host) -> None:
    for account in ("42", "7"):
        if here.master(account).exists():
            assert read_image(here.master(account)) is not None
    if here.generation() == "7":
        assert here.image(here.master()) == NEW


def assert_nothing_left(here: Host) -> None:
    for name in ("branches", "_records", "_staged", "_mounts", "_converge"):
        assert list((here.root / name).iterdir()) == []
    assert here.mac.cache.attached == {}


async def calls_of_a_life(tmp_path: Path, clock: Clock) -> list[str]:
    async with host(tmp_path, clock, cas_gib=8) as here:
        here.put_master(OLD, 3)
        kill = Kill()
        await Lives(here).live(kill)
        assert (here.image(here.master()), here.generation()) == (NEW, "7")
        return kill.calls


@pytest.mark.parametrize("after", [False, True])
async def test_killed_anywhere_a_job_has_its_cache_and_leaves_a_newer_one(tmp_path: Path, clock: Clock, after: bool) -> None:
    calls = await calls_of_a_life(tmp_path / "count", clock)
    assert len(calls) > 30
    for number in sample(range(1, len(calls) + 1), 12, offset=after):
        async with host(tmp_path / str(number), clock, cas_gib=8) as here:
            here.put_master(OLD, 3)
            lives = Lives(here)
            await lives.live(Kill(number, "after" if after else "before"))
            await lives.live(Kill())
            assert here.skipped == []
            assert (here.image(here.master()), here.generation()) == (NEW, "7"), f"killed at {number}: {calls[number - 1]}"
            assert_nothing_left(here)


@pytest.mark.parametrize("after", [False, True])
async def test_killed_anywhere_and_the_pod_gone_a_decision_is_kept_and_nothing_stays(
    tmp_path: Path, clock: Clock, after: bool
) -> None:
    calls = await calls_of_a_life(tmp_path / "count", clock)
    ends: set[str] = set()
    for number in sample(range(1, len(calls) + 1), 12, offset=after):
        async with host(tmp_path / str(number), clock, cas_gib=8) as here:
            here.put_master(OLD, 3)
            await Lives(here).live(Kill(number, "after" if after else "before"))
            here.entries.clear()
            volumes = here.agent()
            await volumes.look()
            assert (here.image(here.master()), here.generation()) in ((OLD, "3"), (NEW, "7"))
            assert_nothing_left(here)
            assert list(volumes.labels()) == ["tuist.dev/cache-master-42"]
            ends.add(here.generation())
            await volumes.aclose()
    assert ends == {"3", "7"}


async def test_a_generation_is_never_written_to_another_image_than_its_own(tmp_path: Path, clock: Clock) -> None:
    """Killed between the image and its generation; then a download replaces that image before anybody looks again."""
    calls = await calls_of_a_life(tmp_path / "count", clock)
    moved = max(number for number, call in enumerate(calls, start=1) if call == "move uid-job-1.sparseimage")
    async with host(tmp_path / "one", clock, cas_gib=8) as here:
        here.put_master(OLD, 3)
        lives = Lives(here)
        await lives.live(Kill(moved, "after"))
        assert (here.image(here.master()), here.generation()) == (NEW, "3")
        here.master().unlink()
        here.put_master(binaries("head") | cas("x"), 5)
        await lives.live(Kill())
        assert (here.image(here.master()), here.generation()) == (binaries("head") | cas("x"), "5")
        assert_nothing_left(here)


async def test_a_curl_that_outlives_its_agent_spoils_nothing(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        entry = here.entry()
        remote = here.put_head(entry, NEW, 7, bytes_per_s=20 << 20)
        kill = Kill()
        kill.on_death = here.mac.kill_agent
        volumes = here.agent(KillableMac(here.mac, kill), KillableFiles(kill))
        await volumes.attach(entry, here.share(entry))
        volumes.see(pod(), entry, here.share(entry))
        await elapse(20)
        with suppress(AgentKilled):
            kill.die()
        await volumes.aclose()
        here.mac.start_agent()
        volumes = here.agent()
        volumes.see(pod(), entry, here.share(entry))
        await elapse(3)
        assert [process.argv[0] for process in here.mac.table.all()] == ["/usr/bin/curl"] * 2
        await elapse(300)
        assert remote.asked_from[0] == 0 < remote.asked_from[1]
        assert (here.image(here.master()), here.generation()) == (NEW, "7")
        await volumes.aclose()


@pytest.mark.parametrize("after", [False, True])
async def test_killed_anywhere_in_a_download_the_next_job_ends_it(tmp_path: Path, clock: Clock, after: bool) -> None:
    async def fetch(here: Host, kill: Kill, name: str) -> None:
        entry = here.entry(name)
        here.put_head(entry, NEW, 7, bytes_per_s=200 << 20)
        kill.on_death = here.mac.kill_agent
        volumes = here.agent(KillableMac(here.mac, kill), KillableFiles(kill))
        with suppress(AgentKilled):
            await volumes.attach(entry, here.share(entry))
            volumes.see(pod(name), entry, here.share(entry))
            await elapse(60)
        with suppress(AgentKilled):
            await volumes.aclose()
        here.mac.start_agent()
        assert_whole(here)

    async with host(tmp_path / "count", clock) as here:
        kill = Kill()
        await fetch(here, kill, "one")
        assert here.generation() == "7"
        calls = kill.calls
    for number in sample(range(1, len(calls) + 1), 12, offset=after):
        async with host(tmp_path / str(number), clock) as here:
            await fetch(here, Kill(number, "after" if after else "before"), "one")
            here.entries.clear()
            await fetch(here, Kill(), "two")
            assert (here.image(here.master()), here.generation()) == (NEW, "7"), f"killed at {number}: {calls[number - 1]}"
            assert here.mac.cache.attached == {}
            assert list((here.root / "_mounts").iterdir()) == []
