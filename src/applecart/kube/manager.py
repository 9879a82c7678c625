"""One process's controllers, and what all of them need, wired once (D11).

A controller asks it for informers (shared: one watch per kind and scope, however many read it), a recorder of Events and the
loop around its reconcile, which reads its own writes and is measured. With a Lease only one of several processes works: the
others keep their caches warm, and writes of one that lost the Lease without noticing are refused before they are sent.

Whatever runs here goes on, or says why not (`background.py`), also by `not_ready`. Knows nothing of what the controllers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from copy import copy
from typing import Any, TypeVar

from applecart.api.meta import Key, Object, Resource
from applecart.kube.background import TASK_DOWN, Background, Task, Work
from applecart.kube.backoff import FailureBackoffs
from applecart.kube.cache import IndexFunction
from applecart.kube.client import Client
from applecart.kube.controller import DEADLINE_S, Controller
from applecart.kube.election import Election
from applecart.kube.events import Recorder
from applecart.kube.informer import Handler, Informer, Tuning
from applecart.kube.metadata_only import MetadataClient, PartialObject
from applecart.kube.own_writes import OwnWrites
from applecart.kube.runtime_metrics import (
    ControllerMetrics,
    ElectionMetrics,
    InformerMetrics,
    RecorderMetrics,
    kind_label,
    measured_queue,
)
from applecart.kube.transport import FencedTransport
from applecart.observe.ages import Ages
from applecart.observe.metrics import Metrics

H = TypeVar("H", bound=Hashable)
K = TypeVar("K", bound=Object)


class Manager:
    def __init__(
        self,
        client: Client,
        *,
        metrics: Metrics | None = None,
        ages: Ages | None = None,
        lease: Key | None = None,
        identity: str = "",
        tuning: Tuning = Tuning(),  # noqa: B008 (frozen)
    ) -> None:
        """`lease`: only who holds it works; `identity` is then a name that no other process has."""
        self.clock = client.clock
        self.metrics = metrics or Metrics()
        self.ages = ages or Ages(self.clock, self.metrics, waits=(TASK_DOWN,))
        self._reader = client
        self._tuning = tuning
        self.client = client  # for what controllers write
        self._informers: dict[tuple[type[Object], str, str, str], Informer[Any]] = {}
        self._recorders: dict[str, Recorder] = {}
        self._own_writes: list[OwnWrites] = []
        self._controllers: list[Controller[Any]] = []
        self._followers = Background(self.clock, self.metrics, self.ages)  # informers: they run whoever leads
        self._workers = Background(self.clock, self.metrics, self.ages)
        self._election: Election | None = None
        if lease is not None:
            observer = ElectionMetrics(self.metrics, str(lease))
            self._election = election = Election(client, lease, identity, self.clock, observer=observer)
            self.client = copy(client)  # as patient as the given one
            self.client.transport = FencedTransport(client.transport, election.is_leader)
            self._followers.add(f"election on {lease}", lambda: election.lead(self._lead))

    # What a controller asks for

    def informer(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, IndexFunction[K]] | None = None,
    ) -> Informer[K]:
        """The informer of this kind and scope: the same one for everybody who asks. Runs as long as the manager does."""
        scope = (kind, namespace, labels, fields)
        informer = self._informers.get(scope)
        if informer is None:
            reader = MetadataClient.of(self._reader) if issubclass(kind, PartialObject) else self._reader
            informer = Informer(reader, kind, namespace, labels=labels, fields=fields, tuning=self._tuning)
            self._followers.add(_name_of(informer), informer.run)
            self._informers[scope] = informer
            InformerMetrics(self.metrics).follow(informer)
        for name, function in (indexes or {}).items():
            informer.add_index(name, function)
        return informer

    def informer_of_all(self, resource: Resource) -> Informer[Any] | None:
        """One that follows all objects of a resource whole, if somebody asked for it."""
        return next(
            (one for (kind, *scope), one in self._informers.items() if kind.resource == resource and not any(scope)), None
        )

    def drop(self, informer: Informer[K], handler: Handler[K]) -> None:
        """This handler hears no more of it; one of metadata ends when nobody listens. For kinds that come and go."""
        is_heard = informer.off_change(handler) or any(own_writes.reads(informer) for own_writes in self._own_writes)
        if is_heard or not issubclass(informer.kind, PartialObject):
            return
        scope = next(scope for scope, known in self._informers.items() if known is informer)
        del self._informers[scope]
        self._followers.drop(_name_of(informer))
        InformerMetrics(self.metrics).forget(informer)

    def recorder(self, component: str) -> Recorder:
        """Writes Events in the name of this component."""
        if component not in self._recorders:
            observer = RecorderMetrics(self.metrics, component)
            recorder = Recorder(self.client, component, self.clock, observer=observer)
            observer.follow(recorder)
            self._recorders[component] = recorder
            self.background(f"events of {component}", recorder.run)
        return self._recorders[component]

    def controller(
        self,
        name: str,
        reconcile: Callable[[H], Awaitable[Any]],
        *,
        workers: int = 1,
        deadline_s: float = DEADLINE_S,
        backoffs: FailureBackoffs = FailureBackoffs(),  # noqa: B008 (frozen)
        after: Work | None = None,
    ) -> Controller[H]:
        """The loop around a reconcile, with a queue of its own; `after` is awaited before the first key."""
        controller: Controller[H] = Controller(
            name,
            reconcile,
            measured_queue(name, self.clock, self.metrics, backoffs=backoffs),
            self.clock,
            workers=workers,
            deadline_s=deadline_s,
            observer=ControllerMetrics(self.metrics, name, self.ages),
            own_writes=self.own_writes(),
        )

        async def run() -> None:
            if after is not None:
                await after()
            await controller.run()

        self.background(name, run)
        self._controllers.append(controller)
        return controller

    def own_writes(self) -> OwnWrites:
        """For a loop that is no `Controller`."""
        self._own_writes.append(OwnWrites())
        return self._own_writes[-1]

    def background(self, name: str, work: Work) -> None:
        """Run this, while we lead, until the manager ends; again when it ends before."""
        self._workers.add(name, work)

    # Running

    async def run(self) -> None:
        """Everything, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._followers.run())
            if self._election is None:
                group.create_task(self._workers.run())

    async def _lead(self) -> None:
        for own_writes in self._own_writes:
            own_writes.begin_term()
        await self._workers.run()

    # Telling

    def not_ready(self) -> str | None:
        """A sentence for the readiness page: a task is down, a reconcile does not end, a cache may not be up to date."""
        if down := self._followers.down() or self._workers.down():
            return down
        if self._election is not None and self._election.complaint:
            return f"nobody knows who holds Lease {self._election.key}: {self._election.complaint}"
        if stuck := next(filter(None, (controller.stuck() for controller in self._controllers)), None):
            return stuck
        for informer in self._informers.values():
            if informer.trouble is not None:
                return f"{_name_of(informer)}: {informer.trouble.because}"
            if not informer.is_synced:
                return f"{_name_of(informer)}: the first list is not complete"
        return None

    @property
    def tasks(self) -> list[Task]:
        return [*self._followers.tasks, *self._workers.tasks]

    @property
    def informers(self) -> list[Informer[Any]]:
        return list(self._informers.values())


def _name_of(informer: Informer[Any]) -> str:
    return " ".join(filter(None, ("informer of", kind_label(informer), informer.scope)))
