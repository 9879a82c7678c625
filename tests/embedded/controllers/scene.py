"""Where a scenario of the small controllers plays: a client, a namespace, and eyes on what becomes of its objects.

Whatever a scenario waits for it sees through informers; nothing sleeps. The same scenario plays on every API, so it never asks
who does the work.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from applecart.api.core import ConfigMap, Namespace
from applecart.api.meta import Key, Object, ObjectMeta, OwnerReference
from applecart.kube.client import Client
from applecart.kube.informer import Informer
from applecart.kube.metadata_only import MetadataClient, metadata_kind
from applecart.kube.owners import owner_reference
from applecart.kube.patch import Merge

K = TypeVar("K", bound=Object)

WITHIN_S = 60.0  # kube-controller-manager learns of new kinds twice a minute; the rest is for a busy machine
HOLD = "applecart.test/hold"  # a finalizer that only the scenario takes away


class Scene:
    def __init__(self, client: Client, namespace: str, ca_pem: bytes, group: asyncio.TaskGroup) -> None:
        self.client = client
        self.namespace = namespace
        self.ca_pem = ca_pem
        self._group = group
        self._eyes: dict[str, Informer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._probes = 0

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    # Setting the scene

    async def config_map(
        self,
        name: str,
        owners: Sequence[OwnerReference] = (),
        finalizers: Sequence[str] = (),
        namespace: str = "",
    ) -> ConfigMap:
        metadata = ObjectMeta(
            name=name,
            namespace=namespace or self.namespace,
            owner_references=tuple(owners),
            finalizers=tuple(finalizers),
        )
        return await self.client.create(ConfigMap(metadata=metadata))

    async def another_namespace(self, suffix: str = "other", finalizers: Sequence[str] = ()) -> str:
        """One more namespace, ready to be used."""
        name = f"{self.namespace}-{suffix}"
        made = Namespace(metadata=ObjectMeta(name=name))
        if finalizers:
            made = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, finalizers=tuple(finalizers)))
        await self.client.create(made)
        return name

    async def delete(self, obj: Object, propagation: str = "Background") -> None:
        await self.client.delete(type(obj), obj.key, propagation=propagation)

    async def release(self, obj: Object) -> None:
        """Take the scenario's finalizer away."""
        await self.client.patch(type(obj), obj.key, Merge({"metadata": {"finalizers": None}}))

    # Looking

    async def eye(self, kind: type[K]) -> Informer[K]:
        """What the API holds of a kind, in all namespaces."""
        label = f"{kind.__name__} {kind.resource.label}"
        if label not in self._eyes:
            eye = self._eyes[label] = Informer(self.client, kind)
            self._tasks.append(self._group.create_task(eye.run()))
            await eye.following()
        return self._eyes[label]

    async def until(self, kind: type[K], key: Key, holds: Callable[[K | None], bool], what: str) -> K | None:
        eye = await self.eye(kind)
        try:
            async with asyncio.timeout(WITHIN_S):
                await eye.wait_until(lambda: holds(eye.get(key)))
        except TimeoutError:
            raise AssertionError(f"{kind.__name__} {key}: {what} did not come true; it is {eye.get(key)!r}") from None
        return eye.get(key)

    async def gone(self, obj: Object) -> None:
        await self.until(type(obj), obj.key, lambda now: now is None or now.uid != obj.uid, "it is gone")

    async def present(self, kind: type[K], key: Key) -> K:
        found = await self.until(kind, key, lambda now: now is not None, "it is there")
        assert found is not None
        return found

    async def owned_only_by(self, obj: Object, *owners: Object) -> None:
        wanted = {owner.uid for owner in owners}

        def holds(now: Object | None) -> bool:
            return now is not None and {reference.uid for reference in now.metadata.owner_references} == wanted

        await self.until(type(obj), obj.key, holds, f"it is owned by {[owner.name for owner in owners]} only")

    async def stays(self, *objects: Object) -> None:
        """After everything that happened before has had its consequences, these are still there and not being deleted."""
        await self.settled()
        for obj in objects:
            found = await MetadataClient.of(self.client).get(metadata_kind(obj.resource), obj.key)
            assert found.uid == obj.uid
            assert not found.is_being_deleted

    async def settled(self) -> None:
        """Wait until an object that was left behind now is collected: twice, because there are several workers."""
        for _ in range(2):
            self._probes += 1
            owner = await self.config_map(f"probe-owner-{self._probes}")
            probe = await self.config_map(f"probe-{self._probes}", [owner_reference(owner)])
            await self.delete(owner)
            await self.gone(probe)


Scenario = Callable[[Scene], Awaitable[None]]


@asynccontextmanager
async def scene(client: Client, namespace: str, ca_pem: bytes) -> AsyncIterator[Scene]:
    """A scene in a namespace of its own."""
    await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    async with asyncio.TaskGroup() as group:
        opened = Scene(client, namespace, ca_pem, group)
        try:
            yield opened
        finally:
            opened.close()


def plain_reference(owner: Object, *, blocks: bool | None = None) -> OwnerReference:
    return msgspec.structs.replace(owner_reference(owner, controller=False), block_owner_deletion=blocks)
