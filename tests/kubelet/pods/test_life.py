"""A host whose disk is full: ends are written down all the same, and what must wait says so once and is measured."""

import asyncio
import errno
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from applecart.api.pods import RUNNING, SUCCEEDED
from applecart.clock import Clock
from applecart.kubelet.metrics import Wait
from applecart.kubelet.pods.life import Life
from tests.kubelet.incidents.scene import events, job, scene, terminated, told
from tests.kubelet.killing import KillableFiles
from tests.kubelet.world import World, vm_pod
from tests.virtual_time import elapse


def fill(monkeypatch: pytest.MonkeyPatch, is_full: Callable[[], bool]) -> None:
    """There is no room for an entry of the journal while it is so."""
    write = KillableFiles.write

    def refuse(files: KillableFiles, path: Path, data: bytes, mode: int = 0o600) -> None:
        if path.name == "entry.json" and is_full():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(files, path, data, mode)

    monkeypatch.setattr(KillableFiles, "write", refuse)


async def test_a_disk_that_an_ended_vm_fills_is_cleared_of_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM could not go before its end was written, and its end could not be written before the VM was gone: a dead VM,
    a Pod that was Running for ever, and a host that took no more work."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=300))
        await here.until_phase("job-1", RUNNING)
        fill(monkeypatch, lambda: "ci-job-1" in here.mac.vms() and (tmp_path / "state" / "ballast").exists())
        pod = await here.until_phase("job-1", SUCCEEDED, within_s=330)
        assert terminated(pod).exit_code == 0
        await elapse(30)
        assert "ci-job-1" not in here.mac.vms()
        assert (tmp_path / "state" / "ballast").exists()


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same-agent", "next-agent"])
async def test_a_vm_that_fills_the_disk_before_it_is_known_to_run_is_watched_to_its_end(
    is_restarted: bool, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it ran could not be written down, so nobody looked at it any more, and its end, which frees the disk, was missed."""
    async with scene(tmp_path, clock) as here:
        fill(
            monkeypatch,
            lambda: bool(here.mac.running()) or (bool(here.mac.boots) and (tmp_path / "state" / "ballast").exists()),
        )
        here.start_agent()
        await here.create(job(runs_s=300))
        while not here.mac.boots:
            await elapse(1)
        if is_restarted:
            await here.kill_agent()
            here.start_agent()
        await elapse(90)
        assert "is full" in (await events(here))["HostDiskFull"].message
        pod = await here.until_phase("job-1", SUCCEEDED, within_s=300)
        assert terminated(pod).exit_code == 0
        await elapse(30)
        assert "ci-job-1" not in here.mac.vms()
        assert len(here.mac.boots) == 1


async def test_a_pod_runs_as_soon_as_there_is_room_to_write_down_that_it_does(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, clock) as here:
        is_full = True
        fill(monkeypatch, lambda: is_full and bool(here.mac.boots))
        here.start_agent()
        await here.create(job(runs_s=3600))
        await elapse(600)
        assert here.mac.running() == ["ci-job-1"]
        is_full = False
        pod = await here.until_phase("job-1", RUNNING, within_s=130)
        assert pod.status.pod_ip.startswith("192.168.64.")


async def test_a_journal_without_room_is_told_once_and_its_wait_is_measured(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two records with tracebacks every ten seconds, onto the full disk; an event with a number and no folder; no age (I10)."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.until_phase("job-1", RUNNING)
        is_full = True
        fill(monkeypatch, lambda: is_full)
        caplog.clear()
        await elapse(600)
        event = (await events(here))["HostDiskFull"]
        assert str(tmp_path / "state" / "pods") in event.message
        assert "free some space" in event.message
        assert told(event) == 1
        assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 2
        assert waits_s(here) > 500
        is_full = False
        await here.until_phase("job-1", SUCCEEDED, within_s=600)
        assert waits_s(here) == 0


async def test_another_failure_of_the_journal_is_told_once_too(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.until_phase("job-1", RUNNING)
        write = KillableFiles.write

        def broken(files: KillableFiles, path: Path, data: bytes, mode: int = 0o600) -> None:
            if path.name == "entry.json":
                raise OSError(errno.EIO, "Input/output error", str(path))
            write(files, path, data, mode)

        monkeypatch.setattr(KillableFiles, "write", broken)
        caplog.clear()
        await elapse(600)
        assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 2


def waits_s(here: World) -> float:
    assert here.agent is not None
    return max((each.age_s for each in here.agent.host.metrics.ages.oldest(1, Wait.JOURNAL)), default=0.0)


async def test_whoever_is_cut_off_while_a_life_ends_goes_no_further(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own cancellation was taken for that of the life: a look at a Pod went on after its deadline."""

    async def ends_slowly(life: Life) -> None:
        try:
            await elapse(10**6)
        finally:
            await elapse(5)

    monkeypatch.setattr(Life, "_live", ends_slowly)
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(1)
        assert here.agent is not None
        life = Life(here.agent.host, here.agent.lives.probes, vm_pod(), lambda: None)
        life.begin()
        await elapse(1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await life.stop()
