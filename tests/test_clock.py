"""Virtual time: hours in a few turns of the loop, the same run for the same seed, and a deadlock that says so."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import EPOCH, AllTasksWait, Clock, SystemClock, VirtualClock, VirtualLoop, run_virtual


class CountingLoop(VirtualLoop):
    turns = 0

    def _run_once(self) -> None:
        self.turns += 1
        super()._run_once()  # type: ignore[misc]


def turns_of(main: Coroutine[Any, Any, Any]) -> int:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(main)
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        return loop.turns


def test_an_hour_takes_a_handful_of_turns_of_the_loop() -> None:
    assert turns_of(asyncio.sleep(3600)) < 10


def test_the_cost_of_waiting_is_per_wakeup_and_not_per_second() -> None:
    async def heartbeat(every_s: float) -> None:
        for _ in range(360):
            await asyncio.sleep(every_s)

    assert turns_of(heartbeat(every_s=10)) == turns_of(heartbeat(every_s=0.01))


async def test_sleep_moves_both_clocks_by_exactly_what_was_asked(clock: Clock) -> None:
    await asyncio.sleep(90)
    assert clock.monotonic() == 90
    assert clock.now() == EPOCH + timedelta(seconds=90)


async def test_a_sleep_longer_than_a_day_ends_on_time(clock: Clock) -> None:
    await asyncio.sleep(timedelta(days=400).total_seconds())
    assert clock.now() == EPOCH + timedelta(days=400)


async def test_computing_takes_no_virtual_time(clock: Clock) -> None:
    for _ in range(1000):
        await asyncio.sleep(0)
    assert clock.monotonic() == 0


async def test_sleepers_wake_in_the_order_of_their_deadlines(clock: Clock) -> None:
    woken: list[float] = []

    async def sleeper(delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        assert clock.monotonic() == delay_s
        woken.append(delay_s)

    await asyncio.gather(*(sleeper(delay_s) for delay_s in (5, 0.5, 3600, 60, 0.25)))
    assert woken == [0.25, 0.5, 5, 60, 3600]


async def test_tasks_that_a_task_starts_share_its_time(clock: Clock) -> None:
    async def nested(depth: int) -> float:
        await asyncio.sleep(1)
        return await asyncio.create_task(nested(depth - 1)) if depth else clock.monotonic()

    assert await nested(depth=9) == 10


async def test_a_timeout_expires_at_its_virtual_deadline(clock: Clock) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await asyncio.sleep(31)
    assert clock.monotonic() == 30


async def test_a_timeout_that_is_met_does_not_fire_later(clock: Clock) -> None:
    async with asyncio.timeout(30):
        await asyncio.sleep(29)
    await asyncio.sleep(100)
    assert clock.monotonic() == 129


async def test_a_jump_of_the_wall_clock_changes_no_duration() -> None:
    clock = VirtualClock(asyncio.get_running_loop())
    clock.jump(timedelta(hours=-2))
    async with asyncio.timeout(11):
        await asyncio.sleep(10)
    assert clock.monotonic() == 10
    assert clock.now() == EPOCH + timedelta(hours=-2, seconds=10)


async def test_jumps_add_up() -> None:
    clock = VirtualClock(asyncio.get_running_loop(), start=datetime(2030, 5, 1, tzinfo=UTC))
    clock.jump(timedelta(minutes=5))
    clock.jump(timedelta(minutes=-2))
    assert clock.now() == datetime(2030, 5, 1, 0, 3, tzinfo=UTC)


def test_a_deadlock_names_the_tasks_and_where_they_wait() -> None:
    async def wait_for_nobody() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        waiter = asyncio.create_task(wait_for_nobody(), name="waiter of pod-7")
        await asyncio.sleep(5)
        await waiter

    with pytest.raises(AllTasksWait, match=r"never happen.*waiter of pod-7 in wait_for_nobody \(test_clock.py:\d+\)"):
        run_virtual(main())


def test_a_deadlock_of_many_tasks_names_only_some() -> None:
    async def main() -> None:
        await asyncio.gather(*(asyncio.Event().wait() for _ in range(500)))

    with pytest.raises(AllTasksWait, match=r"and 49\d more") as caught:
        run_virtual(main())
    assert len(str(caught.value)) < 2000


def test_a_timer_that_is_far_away_is_no_deadlock() -> None:
    async def main() -> str:
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(timedelta(days=9).total_seconds(), event.set)
        await event.wait()
        return "woken"

    assert run_virtual(main()) == "woken"


async def test_work_for_a_thread_is_done_at_once_and_in_order() -> None:
    order: list[int] = []
    await asyncio.gather(*(asyncio.to_thread(order.append, number) for number in range(20)))
    assert order == list(range(20))


async def test_an_error_of_work_for_a_thread_reaches_who_waits() -> None:
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(lambda: 1 // 0)


async def test_a_socket_is_refused_with_a_sentence() -> None:
    with pytest.raises(RuntimeError, match=r"virtual time.*real loop"):
        await asyncio.open_connection("127.0.0.1", 9)


def test_the_tasks_of_a_group_are_cancelled_in_the_same_order_in_every_run() -> None:
    """A TaskGroup keeps its tasks in a set; by default its order follows memory addresses, which no seed controls."""

    async def main() -> list[int]:
        order: list[int] = []

        async def child(number: int) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                order.append(number)

        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for number in range(64):
                    group.create_task(child(number))
                await asyncio.sleep(1)
                raise ValueError
        return order

    ballast = [object() for _ in range(1001)]
    first = run_virtual(main())
    del ballast[::3]
    assert first == run_virtual(main())


async def test_waiting_for_several_futures_gives_them_in_the_same_order_each_time() -> None:
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(64)]
    for future in futures:
        future.set_result(None)
    done, _ = await asyncio.wait(futures)
    again, _ = await asyncio.wait(list(futures))
    assert [futures.index(future) for future in done] == [futures.index(future) for future in again]
    assert len({hash(future) for future in futures}) == 64


def test_unnamed_tasks_have_the_same_names_in_every_run() -> None:
    async def main() -> list[str]:
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
        await asyncio.gather(*tasks)
        return [task.get_name() for task in tasks]

    assert run_virtual(main()) == run_virtual(main())


def test_the_same_seed_draws_the_same_numbers_and_another_seed_others() -> None:
    async def draw(seed: int) -> list[float]:
        clock = VirtualClock(asyncio.get_running_loop(), seed=seed)
        return [clock.random.random() for _ in range(5)]

    assert run_virtual(draw(1)) == run_virtual(draw(1))
    assert run_virtual(draw(1)) != run_virtual(draw(2))


@dataclass(frozen=True)
class Step:
    """One thing a task of a random program does."""

    verb: str
    amount: float = 0


steps = st.one_of(
    st.builds(Step, st.just("sleep"), st.sampled_from([0, 0.1, 0.2, 0.3, 1, 1, 7, 3600, 1e6])),
    st.builds(Step, st.just("jitter"), st.sampled_from([1, 60])),
    st.builds(Step, st.just("spawn"), st.integers(0, 4)),
    st.builds(Step, st.just("cancel"), st.integers(0, 4)),
    st.builds(Step, st.sampled_from(["lock", "set", "wait", "fail"])),
)
programs = st.lists(st.lists(steps, max_size=6), min_size=1, max_size=5)


async def run_program(program: list[list[Step]], seed: int) -> list[tuple[float, str]]:
    """What happened, when. Every kind of waiting that asyncio has is in reach of a program."""
    clock = VirtualClock(asyncio.get_running_loop(), seed)
    trace: list[tuple[float, str]] = []
    tasks: list[asyncio.Task[None]] = []
    lock, event, budget = asyncio.Lock(), asyncio.Event(), 40

    async def act(number: int, script: list[Step]) -> None:
        nonlocal budget
        for step in script:
            trace.append((clock.monotonic(), f"{number} {step.verb} {step.amount}"))
            if step.verb == "sleep":
                await asyncio.sleep(step.amount)
            elif step.verb == "jitter":
                await asyncio.sleep(clock.random.uniform(0, step.amount))
            elif step.verb == "spawn" and budget:
                budget -= 1
                tasks.append(asyncio.create_task(act(len(tasks), program[int(step.amount) % len(program)])))
            elif step.verb == "cancel":
                for task in {*tasks[int(step.amount) :: 2]}:  # a set on purpose: its order must not matter to the run
                    task.cancel()
            elif step.verb == "lock":
                async with lock:
                    await asyncio.sleep(0.1)
            elif step.verb == "set":
                event.set()
            elif step.verb == "wait":
                await asyncio.wait([asyncio.ensure_future(event.wait())], timeout=5)
            elif step.verb == "fail":
                raise ValueError(number)

    tasks.extend(asyncio.create_task(act(number, script)) for number, script in enumerate(program))
    while pending := [task for task in tasks if not task.done()]:
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        trace.append((clock.monotonic(), f"done {[task.done() for task in tasks]}"))
    for number, task in enumerate(tasks):
        outcome = "cancelled" if task.cancelled() else repr(task.exception())
        trace.append((clock.monotonic(), f"{number} {outcome}"))
    return trace


@given(programs, st.integers(0, 3))
def test_the_same_program_and_seed_give_the_same_run(program: list[list[Step]], seed: int) -> None:
    first = run_virtual(run_program(program, seed))
    assert first == run_virtual(run_program(program, seed))
    assert [at for at, _ in first] == sorted(at for at, _ in first)


@pytest.mark.real_time
def test_another_process_gives_the_same_run() -> None:
    """Memory addresses and string hashes differ between processes; a run must not."""
    program = """
import asyncio, applecart.clock as c
async def main():
    order = []
    async def child(number):
        try: await asyncio.sleep(100 - number)
        finally: order.append((number, asyncio.current_task().get_name()))
    tasks = {asyncio.create_task(child(n)) for n in range(50)}
    await asyncio.sleep(75.5)
    for task in tasks: task.cancel()
    await asyncio.wait(tasks)
    return order
print(c.run_virtual(main()))
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, check=True
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(runs) == 1


def test_the_system_clock_is_in_utc_and_follows_the_machine() -> None:
    clock = SystemClock()
    before = time.monotonic()
    assert before <= clock.monotonic() <= time.monotonic()
    assert clock.now().tzinfo is UTC
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


async def test_async_tests_run_on_virtual_time_unless_they_say_otherwise() -> None:
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)


@pytest.mark.real_time
async def test_a_test_marked_real_time_runs_on_the_real_loop(clock: Clock) -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)
    assert isinstance(clock, SystemClock)


def test_the_clock_of_a_sync_test_stands_still(clock: Clock) -> None:
    assert clock.now() == EPOCH
