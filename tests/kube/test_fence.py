"""Nobody writes who does not lead at that very moment."""

from datetime import timedelta

import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock, VirtualClock
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.election import Election
from applecart.kube.patch import Merge
from applecart.kube.transport import FencedTransport, NotLeading, Request

KEY = Key("test", "provider")


async def test_the_fence_lets_reads_through_always_and_writes_while_we_lead(running: RunningApi, clock: Clock) -> None:
    api = running.transport()
    contest = Election(Client(api, clock), KEY, "a", clock)
    fenced = Client(FencedTransport(api, contest.is_leader), clock)
    obj = ConfigMap(metadata=ObjectMeta(name="x", namespace="test"))
    assert await fenced.list(ConfigMap, "test") == []
    with pytest.raises(NotLeading, match=r"POST .*: not sent"):
        await fenced.create(obj)

    async def work() -> None:
        await fenced.create(obj)
        assert isinstance(clock, VirtualClock)
        clock.jump(timedelta(minutes=1))
        with pytest.raises(NotLeading, match=r"DELETE .*: not sent"):
            await fenced.delete(ConfigMap, obj.key)

    await contest.lead(work)
    assert len(await fenced.list(ConfigMap, "test")) == 1


async def test_every_kind_of_write_is_fenced_and_no_kind_of_read(running: RunningApi, clock: Clock) -> None:
    is_leader = True
    api = running.transport()
    fenced = Client(FencedTransport(api, lambda: is_leader), clock)
    obj = await fenced.create(ConfigMap(metadata=ObjectMeta(name="x", namespace="test")))
    is_leader = False
    for write in (
        fenced.create(obj),
        fenced.patch(ConfigMap, obj.key, Merge({"data": {"a": "1"}})),
        fenced.patch_status(ConfigMap, obj.key, Merge({"status": {}})),
        fenced.delete(ConfigMap, obj.key),
        fenced.scale(ConfigMap, obj.key, 3),
    ):
        with pytest.raises(NotLeading):
            await write
    assert await fenced.get(ConfigMap, obj.key) == obj
    stream = await fenced.open(Request("GET", "/api/v1/namespaces/test/configmaps", (("watch", "1"),)))
    await stream.aclose()
    with pytest.raises(NotLeading):
        await fenced.open(Request("POST", "/api/v1/namespaces/test/pods/x/exec"))


async def test_closing_the_fence_leaves_the_connection_to_its_owner(running: RunningApi, clock: Clock) -> None:
    api = running.transport()
    await FencedTransport(api, lambda: True).aclose()
    assert await Client(api, clock).list(ConfigMap, "test") == []
