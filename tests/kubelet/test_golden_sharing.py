"""One piece of work for many: begun once, ended when nobody waits, never twice at a time."""

import asyncio

import pytest

from applecart.kubelet.golden_sharing import Listener, Shared
from tests.virtual_time import elapse


class Work:
    """Takes ten seconds, and one more to stop."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.begun = 0

    async def __call__(self, tell: Listener[str]) -> int:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(5)
            tell("half")
            await asyncio.sleep(5)
            return self.begun
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            raise
        finally:
            self.running -= 1


async def test_those_who_come_meanwhile_share_the_result() -> None:
    work, shared = Work(), Shared[int, str]()
    results = await asyncio.gather(*(shared.join("k", work) for _ in range(4)))
    assert results == [1, 1, 1, 1]
    assert "k" not in shared
    assert await shared.join("k", work) == 2


async def test_other_keys_are_other_work() -> None:
    work, shared = Work(), Shared[int, str]()
    await asyncio.gather(shared.join("a", work), shared.join("b", work))
    assert (work.begun, work.most) == (2, 2)


async def test_it_goes_on_while_one_still_waits() -> None:
    work, shared = Work(), Shared[int, str]()
    first, second = (asyncio.create_task(shared.join("k", work)) for _ in range(2))
    await elapse(1)
    first.cancel()
    assert await second == 1


async def test_it_stops_when_the_last_one_goes_and_a_newcomer_waits_for_that() -> None:
    work, shared = Work(), Shared[int, str]()
    first = asyncio.create_task(shared.join("k", work))
    await elapse(1)
    first.cancel()
    await elapse(0.5)
    assert await shared.join("k", work) == 2
    assert work.most == 1


async def test_one_who_goes_before_it_began_leaves_nothing() -> None:
    work, shared = Work(), Shared[int, str]()
    first = asyncio.create_task(shared.join("k", work))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert "k" not in shared
    assert await shared.join("k", work) >= 1


async def test_a_failure_reaches_everybody_and_is_not_kept() -> None:
    shared = Shared[int, str]()

    async def fails(_: Listener[str]) -> int:
        await asyncio.sleep(1)
        raise ValueError("no")

    results = await asyncio.gather(*(shared.join("k", fails) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError] * 3
    assert await shared.join("k", Work()) == 1


async def test_only_those_who_wait_hear_the_news() -> None:
    work, shared = Work(), Shared[int, str]()
    heard: list[str] = []
    gone = asyncio.create_task(shared.join("k", work, lambda news: heard.append(f"gone {news}")))
    stays = asyncio.create_task(shared.join("k", work, lambda news: heard.append(f"stays {news}")))
    await elapse(1)
    gone.cancel()
    await stays
    assert heard == ["stays half"]


async def test_a_cancelled_waiter_is_cancelled() -> None:
    waiter = asyncio.create_task(Shared[int, str]().join("k", Work()))
    await elapse(1)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
