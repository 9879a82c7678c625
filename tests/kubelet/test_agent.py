"""The agent as a whole lives on, whatever one of its parts meets."""

import asyncio
import errno
import os
from collections import Counter
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.kube.background import Background, Work
from applecart.kubelet.golden_intents import Intent, Intents
from applecart.tart.files import FILE_MODE, Files
from applecart.tart.marks import MARK_FILE
from tests.kubelet.incidents.scene import delete, job, scene, within
from tests.kubelet.world import IMAGE
from tests.tart.hostile_folders import DEEP, few_handles_and_frames, nest
from tests.virtual_time import elapse


async def test_a_builder_whose_disk_is_full_starts_all_the_same_and_finishes_its_goldens_later(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent without garbage collection ended, and again at every start, because a mark could not be written."""
    async with scene(tmp_path, clock, "--disable-vm-gc") as here:
        here.start_agent()
        await elapse(5)
        assert here.agent is not None
        golden = await here.agent.host.goldens.ensure(IMAGE)
        await here.stop_agent()
        mark = here.mac.home / "vms" / golden.vm / MARK_FILE
        mark.unlink()  # it was killed between the clone and the mark
        Intents(tmp_path / "state", Files()).write(Intent(IMAGE, IMAGE, clock.now()))
        write = Files.write

        def full(self: Files, path: Path, data: bytes, mode: int = FILE_MODE) -> None:
            if path.name == MARK_FILE:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(self, path, data, mode)

        with monkeypatch.context() as while_full:
            while_full.setattr(Files, "write", full)
            here.start_agent()
            await elapse(60)
            await here.create(job(runs_s=1, image="ghcr.io/acme/bad image"))
            await here.until_phase("job-1", "Failed")  # it still looks at Pods
        await elapse(600)
        assert mark.exists()


async def test_whatever_surprises_a_part_of_the_agent_is_told_and_it_goes_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A part that was cancelled from within, the heartbeat for one, ended without a word: a group takes that for its end."""
    add, waiting = Background.add, dict[str, list[BaseException]]()

    def surprising(self: Background, name: str, work: Work) -> None:
        async def surprised() -> object:
            if waiting[name]:
                raise waiting[name].pop()
            return await work()

        waiting[name] = [asyncio.CancelledError(), RuntimeError("a bug")]
        add(self, name, surprised)

    async with scene(tmp_path, clock, f"--runner-cache-root={tmp_path / 'cache'}") as here:
        monkeypatch.setattr(Background, "add", surprising)
        here.start_agent()
        await elapse(0.1)
        assert here.agent is not None
        parts = {task.name for task in here.agent.background.tasks}
        assert {task.name for task in here.agent.background.tasks if task.down_because} == parts
        await elapse(30)
        assert here.agent.background.down() is None
        assert waiting == {part: [] for part in parts}
        told = Counter(one.fields["task"] for one in caplog.records if "task" in getattr(one, "fields", {}))  # type: ignore[attr-defined]
        assert told == dict.fromkeys(parts, 2)
        await here.create(job(runs_s=1))
        await here.until_phase("job-1", "Succeeded")


async def test_a_guest_that_nests_folders_without_end_holds_neither_its_pod_nor_its_files(tmp_path: Path, clock: Clock) -> None:
    """I5: deletion took the whole grace of seven minutes, and the files, a token among them, stayed for ever."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=100_000))
        await here.until_phase("job-1", "Running")
        nest(tmp_path / "userdata" / "ci-job-1" / "status" / "d", DEEP)
        with within(here, 60), few_handles_and_frames():
            await delete(here, grace_s=1)
            await here.until_gone("job-1")
        await elapse(600)
        assert here.agent is not None
        assert list(here.agent.host.journal) == []
        assert os.listdir(tmp_path / "userdata") == []


async def test_what_the_agent_follows_queues_and_records_is_measured(tmp_path: Path, clock: Clock) -> None:
    """Its queue was, but neither its caches nor its Events: the page of a Mac that could not follow its Pods looked well."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=1))
        await here.until_phase("job-1", "Succeeded")
        await elapse(5)
        page = here.metrics.render().decode()
    for series in (
        'applecart_informer_objects{kind="pods",scope="fields spec.nodeName=mac-1"}',
        'applecart_informer_behind_seconds{kind="pods",scope="fields spec.nodeName=mac-1"} 0.0',
        'applecart_informer_objects{kind="nodes",scope="fields metadata.name=mac-1"} 1.0',
        'applecart_informer_behind_seconds{kind="nodes",scope="fields metadata.name=mac-1"} 0.0',
        'applecart_events_total{component="tart-kubelet",outcome="written"}',
        'controller_runtime_reconcile_total{controller="pods",result="done"}',
        'workqueue_depth{name="pods"}',
        'applecart_task_restarts_total{task="informer of pods"} 0.0',
    ):
        assert series in page, series
