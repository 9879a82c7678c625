import asyncio
import fcntl
import gc
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.tart.failures import PullStalled
from applecart.tart.partials import HELD_S, KEPT_S, Partials, partial_name
from tests.tart.simulated import BINARY, GB, IMAGE, Scene
from tests.virtual_time import elapse

STUCK = 10**15  # a layer whose first percent takes a day


@pytest.fixture
async def scene(tmp_path: Path, clock: Clock) -> Scene:
    return Scene(tmp_path, clock)


async def stalled(scene: Scene) -> None:
    """Leaves a pull that fetched 10 GB and then stood still."""
    scene.set_layers(a=10 * GB, b=STUCK)
    with pytest.raises(PullStalled, match="stood still for 300 s"):
        await scene.tart.pull(IMAGE)
    scene.set_layers(a=10 * GB, b=GB)


def set_grown(scene: Scene, hours_ago: float) -> None:
    at = (scene.clock.now() - timedelta(hours=hours_ago)).timestamp()
    for path in (*scene.partial.iterdir(), scene.partial):
        os.utime(path, (at, at))


async def foreign_list(scene: Scene) -> None:
    """Somebody at the host's own keyboard."""
    await scene.mac.run([BINARY, "list"], deadline_s=60)


def test_a_partial_is_named_as_tart_names_it() -> None:
    assert partial_name("r.io/a/b:latest") == partial_name("r.io/a/b") == "9129f10beceb97b75c1408fa2e308fe9"
    assert partial_name("r.io:5000/a/b") == partial_name("r.io:5000/a/b:latest")
    assert partial_name("r.io/a/b@sha256:" + "0" * 64) != partial_name("r.io/a/b")


async def test_a_pull_takes_as_long_as_it_makes_progress(scene: Scene) -> None:
    """Weakness 2: a pull slower than 20 minutes never ended, because it was killed by the clock."""
    scene.set_layers(a=400 * GB)
    scene.go_wrong("pull", "slow", bytes_per_s=20 * 10**6)
    with scene.timed() as took:
        await scene.tart.pull(IMAGE)
    assert took[0] > 5 * 3600


async def test_a_pull_that_stands_still_is_ended_after_the_stall_time(scene: Scene) -> None:
    with scene.timed() as took:
        await stalled(scene)
    assert took[0] == pytest.approx(100 + 300, abs=15)


async def test_our_own_commands_never_destroy_what_a_stalled_pull_fetched(scene: Scene) -> None:
    """Weakness 2: the list that followed the kill erased the partial, and the next pull began at zero."""
    await stalled(scene)
    await scene.tart.list()
    await scene.tart.delete("nothing")
    assert scene.partial.exists()
    with scene.timed() as took:
        await scene.tart.pull(IMAGE)
    assert took[0] < 20  # 1 GB; all 11 would take 110 s
    assert scene.is_pulled()


async def test_a_cancelled_pull_is_kept_too(scene: Scene) -> None:
    scene.set_layers(a=10 * GB, b=GB)
    pull = asyncio.create_task(scene.tart.pull(IMAGE))
    await elapse(102)
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    await foreign_list(scene)
    await scene.tart.list()
    with scene.timed() as took:
        await scene.tart.pull(IMAGE)
    assert took[0] < 20


async def test_a_pull_that_is_cancelled_once_more_while_it_waits_to_be_killed_is_killed_all_the_same(scene: Scene) -> None:
    scene.set_layers(a=10 * GB, b=GB)
    pull = asyncio.create_task(scene.tart.pull(IMAGE))
    await elapse(102)
    scene.go_wrong("get", "hang")
    guarding = asyncio.create_task(scene.tart.get("golden"))
    await elapse(0)
    for _ in range(2):
        assert not pull.done()
        pull.cancel()
        await elapse(0.1)
    assert pull.cancelled()
    assert not [it for it in await scene.mac.processes() if " pull " in it.command]
    guarding.cancel()


