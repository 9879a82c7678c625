"""Where a scenario plays: a client, a namespace, and eyes on what becomes of its Pods.

A scenario has the nodes of the cluster to itself. Whatever it waits for it sees through an informer; nothing sleeps.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec

from applecart.api.conditions import POD_SCHEDULED
from applecart.api.events import Event
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.api.nodes import Node, Taint
from applecart.api.pods import Pod, PodCondition
from applecart.kube.client import Client
from applecart.kube.errors import AlreadyExists, NotFound
from applecart.kube.informer import Informer
from applecart.kube.patch import Merge
from tests.embedded.controllers.scheduler.objects import pod

WITHIN_S = 30.0  # a real scheduler retries after up to 10 s; the rest is for a busy machine
PROBES = 100  # Pods that may still be judged by nodes that are gone
NO_CLAIMS = "no new claims to deallocate"  # said since Kubernetes 1.34, not before
NO_NODES = "no nodes available to schedule pods"


class Stage:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.pods = Informer(client, Pod, namespace)
        self.events = Informer(client, Event, namespace)

    # Setting the scene

    async def node(self, node: Node) -> Node:
        """Create a Node that has just the taints it says: an API server adds one to every new Node."""
        await self.client.create(msgspec.structs.replace(node, metadata=_without_server_fields(node)))
        taints = [msgspec.to_builtins(taint) for taint in node.spec.taints]
        return await self.client.patch(Node, Key("", node.name), Merge({"spec": {"taints": taints or None}}))

    async def taint(self, name: str, *taints: Taint) -> None:
        await self.client.patch(Node, Key("", name), Merge({"spec": {"taints": list(taints) or None}}))

    async def label(self, name: str, **labels: str | None) -> None:
        await self.client.patch(Node, Key("", name), Merge({"metadata": {"labels": labels}}))

    async def pod(self, wanted: Pod) -> Pod:
        metadata = msgspec.structs.replace(_without_server_fields(wanted), namespace=self.namespace)
        return await self.client.create(msgspec.structs.replace(wanted, metadata=metadata))

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        await self.client.patch_status(Pod, self.key(name), Merge({"status": {"phase": phase}}))

    async def delete(self, name: str, grace_s: int | None = 0) -> None:
        with suppress(NotFound):
            await self.client.delete(Pod, self.key(name), grace_s=grace_s)

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    # Looking

    async def until(self, informer: Informer[Pod] | Informer[Event], holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(WITHIN_S):
                await informer.wait_until(holds)
        except TimeoutError:
            seen = {obj.name: (obj.spec.node_name, obj.status.conditions) for obj in self.pods}
            raise AssertionError(f"{what} did not come true; the Pods: {seen}") from None

    async def placed(self, name: str) -> str:
        """The node that the Pod got."""
        await self.until(self.pods, lambda: bool(self.node_of(name)), f"{name} has a node")
        return self.node_of(name)

    def node_of(self, name: str) -> str:
        found = self.pods.get(self.key(name))
        return found.spec.node_name if found is not None else ""

    def scheduled(self, name: str) -> PodCondition | None:
        found = self.pods.get(self.key(name))
        return found.condition(POD_SCHEDULED) if found is not None else None

    async def refused(self, name: str, message: str, reason: str = "Unschedulable") -> None:
        """The Pod has no node and says why, in these words."""

        def says_so() -> bool:
            said = self.scheduled(name)
            return said is not None and (said.status, said.reason) == ("False", reason) and said.message in words(message)

        await self.until(self.pods, says_so, f"{name} says {message!r}")
        assert self.node_of(name) == ""

    async def told(self, name: str, reason: str, message: str) -> Event:
        """An Event about the Pod with these words."""

        def matching() -> list[Event]:
            return [
                event
                for event in self.events
                if (event.involved_object.name, event.reason) == (name, reason) and event.message in words(message)
            ]

        await self.until(self.events, lambda: bool(matching()), f"an Event {reason} about {name}: {message!r}")
        return matching()[0]

    # Leaving

    async def clear(self) -> None:
        """Remove everything, and return when the scheduler knows that there is no node any more."""
        for left in await self.client.list(Pod, self.namespace):
            if left.metadata.finalizers:
                await self.client.patch(Pod, left.key, Merge({"metadata": {"finalizers": None}}))
            await self.delete(left.name)
        for node in await self.client.list(Node):
            await self.client.delete(Node, node.key)
        for number in range(PROBES):
            if await self._verdict_on(f"probe-{number}") == NO_NODES:
                return
        raise AssertionError("the scheduler still sees nodes that are gone")

    async def _verdict_on(self, name: str) -> str:
        """What the scheduler says about one more Pod; empty when it places it."""
        await self.pod(pod(name))
        await self.until(self.pods, lambda: self.scheduled(name) is not None, f"{name} is judged")
        said = self.scheduled(name)
        await self.delete(name)
        return said.message if said is not None else ""


def words(message: str) -> tuple[str, str]:
    """As the minors of Kubernetes word it."""
    return message, message.replace(f"{NO_CLAIMS}, ", "")


def _without_server_fields(obj: Node | Pod) -> ObjectMeta:
    return msgspec.structs.replace(obj.metadata, uid="", resource_version="", creation_timestamp=None)


@asynccontextmanager
async def stage(client: Client, namespace: str) -> AsyncIterator[Stage]:
    open_stage = Stage(client, namespace)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run()) for informer in (open_stage.pods, open_stage.events)]
        await open_stage.pods.following()
        await open_stage.events.following()
        try:
            yield open_stage
        finally:
            await open_stage.clear()
            for task in tasks:
                task.cancel()


async def ensure(client: Client, obj: Object) -> None:
    """Create what another run of the scenario may have left: it is of the whole cluster and always the same."""
    with suppress(AlreadyExists):
        await client.create(obj)
