"""Objects by their metadata alone, on the embedded API and on a real one."""

import asyncio

import pytest

from applecart.api.core import ConfigMap, Namespace, Secret
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import DeadlineExceeded
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.finalizers import remove_finalizer
from applecart.kube.informer import Informer
from applecart.kube.metadata_only import MANY, ONE, MetadataClient, metadata_kind
from applecart.kube.patch import Merge
from applecart.kube.transport import Request, Response, Stream, Transport
from tests.embedded.controllers.stages import api_in_memory
from tests.kube.faults import FaultyTransport, Hung, always
from tests.kubernetes.cluster import FullCluster

MAPS = metadata_kind(ConfigMap.resource)


def test_a_resource_has_one_struct() -> None:
    assert metadata_kind(ConfigMap.resource) is MAPS
    assert metadata_kind(Secret.resource) is not MAPS
    assert (MAPS.resource, MAPS.__name__) == (ConfigMap.resource, "ConfigMapMetadata")
    assert set(MAPS.__struct_fields__) == {"metadata"}


async def test_it_is_as_patient_as_the_client_that_it_is_made_of(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport(), always(Hung()))
    with pytest.raises(DeadlineExceeded):
        await MetadataClient.of(Client(network, clock, deadline_s=5.0)).list(MAPS)
    assert clock.monotonic() == pytest.approx(5)


async def check_all(client: Client, namespace: str) -> None:
    """Lists, gets, watches and writes."""
    network = FaultyTransport(client.transport)
    metadata = MetadataClient(network, client.clock)
    informer = Informer(metadata, MAPS, namespace, labels="seen=yes")
    task = asyncio.create_task(informer.run())
    await informer.following()

    def told_of(name: str, revision: str) -> bool:
        found = informer.get(Key(namespace, name))
        return found is not None and found.revision == revision

    made = await client.create(
        ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace, labels={"seen": "yes"}), data={"k": "v"})
    )
    await informer.wait_until(lambda: told_of("a", made.revision))
    found = await metadata.get(MAPS, made.key)
    assert found.metadata == made.metadata
    assert [obj.metadata for obj in await metadata.list(MAPS, namespace, labels="seen=yes")] == [made.metadata]
    changed = await metadata.patch(MAPS, made.key, Merge({"metadata": {"finalizers": ["x.test/y"]}}), if_revision=made.revision)
    await informer.wait_until(lambda: told_of("a", changed.revision))
    assert (await client.get(ConfigMap, made.key)).data == {"k": "v"}
    await metadata.delete(MAPS, made.key, if_uid=made.uid)
    await remove_finalizer(metadata, changed, "x.test/y")
    await informer.wait_until(lambda: informer.get(made.key) is None)
    task.cancel()
    await asyncio.wait([task])
    asked = {(call.accept, dict(call.query).get("watch")) for call in network.calls if call.method == "GET"}
    assert asked == {(MANY, None), (ONE, None), (ONE, "true")}


class Overheard:
    """A connection whose answers are kept."""

    def __init__(self, inner: Transport) -> None:
        self.bodies: list[bytes] = []
        self._inner = inner

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        self.bodies.append(response.body)
        return response

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def check_secrecy(client: Client, namespace: str) -> None:
    await client.create(Secret(metadata=ObjectMeta(name="s", namespace=namespace), data={"k": "aHVzaA=="}))
    overheard = Overheard(client.transport)
    metadata = MetadataClient(overheard, client.clock)
    kind = metadata_kind(Secret.resource)
    await metadata.list(kind, namespace)
    await metadata.get(kind, Key(namespace, "s"))
    assert len(overheard.bodies) == 2
    assert all(b"aHVzaA" not in body for body in overheard.bodies)


async def test_on_the_embedded_api(clock: Clock) -> None:
    async with api_in_memory(clock) as (client, _):
        await client.create(Namespace(metadata=ObjectMeta(name="ci")))
        await check_all(client, "ci")


async def test_no_value_of_a_secret_comes_from_the_embedded_api(clock: Clock) -> None:
    async with api_in_memory(clock) as (client, _):
        await check_secrecy(client, "default")


@pytest.mark.kubernetes
async def test_on_kubernetes(real_cluster: FullCluster, namespace: str, clock: Clock) -> None:
    client = Client(connect(str(real_cluster.kubeconfig), None, clock, environ={}), clock)
    try:
        await check_all(client, namespace)
        await check_secrecy(client, namespace)
    finally:
        await client.aclose()
