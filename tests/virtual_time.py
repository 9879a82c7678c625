"""Async tests run on virtual time: nothing sleeps, and the same test takes the same steps every time.

A test marked `real_time` or `kubernetes` gets the real loop, because a virtual one has no sockets, threads or processes. The
`clock` fixture is the clock of the test's own loop, seeded with 0.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from applecart.clock import Clock, SystemClock, VirtualClock, VirtualLoop

REAL_LOOP_MARKERS = ("real_time", "kubernetes")


def needs_real_loop(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in REAL_LOOP_MARKERS)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"real": asyncio.new_event_loop} if needs_real_loop(item) else {"virtual": VirtualLoop}


async def elapse(seconds: float) -> None:
    """Let virtual time pass. On a real loop a test would really wait, so there it is refused."""
    is_real = type(asyncio.get_running_loop()) is asyncio.SelectorEventLoop
    assert not is_real, "a test on the real loop must wait for an event, not for time"
    await asyncio.sleep(seconds)


@pytest.fixture
async def clock(request: pytest.FixtureRequest) -> AsyncIterator[Clock]:
    """Virtual and at its start; of the machine in a test that needs the real loop; standing still in a sync test."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        yield VirtualClock(loop)
    elif needs_real_loop(request.node):
        yield SystemClock()
    else:
        still = VirtualLoop()
        yield VirtualClock(still)
        still.close()
