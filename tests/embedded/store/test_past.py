"""What was, while somebody reads it."""

from applecart.api.meta import Key
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
    now = opened.store.table(THINGS).get
    assert [one.value for one in past] == [b'{"v":1}', b"{}"]
    assert [one.key.name for one in again] == ["a", "b", "c"]
    assert again[0] is past[0]
    assert [past[1], *again[1:]] == [now(Key("ns", "b")), now(Key("ns", "b")), now(Key("ns", "c"))]
    assert again[1] is past[1] is now(Key("ns", "b"))
    del past, again
    assert not opened.store.past