async def test_nothing_cleans_between_the_death_of_a_pull_and_our_own_lock(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "tmp" / partial_name(IMAGE)
    folder.mkdir(parents=True)
    partials, happened = Partials(tmp_path, clock), list[str]()

    async def pull() -> None:
        """Holds its lock until it is killed, and takes a second to die."""
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            await asyncio.Event().wait()
        finally:
            os.close(handle)
            happened.append("lock gone")
            await elapse(1)

    async def clean(name: str, *, after_s: float, lasts_s: float) -> None:
        await elapse(after_s)
        async with partials.cleaning():
            happened.append(f"{name} cleans")
            await elapse(lasts_s)
            happened.append(f"{name} has cleaned")

    async def pull_and_fail() -> None:
        with suppress(ZeroDivisionError):
            async with partials.pulling(IMAGE, lambda: asyncio.ensure_future(pull())):
                await elapse(1)
                raise ZeroDivisionError
        happened.append("locked by us")

    await asyncio.gather(
        pull_and_fail(), clean("early", after_s=0.5, lasts_s=1), clean("late", after_s=2, lasts_s=0), return_exceptions=True
    )
    assert happened == ["early cleans", "early has cleaned", "lock gone", "locked by us", "late cleans", "late has cleaned"]


async def test_lists_that_never_pause_neither_destroy_a_partial_nor_hold_up_its_pull(scene: Scene) -> None:
    await stalled(scene)

    async def list_on_and_on() -> None:
        while True:
            await scene.tart.list()
            await elapse(0.05)

    listing = asyncio.create_task(list_on_and_on())
    with scene.timed() as took:
        await scene.tart.pull(IMAGE)
    listing.cancel()
    assert took[0] < 25


async def test_a_command_that_runs_for_long_does_not_hold_up_a_pull(scene: Scene) -> None:
    await stalled(scene)
    scene.go_wrong("get", "hang")
    hung = asyncio.create_task(scene.tart.get("golden"))
    await elapse(0)
    with scene.timed() as took:
        await scene.tart.pull(IMAGE)
    assert took[0] < 25
    await asyncio.gather(hung, return_exceptions=True)


async def test_a_partial_outlives_a_restart_of_the_agent(scene: Scene) -> None:
    await stalled(scene)
    scene.tart.close()  # its locks end with the process
    scene.tart = scene.agent()
    await foreign_list(scene)
    assert scene.partial.exists()
    with scene.timed() as took:
        await scene.tart.pull(IMAGE)
    assert took[0] < 20


async def test_an_agent_that_is_dropped_holds_no_lock(scene: Scene) -> None:
    await stalled(scene)
    scene.tart = None  # type: ignore[assignment]
    gc.collect()
    await foreign_list(scene)
    assert not scene.partial.exists()


async def test_an_hour_later_it_is_safe_from_our_own_commands_only_and_a_day_later_it_goes(scene: Scene) -> None:
    """Another person's pull of the same image waits for our lock, so we do not hold it for ever."""
    await stalled(scene)
    await elapse(HELD_S + 1)
    await scene.tart.list()
    assert scene.partial.exists()
    await elapse(KEPT_S - HELD_S)
    await scene.tart.list()
    assert not scene.partial.exists()


async def test_its_age_counts_from_its_last_byte_also_for_an_agent_that_never_saw_it_before(scene: Scene) -> None:
    """An agent that was started anew every day found it new every day, and kept it for ever."""
    await stalled(scene)
    scene.tart.close()
    set_grown(scene, hours_ago=2)
    scene.tart = scene.agent()
    await scene.tart.list()
    assert scene.partial.exists()
    await foreign_list(scene)
    assert not scene.partial.exists()


async def test_a_day_after_its_last_byte_it_goes_for_a_new_agent_too(scene: Scene) -> None:
    await stalled(scene)
    scene.tart.close()
    set_grown(scene, hours_ago=25)
    scene.tart = scene.agent()
    await scene.tart.list()
    assert not scene.partial.exists()


async def test_a_pull_that_came_back_for_it_makes_it_new_although_not_a_byte_came(scene: Scene) -> None:
    """A registry that is out for a day must not cost what was fetched before."""
    await stalled(scene)
    set_grown(scene, hours_ago=25)
    scene.go_wrong("pull", "fail", times=1)
    with suppress(ApplecartError):
        await scene.tart.pull(IMAGE)
    await foreign_list(scene)
    assert scene.partial.exists()


async def test_what_was_dropped_goes_although_a_command_guarded_it_a_moment_ago(scene: Scene) -> None:
    await stalled(scene)
    scene.go_wrong("get", "hang")
    guarding = asyncio.create_task(scene.tart.get("golden"))
    await elapse(0)
    await scene.tart.drop_partials([])
    assert not scene.partial.exists()
    guarding.cancel()


async def test_what_is_wanted_is_not_dropped(scene: Scene) -> None:
    await stalled(scene)
    await scene.tart.drop_partials([IMAGE])
    await foreign_list(scene)
    assert scene.partial.exists()


async def test_what_is_being_pulled_is_not_dropped(scene: Scene) -> None:
    await stalled(scene)
    pull = asyncio.create_task(scene.tart.pull(IMAGE))
    await elapse(3)
    await scene.tart.drop_partials([])
    pull.cancel()
    await asyncio.gather(pull, return_exceptions=True)
    await foreign_list(scene)
    assert scene.partial.exists()


async def test_what_was_dropped_and_is_pulled_again_is_kept_as_ever(scene: Scene) -> None:
    await stalled(scene)
    somebody = os.open(scene.partial, os.O_RDONLY)
    fcntl.flock(somebody, fcntl.LOCK_SH)  # so that it could not be cleaned away
    await scene.tart.drop_partials([])
    os.close(somebody)
    await stalled(scene)
    await foreign_list(scene)
    assert scene.partial.exists()


async def test_what_else_lies_in_tmp_is_cleaned_as_ever(scene: Scene) -> None:
    rubbish = scene.home / "tmp" / "8B1E6C0C-1111-2222-3333-444455556666"
    rubbish.mkdir(parents=True)
    await scene.tart.list()
    assert not rubbish.exists()


async def test_a_pull_that_waits_for_another_one_of_the_same_registry_is_not_stalled(scene: Scene) -> None:
    scene.set_layers(a=200 * GB)
    first = asyncio.create_task(scene.tart.pull(IMAGE))
    await elapse(5)
    await scene.tart.pull("ghcr.io/acme/other:1")  # waits 2000 s without a word
    assert first.done()


async def test_the_end_of_one_pull_does_not_lock_out_another_that_waits(scene: Scene) -> None:
    """Ours holds what nobody works on; a pull that has not taken its own lock yet is somebody."""
    await stalled(scene)
    scene.mac.registry.edit(lambda content: content.missing.append("ghcr.io/acme/none:1"))
    scene.go_wrong("pull", "slow", vm=IMAGE, seconds=30, bytes_per_s=10**8)
    pull = asyncio.create_task(scene.tart.pull(IMAGE))
    await elapse(1)
    await asyncio.gather(scene.tart.pull("ghcr.io/acme/none:1"), return_exceptions=True)
    with scene.timed() as took:
        await pull
    assert took[0] < 60


async def test_whoever_lets_go_holds_nothing_for_commands_that_go_on_either(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "tmp" / partial_name(IMAGE)
    folder.mkdir(parents=True)
    partials = Partials(tmp_path, clock)
    async with partials.cleaning(goes_on=True):
        pass
    handle = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partials.let_go()
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
