"""What informers, queues, controllers, elections and recorders export.

The names are those of client-go and controller-runtime where they have one, so that dashboards and alerts made for any other
controller show ours too. Numbers that grow while nothing happens (depth, ages) are computed when they are read.
"""

from collections.abc import Hashable
from typing import Any, TypeVar

from applecart.clock import Clock
from applecart.kube.backoff import Failure, FailureBackoffs
from applecart.kube.controller import Outcome
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer
from applecart.kube.metadata_only import PartialObject
from applecart.kube.workqueue import WorkQueue
from applecart.observe.ages import MOST_TRACKED, Ages, Waiting
from applecart.observe.metrics import Metrics

H = TypeVar("H", bound=Hashable)


def kind_label(informer: Informer[Any]) -> str:
    """The kind that is in memory: a whole one and its metadata alone are two, also in one scope."""
    label = informer.kind.resource.label
    return f"metadata of {label}" if issubclass(informer.kind, PartialObject) else label


class InformerMetrics:
    def __init__(self, metrics: Metrics) -> None:
        labels = ["kind", "scope"]
        self._objects = metrics.gauge("applecart_informer_objects", "Objects in memory.", labels)
        help = "For how long the API is not known to be followed, 0 if it is."
        self._behind = metrics.gauge("applecart_informer_behind_seconds", help, labels)
        help = "Objects of whose changes a handler has not heard, because it failed on them."
        self._untold = metrics.gauge("applecart_informer_untold_objects", help, labels)

    def follow(self, informer: Informer[Any]) -> None:
        """Export what the informer looks like at the moment somebody reads."""
        where = (kind_label(informer), informer.scope)
        self._objects.of(*where).set_function(informer.__len__)
        self._behind.of(*where).set_function(informer.behind_s)
        self._untold.of(*where).set_function(lambda: informer.untold_count)

    def forget(self, informer: Informer[Any]) -> None:
        for gauge in (self._objects, self._behind, self._untold):
            gauge.forget(kind_label(informer), informer.scope)


class QueueMetrics:
    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics = metrics
        self._name = name
        self._adds = metrics.counter("workqueue_adds_total", "Wishes for work.", ["name"]).of(name)
        self._waited = metrics.histogram("workqueue_queue_duration_seconds", "How long a key waited.", ["name"]).of(name)
        self._worked = metrics.histogram("workqueue_work_duration_seconds", "How long a key was worked on.", ["name"]).of(name)
        self._retries = metrics.counter("workqueue_retries_total", "Retries, by kind of failure.", ["name", "failure"])

    def follow(self, queue: WorkQueue[H]) -> None:
        """Export what the queue looks like at the moment somebody reads."""
        for gauge, help, read in (
            ("workqueue_depth", "Keys that are ready.", lambda: len(queue)),
            ("workqueue_delayed", "Keys that wait for their time.", lambda: queue.delayed_count),
            ("workqueue_oldest_waiting_seconds", "Age of the key that is ready for longest.", queue.oldest_waiting_s),
            ("workqueue_longest_running_processor_seconds", "Age of the longest work.", queue.longest_running_s),
        ):
            self._metrics.gauge(gauge, help, ["name"]).of(self._name).set_function(read)

    def added(self) -> None:
        self._adds.inc()

    def started(self, waited_s: float) -> None:
        self._waited.observe(waited_s)

    def finished(self, worked_s: float) -> None:
        self._worked.observe(worked_s)

    def retried(self, failure: Failure) -> None:
        self._retries.of(self._name, failure).inc()


class ControllerMetrics:
    """Counts outcomes, and keeps the ages of keys that wait for somebody else or for their next attempt (I10)."""

    def __init__(self, metrics: Metrics, name: str, ages: Ages | None = None) -> None:
        self._name = name
        self._ages = ages
        self._for_event, self._for_retry = f"{name}-event", f"{name}-retry"
        self._waited_at_stop: list[Waiting] = []
        self._total = metrics.counter("controller_runtime_reconcile_total", "Reconciles.", ["controller", "result"])
        self._time = metrics.histogram("controller_runtime_reconcile_time_seconds", "Their time.", ["controller"]).of(name)

    def reconciled(self, key: Hashable, outcome: Outcome, took_s: float) -> None:
        self._total.of(self._name, outcome).inc()
        self._time.observe(took_s)
        if self._ages is None:
            return
        if outcome in (Outcome.DONE, Outcome.AGAIN):
            self._ages.done(self._for_event, key)
            self._ages.done(self._for_retry, key)
        elif outcome is Outcome.WAIT:  # a failure meanwhile is no new beginning, nor is a wait between two failures
            self._ages.waiting(self._for_event, key, instead_of=self._for_retry)
        else:
            self._ages.waiting(self._for_retry, key, instead_of=self._for_event)

    def started(self) -> None:
        """What waited when it was stopped is still queued. It waits from now on: somebody else may have worked until now."""
        if self._ages is not None:
            for one in self._waited_at_stop:
                self._ages.waiting(one.wait, one.key)
        self._waited_at_stop = []

    def stopped(self) -> None:
        """Here nothing waits any more; elsewhere it may."""
        if self._ages is not None:
            for wait in (self._for_event, self._for_retry):
                self._waited_at_stop += self._ages.oldest(MOST_TRACKED, wait)
                self._ages.clear(wait)


class ElectionMetrics:
    def __init__(self, metrics: Metrics, name: str) -> None:
        self._status = metrics.gauge("leader_election_master_status", "1 while this process leads.", ["name"]).of(name)
        self._taken = metrics.counter("leader_election_taken_total", "Times this process took the lease.", ["name"]).of(name)

    def leading(self, is_leader: bool) -> None:
        self._status.set(is_leader)

    def took_over(self) -> None:
        self._taken.inc()


class RecorderMetrics:
    def __init__(self, metrics: Metrics, component: str) -> None:
        self._component = component
        self._waiting = metrics.gauge("applecart_events_waiting", "Events that are not written yet.", ["component"])
        self._events = metrics.counter("applecart_events_total", "Events written, limited, dropped.", ["component", "outcome"])
        self._events.of(component, "dropped")  # from the start, so that an alert sees the first one

    def follow(self, recorder: Recorder) -> None:
        self._waiting.of(self._component).set_function(lambda: recorder.waiting_count)

    def recorded(self, outcome: str) -> None:
        self._events.of(self._component, outcome).inc()


def measured_queue(name: str, clock: Clock, metrics: Metrics, *, backoffs: FailureBackoffs = FailureBackoffs()) -> WorkQueue[H]:  # noqa: B008
    """A queue that exports everything about itself."""
    observer = QueueMetrics(metrics, name)
    queue: WorkQueue[H] = WorkQueue(clock, backoffs=backoffs, observer=observer)
    observer.follow(queue)
    return queue
