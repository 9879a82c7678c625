"""Pods that hold our finalizer, in every state that matters to whoever frees them, and an API that others use too."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from applecart.api.containers import Container
from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node
from applecart.api.pods import Pod, PodSpec, PodStatus
from applecart.clock import EPOCH
from applecart.kube.client import Client
from applecart.kube.patch import Merge, Strategic
from applecart.kube.transport import Request, Response, Stream, Transport
from tests.kube.faults import Fault, Plan

THEIRS = "example.com/theirs"
AT_A_TIME = 32


def held_pod(
    name: str = "runner",
    *,
    on: str = "mac-1",
    phase: str = "Succeeded",
    deleted_s_ago: float | None = 3600.0,
    now: datetime = EPOCH,
    grace_s: int = 0,
    finalizers: tuple[str, ...] = (VM_CLEANUP,),
) -> Pod:
    """As the API shows it; None is not being deleted."""
    ends_at = None if deleted_s_ago is None else now - timedelta(seconds=deleted_s_ago)
    metadata = ObjectMeta(
        name=name,
        namespace="test",
        uid=f"uid-{name}",
        resource_version="7",
        deletion_timestamp=ends_at,
        deletion_grace_period_seconds=None if ends_at is None else grace_s,
        finalizers=finalizers,
    )
    return Pod(metadata=metadata, spec=PodSpec(node_name=on), status=PodStatus(phase=phase))


async def store(
    client: Client,
    name: str,
    *,
    namespace: str = "test",
    on: str = "mac-1",
    phase: str = "Succeeded",
    deleted: bool = True,
    finalizers: tuple[str, ...] = (VM_CLEANUP,),
    ends_late: bool = False,
) -> Pod:
    """The same in an API, by the calls that make it so in life. `ends_late`: it ended after its deletion was asked for."""
    key = Key(namespace, name)
    container = (Container(name="runner", image="image"),)
    metadata = ObjectMeta(name=name, namespace=namespace, finalizers=finalizers)
    await client.create(Pod(metadata=metadata, spec=PodSpec(containers=container, node_name=on)))

    async def end() -> None:
        await client.patch_status(Pod, key, Strategic({"status": {"phase": phase}}))

    if not ends_late:
        await end()
    if deleted:
        await client.delete(Pod, key)
    if ends_late:
        await end()
    return await client.get(Pod, key)


async def store_many(client: Client, names: Iterable[str], namespace: str, on: str) -> None:
    limit = asyncio.Semaphore(AT_A_TIME)

    async def one(name: str) -> None:
        async with limit:
            await store(client, name, namespace=namespace, on=on)

    await asyncio.gather(*map(one, names))


async def add_node(client: Client, name: str) -> None:
    await client.create(Node(metadata=ObjectMeta(name=name)))


async def names_in(client: Client, namespace: str = "test") -> set[str]:
    return {pod.name for pod in await client.list(Pod, namespace)}


async def let_go(client: Client, key: Key) -> None:
    """End a Pod at the end of a test, whoever holds it."""
    await client.patch(Pod, key, Merge({"metadata": {"finalizers": None}}))


class Between:
    """An API on which something happens just before a request of ours arrives."""

    def __init__(self, inner: Transport, happens: Callable[[Request], object]) -> None:
        self.requests: list[Request] = []
        self._inner = inner
        self._happens = happens

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        happened = self._happens(request)
        if asyncio.iscoroutine(happened):
            await happened
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def methods(self, path_end: str = "") -> list[str]:
        return [request.method for request in self.requests if request.path.endswith(path_end)]


def at_path(path_end: str, fault: Fault) -> Plan:
    """A fault that strikes requests for one thing."""
    return lambda request: fault if request.path.endswith(path_end) else None
