"""What was, while somebody reads it."""

import asyncio
from typing import Any

import pytest

from applecart.embedded.store import store
from tests.embedded.store.conftest import Opened

THINGS = "things"


async def test_those_who_read_the_past_at_the_same_time_share_it(opened: Opened) -> None:
    """150 lists of one revision, with readers that stopped, held 2 GB: each had read its own copy."""
    await opened.put("a", '{"v":1}')
    await opened.put("b")
    then = opened.store.revision
    await opened.put("c")
    later = opened.store.revision
    await opened.put("a", '{"v":2}')
    await opened.reopen()
    await opened.put("a", '{"v":3}')
    past = await opened.store.records_at(THINGS, then, None, None)
    again = await opened.store.records_at(THINGS, later, "ns", None)
    assert [one.value for one in past] == [b'{"v":1}', b"{}"]
    assert [one.key.name for one in again] == ["a", "b", "c"]
    assert again[0] is past[0]
    assert again[1] is past[1]
    del past, again
    assert not opened.store.past


async def test_others_get_a_turn_while_the_past_is_taken_in_and_it_is_read_by_one_at_a_time(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 lists of 13 MB at a revision that only the log has kept the loop for 0.3 s at a time."""
    monkeypatch.setattr(store, "RENEWED_BYTES", 1)
    for name in "abc":
        await opened.put(name)
    then = opened.store.revision
    await opened.put("a", '{"v":2}')
    await opened.reopen()
    await opened.put("a", '{"v":3}')
    happened: list[str] = []
    history, shared = opened.log.history, opened.store._shared

    async def noted(*arguments: Any) -> Any:
        happened.append("read")
        return await history(*arguments)

    def taken(*arguments: Any) -> Any:
        happened.append("taken in")
        asyncio.get_running_loop().call_soon(happened.append, "turn")
        return shared(*arguments)

    monkeypatch.setattr(opened.log, "history", noted)
    monkeypatch.setattr(opened.store, "_shared", taken)
    one, other = await asyncio.gather(*(opened.store.records_at(THINGS, then, None, None) for _ in range(2)))
    assert one == other
    assert happened == ["read", *["taken in", "turn"] * 3] * 2
