"""Follows the metadata of every kind that can be deleted, listed and watched, as kinds come and go.

Asks the API what it serves, again whenever a definition of kinds changes, and from time to time because other servers' kinds
come unannounced. A kind that is no longer served is no longer followed; one whose server does not answer is, as last known.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from applecart.api.meta import Resource
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.graph import Graph
from applecart.errors import ApplecartError
from applecart.kube.cache import Change
from applecart.kube.discovery import Discovery, discover
from applecart.kube.informer import Informer, Tuning
from applecart.kube.metadata_only import MetadataClient, PartialObject, metadata_kind
from applecart.observe.logs import logger

NEEDED_VERBS = ("delete", "list", "watch")
IGNORED = frozenset({"events", "events.events.k8s.io"})  # many, short-lived, and nobody's owners or dependents
DEFINITIONS = frozenset({"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"})
ASK_EVERY_S = 30.0
# A server shows a new kind in its lists some moments after the definition is accepted.
ASK_AFTER_CHANGE_S = (0.2, 1.0, 5.0)
SYNC_WITHIN_S = 30.0  # one kind that cannot be listed must not keep all others from being cleaned up

log = logger(__name__)


def followed(discovery: Discovery) -> dict[str, Resource]:
    """The resources to follow, by label."""
    return {
        served.resource.label: served.resource
        for served in discovery.preferred()
        if served.allows(*NEEDED_VERBS) and served.resource.label not in IGNORED
    }


class Monitors:
    def __init__(
        self,
        client: MetadataClient,
        graph: Graph,
        look_at: Callable[[list[str]], None],
        discovered: Callable[[Discovery], None],
        clock: Clock,
        tuning: Tuning,
    ) -> None:
        self._client = client
        self._graph = graph
        self._look_at = look_at
        self._discovered = discovered
        self._clock = clock
        self._tuning = tuning
        self._running: dict[str, tuple[Informer[PartialObject], asyncio.Task[None]]] = {}
        self._definitions_changed = asyncio.Event()
        self._first = asyncio.Event()

    async def ready(self) -> None:
        """Wait until all kinds were listed once, or until those that can be have had time enough."""
        await self._first.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(SYNC_WITHIN_S):
                for informer, _ in list(self._running.values()):
                    await informer.synced()

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            asks_due_s: list[float] = []
            while True:
                await self._ask(group)
                try:
                    async with asyncio.timeout(asks_due_s.pop(0) if asks_due_s else ASK_EVERY_S):
                        await self._definitions_changed.wait()
                except TimeoutError:
                    continue
                self._definitions_changed.clear()
                asks_due_s = list(ASK_AFTER_CHANGE_S)
                await asyncio.sleep(asks_due_s.pop(0))

    async def _ask(self, group: asyncio.TaskGroup) -> None:
        try:
            discovery = await discover(self._client)
        except ApplecartError as error:
            log.warning("cannot learn which kinds exist, following those that are known", because=str(error))
            return
        self._follow(discovery, group)
        self._discovered(discovery)
        self._first.set()

    def _follow(self, discovery: Discovery, group: asyncio.TaskGroup) -> None:
        wanted = followed(discovery)
        for label, (informer, task) in list(self._running.items()):
            resource = informer.kind.resource
            if wanted.get(label) != resource and not discovery.is_unknown(resource.group):
                task.cancel()
                del self._running[label]
                for obj in informer:
                    self._graph.drop(obj.uid)
        for label, resource in wanted.items():
            if label not in self._running:
                informer = Informer(self._client, metadata_kind(resource), tuning=self._tuning)
                informer.on_change(self._changed)
                self._running[label] = (informer, group.create_task(informer.run(), name=f"follow {label}"))

    def _changed(self, change: Change[PartialObject]) -> None:
        if change.new is not None:
            self._look_at(self._graph.observe(change.new))
        elif change.old is not None:
            self._look_at(self._graph.forget(change.old.uid))
        state = change.new or change.old
        if state is not None and state.resource.label in DEFINITIONS:
            self._definitions_changed.set()
