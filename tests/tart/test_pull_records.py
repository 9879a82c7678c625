"""Pulls of an agent that was killed: ended by the next one, and nobody else's ever is."""

import asyncio
import errno
import os
import signal
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.tart.failures import NoSpace, PullStalled
from applecart.tart.mac import Process
from applecart.tart.this_mac import ThisMac
from tests.tart.real_processes import is_alive, sh, written
from tests.tart.simulated import BINARY, GB, IMAGE, OTHER, OTHER_DIGEST, Scene
from tests.virtual_time import elapse

STUCK = 10**15  # a layer whose first percent takes a day


@pytest.fixture
async def scene(tmp_path: Path, clock: Clock) -> Scene:
    return Scene(tmp_path, clock)


async def pulls(scene: Scene) -> list[Process]:
    return [it for it in await scene.mac.processes() if " pull " in it.command]


async def killed_during_a_hung_pull(scene: Scene) -> None:
    """An agent, with a pull that fetched 10 GB and hangs since."""
    scene.set_layers(a=10 * GB, b=STUCK)
    pull = asyncio.create_task(scene.tart.pull(IMAGE))
    await elapse(200)
    scene.mac.kill_agent()
    scene.tart.close()
    pull.cancel()
    await asyncio.gather(pull, return_exceptions=True)
    scene.mac.start_agent()
    assert len(await pulls(scene)) == 1


async def test_a_hung_pull_of_a_killed_agent_does_not_block_its_registry(scene: Scene) -> None:
    """I13: it held Tart's lock on the registry, and every later pull waited for it, stood still and was ended in its stead."""
    await killed_during_a_hung_pull(scene)
    scene.offer(OTHER, OTHER_DIGEST, o=GB)
    again = scene.agent()
    with scene.timed() as took:
        pull = asyncio.create_task(again.pull(OTHER))
        await elapse(5)
        await scene.mac.run([BINARY, "list"], deadline_s=60)  # a person's; it cleans away what nobody holds
        await pull
    assert took[0] < 20
    assert await pulls(scene) == []
    scene.set_layers(a=10 * GB, b=GB)
    with scene.timed() as took:
        await again.pull(IMAGE)
    assert took[0] < 20  # what the hung one had fetched is kept


async def test_a_persons_pull_is_never_ended(scene: Scene) -> None:
    scene.set_layers(a=STUCK)
    theirs = asyncio.create_task(scene.mac.run([BINARY, "pull", IMAGE], deadline_s=None))
    await elapse(10)
    with pytest.raises(PullStalled):
        await scene.tart.pull(OTHER)
    assert not theirs.done()
    theirs.cancel()


async def test_pulls_of_one_agent_do_not_end_each_other(scene: Scene) -> None:
    scene.set_layers(a=GB)
    scene.offer(OTHER, OTHER_DIGEST, o=GB)
    began = []
    for image in (IMAGE, OTHER, IMAGE):
        began.append(asyncio.create_task(scene.tart.pull(image)))
        await elapse(2)
    assert len(await pulls(scene)) == 3  # each holds or awaits the lock on the registry
    await asyncio.gather(*began)


async def test_whoever_has_the_pid_of_a_dead_pull_is_left_alone(scene: Scene) -> None:
    await killed_during_a_hung_pull(scene)
    await scene.mac.reboot()
    scene.set_layers(a=STUCK)
    theirs = asyncio.create_task(scene.mac.run([BINARY, "pull", "registry.example/their/image:1"], deadline_s=None))
    await elapse(1)
    assert [str(it.pid) for it in await pulls(scene)] == [(scene.home / "applecart-pulls" / "0" / "pid").read_text().strip()]
    scene.offer(OTHER, OTHER_DIGEST, o=GB)
    await scene.agent().pull(OTHER)
    assert (await theirs).code == 0


async def test_a_pull_that_ended_leaves_no_record(scene: Scene) -> None:
    scene.set_layers(a=10 * GB, b=STUCK)
    with pytest.raises(PullStalled):
        await scene.tart.pull(IMAGE)
    assert list((scene.home / "applecart-pulls").iterdir()) == []


@pytest.mark.real_time
async def test_a_program_that_runs_in_a_folder_is_found_there_by_the_next_agent(tmp_path: Path) -> None:
    folder = tmp_path / "pulls" / "0"
    run = asyncio.create_task(ThisMac().run(["sleep", "1000"], deadline_s=None, folder=folder))
    pid = int(await written(folder / "pid"))
    left = await ThisMac().adopt(folder)
    assert left
    assert left.pid == pid
    assert await left.signal(signal.SIGKILL)
    ended = await run
    assert ended.code == 128 + signal.SIGKILL
    assert not is_alive(pid)
    assert not folder.exists()


@pytest.mark.real_time
async def test_a_program_that_runs_in_a_folder_is_one_like_any_other(tmp_path: Path) -> None:
    seen: list[bytes] = []
    folder = tmp_path / "0"
    script = 'echo "$MORE $1"; echo err >&2; exit 7'
    ended = await ThisMac().run(sh(script, "a b"), deadline_s=60, env={"MORE": "x"}, on_output=seen.append, folder=folder)
    assert (ended.code, ended.out, ended.err, b"".join(seen)) == (7, b"x a b\n", b"err\n", b"x a b\n")


async def test_a_pull_that_was_left_is_ended_only_when_nothing_of_ours_may_be_cleaning(scene: Scene) -> None:
    """Its lock dies with it: a command that began a moment before would clean away the gigabytes that it had fetched."""
    await killed_during_a_hung_pull(scene)
    scene.offer(OTHER, OTHER_DIGEST, o=GB)
    scene.go_wrong("list", "slow", seconds=1)
    again = scene.agent()
    listing = asyncio.create_task(again.list())
    await elapse(0)
    pull = asyncio.create_task(again.pull(OTHER))
    await elapse(0.5)
    assert IMAGE in " ".join(it.command for it in await pulls(scene))
    await asyncio.gather(listing, pull)
    assert await pulls(scene) == []
    assert scene.partial.exists()


async def test_only_the_first_pull_of_an_agent_looks_for_what_was_left(scene: Scene) -> None:
    await killed_during_a_hung_pull(scene)
    scene.offer(OTHER, OTHER_DIGEST, o=GB)
    for name in ("1", "2"):
        (scene.home / "applecart-pulls" / name).mkdir()
    again = scene.agent()
    for _ in range(3):
        await again.pull(OTHER)
    assert len([call for call in scene.mac.calls if call.verb == "adopt"]) == 3


async def test_what_somebody_else_put_among_the_records_stops_no_pull(scene: Scene) -> None:
    (scene.home / "applecart-pulls").mkdir()
    (scene.home / "applecart-pulls" / ".DS_Store").write_text("of the Finder")
    scene.set_layers(a=GB)
    await scene.tart.pull(IMAGE)
    assert scene.is_pulled()


async def test_a_pull_that_cannot_be_written_down_for_lack_of_room_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room is made for nothing but a full disk."""

    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    scene.set_layers(a=GB)
    with monkeypatch.context() as full:
        full.setattr(Path, "mkdir", no_room)
        with pytest.raises(NoSpace, match="No space left"):
            await scene.tart.pull(IMAGE)
    assert scene.mac.table.all() == []
