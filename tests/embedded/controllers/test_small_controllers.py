"""Controllers side by side: one that fails is started again and disturbs nobody."""

import asyncio
import logging

import pytest

from applecart.clock import Clock
from applecart.embedded.controllers.small_controllers import PACE, WELL_AFTER_S, Small, SmallControllers, keep_running
from applecart.errors import ControlPlaneFault
from tests.embedded.controllers.stages import CA_PEM, api_in_memory
from tests.virtual_time import elapse


class Failing:
    """Lives for a while, then fails."""

    def __init__(self, clock: Clock, lives_s: float, error: Exception | None = None) -> None:
        self.started_at_s: list[float] = []
        self._clock = clock
        self._lives_s = lives_s
        self._error = error

    async def run(self) -> None:
        self.started_at_s.append(self._clock.monotonic())
        await elapse(self._lives_s)
        if self._error is not None:
            raise self._error

    @property
    def pauses_s(self) -> list[float]:
        return [
            later - earlier - self._lives_s for earlier, later in zip(self.started_at_s, self.started_at_s[1:], strict=False)
        ]


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("error", [ControlPlaneFault("the API is away"), ValueError("a bug"), None], ids=["ours", "bug", "end"])
async def test_one_that_ends_is_started_again_ever_later(clock: Clock, error: Exception | None) -> None:
    failing = Failing(clock, 1.0, error)
    task = asyncio.create_task(keep_running(Small("failing", failing.run), clock))
    await elapse(1000)
    await stop(task)
    pauses_s = failing.pauses_s
    assert len(pauses_s) > 10
    assert pauses_s[0] <= PACE.first_s
    assert all(PACE.longest_s / 2 <= pause_s <= PACE.longest_s for pause_s in pauses_s[8:])


async def test_one_that_ran_well_for_long_is_started_again_soon(clock: Clock) -> None:
    failing = Failing(clock, WELL_AFTER_S + 1, ValueError("a bug"))
    task = asyncio.create_task(keep_running(Small("failing", failing.run), clock))
    await elapse(20 * WELL_AFTER_S)
    await stop(task)
    assert len(failing.pauses_s) > 10
    assert all(pause_s <= PACE.first_s for pause_s in failing.pauses_s)


async def test_its_end_is_told(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(keep_running(Small("failing", Failing(clock, 1.0, ValueError("a bug")).run), clock))
    with caplog.at_level(logging.ERROR):
        await elapse(1.1)
    await stop(task)
    assert [record.getMessage() for record in caplog.records] == ["a controller ended, starting it again"]


async def test_the_others_do_not_notice(clock: Clock) -> None:
    failing, well = Failing(clock, 1.0, ValueError("a bug")), Failing(clock, 10_000.0)
    async with api_in_memory(clock) as (client, sign):
        controllers = SmallControllers(
            client, clock, CA_PEM, sign, more=[Small("failing", failing.run), Small("well", well.run)]
        )
        names = [controller.name for controller in controllers.controllers]
        assert names == ["garbage collector", "namespaces", "service-account tokens", "failing", "well", "scheduler"]
        task = asyncio.create_task(controllers.run())
        await elapse(500)
        await stop(task)
    assert len(failing.started_at_s) > 5
    assert len(well.started_at_s) == 1


async def test_all_stop_when_they_are_stopped(clock: Clock) -> None:
    async with api_in_memory(clock) as (client, sign):
        task = asyncio.create_task(SmallControllers(client, clock, CA_PEM, sign).run())
        before = asyncio.all_tasks()
        await elapse(10)
        await stop(task)
        assert task.cancelled()
        await elapse(1)
        assert {other for other in asyncio.all_tasks() - before if not other.done()} == set()
