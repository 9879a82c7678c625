"""Time passes in tests without anybody waiting for it."""

import pytest

from applecart.clock import Clock
from tests.virtual_time import elapse


async def test_a_day_passes_at_once(clock: Clock) -> None:
    began_s = clock.monotonic()
    await elapse(24 * 3600)
    assert clock.monotonic() - began_s == pytest.approx(24 * 3600)


@pytest.mark.real_time
async def test_on_a_real_loop_nobody_may_wait_for_time() -> None:
    with pytest.raises(AssertionError, match="must wait for an event"):
        await elapse(1)
