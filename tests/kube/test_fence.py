"""Nobody writes who does not lead at that very moment."""

import asyncio
from datetime import timedelta

import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock, VirtualClock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Unreachable
from applecart.kube.auth.credentials import NO_CREDENTIAL, Credential, FixedCredentials
from applecart.kube.client import Client
from applecart.kube.election import Election
from applecart.kube.endpoint import Endpoint
from applecart.kube.http import HttpTransport
from applecart.kube.patch import Merge
from applecart.kube.transport import FENCE, FencedTransport, NotLeading, Request

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


@pytest.mark.real_time
async def test_a_write_whose_connection_or_credential_came_when_the_lease_was_lost_is_not_sent(clock: Clock) -> None:
    """The fence was asked before an exec plugin was, and the write arrived after another process had taken over."""
    is_leader = True
    arrived: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.readline())
        writer.close()

    class LosesTheLease(FixedCredentials):
        async def get(self, rejected: Credential | None = None) -> Credential:
            nonlocal is_leader
            is_leader = False
            return await super().get(rejected)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    http = HttpTransport(Endpoint(server=url, server_from="field server"), LosesTheLease(NO_CREDENTIAL), clock, {})
    fenced = FencedTransport(http, lambda: is_leader)
    with pytest.raises(NotLeading, match=r"POST /x: not sent"):
        await fenced.send(Request("POST", "/x", body=b"{}"))
    assert arrived == []
    with pytest.raises(Unreachable):
        await fenced.send(Request("GET", "/x"))
    assert arrived == [b"GET /x HTTP/1.1\r\n"]
    await http.aclose()
    server.close()


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


async def test_the_fence_of_one_call_is_none_of_the_next(running: RunningApi, clock: Clock) -> None:
    """The election's own writes go to the same connections, in a task that may have written under the fence before."""
    fenced = FencedTransport(running.transport(), lambda: True)
    await fenced.send(Request("GET", "/api/v1/nodes"))
    stream = await fenced.open(Request("GET", "/api/v1/nodes", (("watch", "true"),)))
    await stream.aclose()
    assert FENCE.get() is None
