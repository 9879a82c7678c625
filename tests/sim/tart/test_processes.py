"""Simulated processes: signals, groups, pids, and that a killed one runs no further."""

import asyncio
import signal

import pytest

from applecart.clock import Clock
from applecart.sim.tart.kernel import Kernel
from applecart.sim.tart.processes import ProcessTable
from tests.virtual_time import elapse


@pytest.fixture
async def table(clock: Clock) -> ProcessTable:
    return ProcessTable(clock)


async def sleep_then_seven(kernel: Kernel) -> int:
    await asyncio.sleep(10)
    return 7


async def test_a_process_ends_by_itself_and_leaves_the_table(table: ProcessTable) -> None:
    process = table.spawn(["sleep", "10"], sleep_then_seven)
    assert process.shown().command == "sleep 10"
    assert process.shown().began == "Thu Jan 01 00:00:00 2026"
    assert await process.wait() == 7
    assert table.all() == []
    assert not table.signal(process.pid, 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGUSR2])
async def test_a_signal_ends_it_with_the_code_shells_say(table: ProcessTable, number: int) -> None:
    process = table.spawn(["sleep"], sleep_then_seven)
    await elapse(1)
    assert table.signal(process.pid, number)
    assert await process.wait() == 128 + number


async def test_a_process_killed_in_the_moment_it_is_started_has_ended(table: ProcessTable) -> None:
    ends: list[str] = []
    process = table.spawn(["sleep"], sleep_then_seven, on_end=lambda: ends.append("told"))
    assert table.signal(process.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        assert await process.wait() == 137
    assert table.all() == []
    assert ends == ["told"]


async def test_what_a_killed_program_wanted_to_do_next_does_not_happen(table: ProcessTable) -> None:
    done: list[str] = []

    async def stubborn(kernel: Kernel) -> int:
        try:
            await asyncio.sleep(10)
        except BaseException:
            await asyncio.sleep(0)
            done.append("the system closed its files")
            return 0
        done.append("went on")
        return 0

    process = table.spawn(["stubborn"], stubborn)
    await elapse(1)
    table.signal(process.pid, signal.SIGKILL)
    assert await process.wait() == 137
    assert done == ["the system closed its files"]


async def test_a_caught_signal_is_the_programs_own_and_kill_is_not_caught(table: ProcessTable) -> None:
    async def polite(kernel: Kernel) -> int:
        signals = kernel.catch(signal.SIGINT, signal.SIGKILL)
        assert await signals.get() == signal.SIGINT
        await asyncio.Event().wait()
        return 0

    process = table.spawn(["polite"], polite)
    await elapse(1)
    for number in (signal.SIGINT, signal.SIGWINCH, 0):
        assert table.signal(process.pid, number)
    await elapse(1)
    assert table.all() == [process]
    table.signal(process.pid, signal.SIGKILL)
    assert await process.wait() == 137


async def test_a_group_dies_together(table: ProcessTable) -> None:
    async def parent(kernel: Kernel) -> int:
        kernel.leave_grandchild()
        return 0

    process = table.spawn(["parent"], parent)
    assert await process.wait() == 0
    assert [child.group for child in table.all()] == [process.pid]
    table.signal(-process.pid, signal.SIGKILL)
    await elapse(0)
    assert table.all() == []


async def test_writing_to_nobody_ends_a_program(table: ProcessTable) -> None:
    async def talker(kernel: Kernel) -> int:
        raise BrokenPipeError

    assert await table.spawn(["talker"], talker).wait() == 141


async def test_a_mistake_of_the_simulation_is_not_taken_for_an_exit(table: ProcessTable) -> None:
    async def broken(kernel: Kernel) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await table.spawn(["broken"], broken).wait()


async def test_a_pid_that_comes_again_is_another_process(table: ProcessTable) -> None:
    first = table.spawn(["a"], sleep_then_seven)
    await first.wait()
    table.next_pid = first.pid
    second = table.spawn(["b"], sleep_then_seven)
    assert (first.pid, first.shown().began) != (second.pid, second.shown().began)
