"""Work beside a command ends with it, and its failure ends the command."""

import asyncio

import pytest

from applecart.cli.background import in_background
from applecart.cli.stop_signal import first_of
from applecart.errors import ControlPlaneFault


async def test_it_runs_while_the_block_does_and_is_cancelled_after() -> None:
    story: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            story.append("cancelled")

    async with in_background(work, work):
        await asyncio.sleep(1)
        story.append("block")
    assert story == ["block", "cancelled", "cancelled"]


async def test_what_fails_there_ends_the_block_with_its_error() -> None:
    async def fails() -> None:
        await asyncio.sleep(5)
        raise ControlPlaneFault("etcd ended")

    with pytest.raises(ExceptionGroup) as raised:
        async with in_background(fails):
            await asyncio.Event().wait()
    assert [str(error) for error in raised.value.exceptions] == ["etcd ended"]


async def test_what_is_cancelled_from_within_ends_the_block() -> None:
    """The group took it for an orderly end: a server without its controllers went on as if nothing had happened."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        async with asyncio.timeout(10), in_background(cancelled):
            await asyncio.Event().wait()


async def test_work_that_ends_by_itself_ends_nothing_else() -> None:
    async def ends() -> None:
        pass

    async with in_background(ends):
        await asyncio.sleep(1)


async def test_of_several_waits_the_first_decides_and_the_others_are_given_up() -> None:
    given_up = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            given_up.set()

    await first_of(slow(), asyncio.sleep(1))
    assert given_up.is_set()


async def test_a_wait_that_fails_is_not_taken_for_one_that_ended() -> None:
    async def fails() -> None:
        raise ControlPlaneFault("it broke")

    with pytest.raises(ControlPlaneFault, match="it broke"):
        await first_of(asyncio.sleep(100), fails())
