"""One process's controllers, and what all of them need, wired once (D11).

A controller asks it for informers (shared: one watch per kind and scope, however many read it), a recorder of Events and the
loop around its reconcile, which reads its own writes and is measured. With a Lease only one of several processes works: the
others keep their caches warm, and writes of one that lost the Lease without noticing are refused before they are sent.

Whatever runs here is started again when it raises or ends, after a while that grows, and the others never notice: it is logged,
counted (`applecart_task_restarts_total`) and told by `not_ready`. Knows nothing of what the controllers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from applecart.api.meta import Key, Object, Resource
from applecart.kube.backoff import Backoff, FailureBackoffs
from applecart.kube.cache import IndexFunction
from applecart.kube.client import Client
from applecart.kube.controller import DEADLINE_S, Controller, StrayCancellation, is_being_cancelled
from applecart.kube.election import Election
from applecart.kube.events import Recorder
from applecart.kube.informer import Handler, Informer, Tuning
from applecart.kube.metadata_only import MetadataClient, PartialObject
from applecart.kube.own_writes import OwnWrites
from applecart.kube.runtime_metrics import ControllerMetrics, ElectionMetrics, RecorderMetrics, measured_queue
from applecart.kube.transport import FencedTransport
from applecart.observe.ages import Ages
from applecart.observe.logs import logger
from applecart.observe.metrics import Family, Metrics

if TYPE_CHECKING:
    from prometheus_client import Gauge

H = TypeVar("H", bound=Hashable)
K = TypeVar("K", bound=Object)
Work = Callable[[], Awaitable[None]]

RESTART = Backoff(first_s=1.0, longest_s=60.0)  # a task fails as a whole only by a bug of ours: it must not become load
WELL_AFTER_S = 300.0  # one that ran so long is taken for well again
TASK_DOWN = "task down"  # the class of waiting in `Ages`

log = logger(__name__)


class Task(msgspec.Struct):
    """Something that runs until it is cancelled."""

    name: str
    work: Work
    down_because: str = ""
    running: asyncio.Task[None] | None = None


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
        self._election: Election | None = None
        self.client = client  # for what controllers write
        if lease is not None:
            observer = ElectionMetrics(self.metrics, str(lease))
            self._election = Election(client, lease, identity, self.clock, observer=observer)
            self.client = Client(FencedTransport(client.transport, self._election.is_leader), self.clock)
        self._informers: dict[tuple[type[Object], str, str, str], Informer[Any]] = {}
        self._recorders: dict[str, Recorder] = {}
        self._own_writes: list[OwnWrites] = []
        self._followers: dict[str, Task] = {}  # informers: they run whoever leads
        self._workers: dict[str, Task] = {}
        self._group: asyncio.TaskGroup | None = None
        self._restarts = self.metrics.counter("applecart_task_restarts_total", "Times a task failed or ended.", ["task"])

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
            self._informers[scope] = informer
            self._measure(informer)
            task = self._followers[_name_of(informer)] = Task(_name_of(informer), informer.run)
            if self._group is not None:
                self._start(self._group, task)
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
        if informer.off_change(handler) or not issubclass(informer.kind, PartialObject):
            return
        scope = next(scope for scope, known in self._informers.items() if known is informer)
        del self._informers[scope]
        task = self._followers.pop(_name_of(informer))
        if task.running is not None:
            task.running.cancel()
        for gauge in self._gauges():
            gauge.forget(informer.kind.resource.label, informer.scope)

    def recorder(self, component: str) -> Recorder:
        """Writes Events in the name of this component."""
        if component not in self._recorders:
            recorder = Recorder(self.client, component, self.clock, observer=RecorderMetrics(self.metrics, component))
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
        return controller

    def own_writes(self) -> OwnWrites:
        """For a loop that is no `Controller`."""
        self._own_writes.append(OwnWrites())
        return self._own_writes[-1]

    def background(self, name: str, work: Work) -> None:
        """Run this, while we lead, until the manager ends; again when it ends before."""
        if name in self._workers:
            raise ValueError(f"the manager runs a task {name!r} already; give this one a name of its own")
        self._workers[name] = Task(name, work)

    # Running

    async def run(self) -> None:
        """Everything, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for task in list(self._followers.values()):
                    self._start(group, task)
                if self._election is None:
                    group.create_task(self._work())
                else:
                    election = self._election
                    self._start(group, Task(f"election on {election.key}", lambda: election.lead(self._lead)))
        finally:
            self._group = None

    async def _lead(self) -> None:
        for own_writes in self._own_writes:
            own_writes.begin_term()
        await self._work()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            for task in self._workers.values():
                self._start(group, task)

    def _start(self, group: asyncio.TaskGroup, task: Task) -> None:
        self._restarts.of(task.name)  # from the start, so that an alert sees the first one
        task.running = group.create_task(self._keep_running(task), name=task.name)

    async def _keep_running(self, task: Task) -> None:
        failures = 0
        while True:
            began_s = self.clock.monotonic()
            problem: BaseException | None = None
            try:
                await task.work()
            except asyncio.CancelledError as error:
                if is_being_cancelled():
                    raise
                problem = StrayCancellation("it was cancelled from within")
                problem.__cause__ = error
            except Exception as error:
                problem = error
            failures = 1 if self.clock.monotonic() - began_s > WELL_AFTER_S else failures + 1
            wait_s = RESTART.wait_s(failures, self.clock.random)
            self._restarts.of(task.name).inc()
            task.down_because = f"{type(problem).__name__}: {problem}" if problem is not None else "it ended by itself"
            about = log.bind(task=task.name, failures=failures, again_in_s=round(wait_s, 1))
            about.error("a task of the manager ended, starting it again", exc_info=problem)
            with self.ages.during(TASK_DOWN, task.name):
                await asyncio.sleep(wait_s)
            task.down_because = ""

    # Telling

    def not_ready(self) -> str | None:
        """A sentence when a cache is not known to be up to date or a task is down, for the readiness page."""
        for task in self.tasks:
            if task.down_because:
                return f"{task.name} is down and will be started again: {task.down_because}"
        for informer in self._informers.values():
            if informer.trouble is not None:
                return f"{_name_of(informer)}: {informer.trouble.because}"
            if not informer.is_synced:
                return f"{_name_of(informer)}: the first list is not complete"
        return None

    @property
    def tasks(self) -> list[Task]:
        return [*self._followers.values(), *self._workers.values()]

    @property
    def recorders(self) -> list[str]:
        return list(self._recorders)

    @property
    def informers(self) -> list[Informer[Any]]:
        return list(self._informers.values())

    def _measure(self, informer: Informer[Any]) -> None:
        objects, behind = self._gauges()
        where = (informer.kind.resource.label, informer.scope)
        objects.of(*where).set_function(informer.__len__)
        behind.of(*where).set_function(informer.behind_s)

    def _gauges(self) -> tuple[Family[Gauge], Family[Gauge]]:
        labels = ["kind", "scope"]
        return (
            self.metrics.gauge("applecart_informer_objects", "Objects in memory.", labels),
            self.metrics.gauge(
                "applecart_informer_behind_seconds", "Since when the API cannot be followed, 0 if it can.", labels
            ),
        )


def _name_of(informer: Informer[Any]) -> str:
    return " ".join(filter(None, ("informer of", informer.kind.resource.label, informer.scope)))
