"""A fleet of hosts that beat, on any Kubernetes API, and eyes on what becomes of their Nodes and Pods.

A host is what its agent does: it registers a Node, posts conditions, renews a Lease. It can fall silent and come back. The
agents have a connection of their own, so that a fault can strike them, the controllers, or both.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from applecart.api.coordination import Lease
from applecart.api.events import Event
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.api.nodes import Node, NodeCondition
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.node_lifecycle.heartbeats import Timing
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer
from applecart.kube.patch import Merge, Strategic
from tests.embedded.controllers.node_lifecycle.objects import PRESSURES, lease, node

LEASES = "kube-node-lease"
RETRY_SHARE = 0.5  # of a beat: an agent whose renewal failed tries again sooner


class Host:
    def __init__(self, client: Client, name: str, beat_s: float) -> None:
        self.name = name
        self.key = Key("", name)
        self._client = client
        self._beat_s = beat_s
        self._beating: asyncio.Task[None] | None = None

    async def register(self, *, posts: bool = True, labels: dict[str, str] | None = None) -> None:
        await self._client.create(node(self.name, ready="", uid="", labels=labels))
        if posts:
            await self.post("True")

    async def post(self, ready: str) -> None:
        """The status as an agent writes it."""
        now = self._client.clock.now().replace(microsecond=0)
        said = [NodeCondition(type="Ready", status=ready, reason="KubeletReady", last_heartbeat_time=now)]
        said += [NodeCondition(type=type_, status="False", last_heartbeat_time=now) for type_ in PRESSURES]
        body = {"status": {"conditions": msgspec.to_builtins(said)}}
        await self._client.patch_status(Node, self.key, Strategic(body))

    async def renew(self) -> None:
        renewal = {"spec": {"renewTime": micro_time(self._client.clock.now())}}
        try:
            await self._client.patch(Lease, Key(LEASES, self.name), Merge(renewal))
        except NotFound:
            await self._client.create(lease(self.name, self._client.clock.now()))

    def beat(self, *, by_status: bool = False) -> None:
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat_forever(by_status))

    async def fall_silent(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
            self._beating = None

    async def come_back(self) -> None:
        await self.renew()
        await self.post("True")
        self.beat()

    async def _beat_forever(self, by_status: bool) -> None:
        while True:
            try:
                await (self.post("True") if by_status else self.renew())
            except ApplecartError:
                await asyncio.sleep(self._beat_s * RETRY_SHARE)
            else:
                await asyncio.sleep(self._beat_s)


class Fleet:
    def __init__(self, client: Client, agents: Client, clock: Clock, namespace: str, timing: Timing, within_s: float) -> None:
        self.client = client
        self.clock = clock
        self.namespace = namespace
        self.timing = timing
        self.nodes = Informer(client, Node)
        self.pods = Informer(client, Pod, namespace)
        self.events = Informer(client, Event)
        self.hosts: dict[str, Host] = {}
        self._agents = agents
        self._within_s = within_s
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Fleet":
        self._tasks = [asyncio.create_task(informer.run()) for informer in (self.nodes, self.pods, self.events)]
        for informer in (self.nodes, self.pods, self.events):
            await informer.following()
        return self

    async def __aexit__(self, *_: object) -> None:
        for host in self.hosts.values():
            await host.fall_silent()
        for pod in await self.client.list(Pod, self.namespace):
            with suppress(NotFound):
                await self.client.patch(Pod, pod.key, Merge({"metadata": {"finalizers": None}}))
                await self.client.delete(Pod, pod.key, grace_s=0)
        for host in self.hosts.values():
            for kind, key in ((Node, host.key), (Lease, Key(LEASES, host.name))):
                with suppress(NotFound):
                    await self.client.delete(kind, key)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    # Setting the scene

    async def host(self, name: str, *, beats: bool = True, posts: bool = True, labels: dict[str, str] | None = None) -> Host:
        host = self.hosts[name] = Host(self._agents, name, self.timing.grace_s / 5)
        await host.register(posts=posts, labels=labels)
        if beats:
            await host.renew()
            host.beat()
        return host

    async def pod(self, wanted: Pod) -> Pod:
        """A Pod that runs and is ready on its host."""
        metadata = ObjectMeta(name=wanted.name, namespace=self.namespace, finalizers=wanted.metadata.finalizers)
        made = await self.client.create(msgspec.structs.replace(wanted, metadata=metadata))
        status = {"phase": wanted.status.phase, "conditions": msgspec.to_builtins(wanted.status.conditions)}
        return await self.client.patch_status(Pod, made.key, Strategic({"status": status}))

    # Looking

    async def until(self, holds: Callable[[], bool], what: str, within_s: float | None = None) -> None:
        async def woken() -> None:
            while not holds():
                waits = [asyncio.create_task(informer.wait_until(holds)) for informer in (self.nodes, self.pods, self.events)]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for wait in waits:
                        wait.cancel()

        try:
            async with asyncio.timeout(within_s or self._within_s):
                await woken()
        except TimeoutError:
            raise AssertionError(f"{what} did not come true; {self.describe()}") from None

    def describe(self) -> str:
        nodes = {name: (self.says(name, "Ready"), sorted(self.taints(name))) for name in self.hosts}
        pods = {pod.name: (pod.is_being_deleted, pod.status.phase, pod.status.conditions) for pod in self.pods}
        return f"nodes: {nodes}; pods: {pods}; events: {[(event.reason, event.message) for event in self.events]}"

    def node(self, name: str) -> Node | None:
        return self.nodes.get(Key("", name))

    def says(self, name: str, type_: str) -> tuple[str, str, str]:
        """Status, reason and message of a Node's condition."""
        found = self.node(name)
        said = found.condition(type_) if found is not None else None
        return (said.status, said.reason, said.message) if said is not None else ("", "", "")

    def taints(self, name: str) -> set[tuple[str, str]]:
        found = self.node(name)
        return (
            {(taint.key.removeprefix("node.kubernetes.io/"), taint.effect) for taint in found.spec.taints} if found else set()
        )

    def pod_named(self, name: str) -> Pod | None:
        return self.pods.get(Key(self.namespace, name))

    def is_leaving(self, name: str) -> bool:
        found = self.pod_named(name)
        return found is None or found.is_being_deleted

    def told(self, reason: str, about: str) -> list[str]:
        of = [event for event in self.events if (event.reason, event.involved_object.name) == (reason, about)]
        return [event.message for event in of]

    async def evicted(self, name: str) -> None:
        await self.until(lambda: self.is_leaving(name), f"{name} is evicted")

    async def lost(self, name: str) -> None:
        await self.until(lambda: self.says(name, "Ready")[0] == "Unknown", f"{name} is unknown")

    async def said(self, reason: str, about: str, message: str) -> None:
        await self.until(lambda: message in self.told(reason, about), f"an Event {reason} about {about}: {message}")

    async def tainted(self, name: str, *taints: tuple[str, str]) -> None:
        await self.until(lambda: self.taints(name) == set(taints), f"{name} has just the taints {taints}")
