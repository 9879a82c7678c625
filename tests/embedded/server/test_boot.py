"""What every cluster has from its first moment."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from applecart.api.core import Namespace, Service
from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.server.server import running_api
from applecart.embedded.store.record import LogEntry, Op, Record
from applecart.embedded.store.store import peek
from applecart.kube.client import Client
from applecart.kube.transport import Request
from tests.embedded.memory_log import MemoryLog
from tests.virtual_time import elapse

API = Key("default", "kubernetes")
ENDED = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-node-lease"},"spec":{"finalizers":[]}}'
KEYS = TokenKeys(ec.generate_private_key(ec.SECP256R1()))


async def test_the_api_has_the_service_that_clients_know_it_by(clock: Clock) -> None:
    """It was missing, and whoever asked for it took the cluster for a broken one."""
    async with running_api(MemoryLog(), clock, KEYS) as running:
        service = await Client(running.transport(), clock).get(Service, API)
        assert service.labels == {"component": "apiserver", "provider": "kubernetes"}


async def test_that_service_is_there_again_when_somebody_deletes_it(clock: Clock) -> None:
    """As on a real cluster; it was gone until the next start."""
    async with running_api(MemoryLog(), clock, KEYS) as running:
        client = Client(running.transport(), clock)
        first = await client.get(Service, API)
        await client.delete(Service, API)
        await elapse(1)
        assert (await client.get(Service, API)).uid != first.uid


async def test_the_namespace_of_heartbeats_is_there_again_when_somebody_deletes_it(clock: Clock) -> None:
    """It was gone until the next start, and all Nodes with certificates were lost."""
    async with running_api(MemoryLog(), clock, KEYS) as running:
        client, key = Client(running.transport(), clock), Key("", "kube-node-lease")
        first = await client.get(Namespace, key)
        await client.delete(Namespace, key)
        await client.call(Request("PUT", "/api/v1/namespaces/kube-node-lease/finalize", body=ENDED))
        await elapse(1)
        assert (await client.get(Namespace, key)).uid != first.uid


async def test_objects_of_a_kind_that_is_no_longer_served_are_told(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A namespace with a claim in it went away as empty, and an export left volumes out without a word."""
    memory = MemoryLog()
    memory.start(lambda _: None, lambda _: None)
    value = b'{"metadata":{"name":"pv1","uid":"1"}}'
    memory.submit(LogEntry("persistentvolumes", Op.ADDED, Record(Key("", "pv1"), 1, value, peek(value))))
    await memory.aclose()
    async with running_api(memory, clock, KEYS) as running:
        assert len(running.store.table("persistentvolumes")) == 1
    told = [line for line in caplog.records if "does not serve" in line.getMessage()]
    assert [vars(line)["fields"] for line in told] == [{"kind": "persistentvolumes", "objects": 1}]
