"""What a person sees of the runtime on its metrics page."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.core import ConfigMap
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Transient
from applecart.kube.client import Client
from applecart.kube.controller import DONE, WAIT, Controller, Outcome, Result, again_in
from applecart.kube.manager import Manager
from applecart.kube.runtime_metrics import ControllerMetrics, ElectionMetrics, RecorderMetrics, measured_queue
from applecart.kube.workqueue import WorkQueue
from applecart.observe.ages import Ages
from applecart.observe.metrics import Metrics
from tests.virtual_time import elapse


def value(metrics: Metrics, metric: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, labels)


async def test_a_queue_exports_depth_adds_waits_work_retries_and_ages(clock: Clock) -> None:
    metrics = Metrics()
    queue: WorkQueue[str] = measured_queue("pods", clock, metrics)
    queue.add("a")
    queue.add("b")
    queue.add_after("c", 100)
    await elapse(5)
    assert value(metrics, "workqueue_depth", name="pods") == 2
    assert value(metrics, "workqueue_delayed", name="pods") == 1
    assert value(metrics, "workqueue_oldest_waiting_seconds", name="pods") == 5
    await queue.get()
    await elapse(3)
    assert value(metrics, "workqueue_longest_running_processor_seconds", name="pods") == 3
    queue.retry("a", Transient("down"))
    queue.done("a")
    assert value(metrics, "workqueue_adds_total", name="pods") == 2
    assert value(metrics, "workqueue_queue_duration_seconds_sum", name="pods") == 5
    assert value(metrics, "workqueue_work_duration_seconds_sum", name="pods") == 3
    assert value(metrics, "workqueue_retries_total", name="pods", failure="transient") == 1


async def test_two_queues_share_the_families_and_not_the_numbers(clock: Clock) -> None:
    metrics = Metrics()
    pods: WorkQueue[str] = measured_queue("pods", clock, metrics)
    nodes: WorkQueue[str] = measured_queue("nodes", clock, metrics)
    pods.add("a")
    nodes.add("b")
    nodes.add("c")
    assert value(metrics, "workqueue_depth", name="pods") == 1
    assert value(metrics, "workqueue_depth", name="nodes") == 2


async def test_a_controller_exports_every_outcome_and_the_age_of_what_waits(clock: Clock) -> None:
    metrics = Metrics()
    ages = Ages(clock, metrics)
    queue: WorkQueue[str] = WorkQueue(clock)
    is_ready = False

    async def reconcile(key: str) -> Result:
        if key == "waits":
            return DONE if is_ready else WAIT
        if key == "fails":
            raise Transient("down")
        return again_in(timedelta(hours=1))

    observer = ControllerMetrics(metrics, "hosts", ages)
    task = asyncio.create_task(Controller("hosts", reconcile, queue, clock, observer=observer).run())
    for key in ("waits", "fails", "again"):
        queue.add(key)
    await elapse(300)
    assert value(metrics, "controller_runtime_reconcile_total", controller="hosts", result="wait") == 1
    assert value(metrics, "controller_runtime_reconcile_total", controller="hosts", result="again") == 1
    failures = value(metrics, "controller_runtime_reconcile_total", controller="hosts", result="transient")
    assert failures is not None
    assert failures > 3
    assert value(metrics, "applecart_wait_oldest_seconds", wait="hosts-event") == 300
    assert value(metrics, "applecart_wait_oldest_seconds", wait="hosts-retry") == 300
    is_ready = True
    queue.add("waits")
    await elapse(1)
    assert value(metrics, "applecart_wait_count", wait="hosts-event") == 0
    task.cancel()
    await asyncio.wait({task})


async def test_the_age_of_a_key_goes_on_from_attempt_to_attempt(clock: Clock) -> None:
    """A key that could do nothing for a day, with a hiccup every ten minutes, never showed more than ten minutes."""
    metrics = Metrics()
    observer = ControllerMetrics(metrics, "hosts", Ages(clock, metrics))
    for outcome in (Outcome.WAIT, Outcome.TRANSIENT, Outcome.WAIT, Outcome.CONFLICT) * 3:
        observer.reconciled("mac", outcome, 0.0)
        await elapse(600)
    assert value(metrics, "applecart_wait_oldest_seconds", wait="hosts-retry") == 7200
    assert value(metrics, "applecart_wait_count", wait="hosts-event") == 0
    observer.reconciled("mac", Outcome.DONE, 0.0)
    observer.reconciled("mac", Outcome.WAIT, 0.0)
    assert value(metrics, "applecart_wait_oldest_seconds", wait="hosts-event") == 0


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.AGAIN])
async def test_a_key_that_looks_again_by_itself_waits_for_nobody(clock: Clock, outcome: Outcome) -> None:
    metrics = Metrics()
    observer = ControllerMetrics(metrics, "hosts", Ages(clock, metrics))
    for before in (Outcome.WAIT, Outcome.TRANSIENT):
        observer.reconciled("mac", before, 0.0)
        observer.reconciled("mac", outcome, 0.0)
        assert value(metrics, "applecart_wait_count", wait="hosts-event") == 0
        assert value(metrics, "applecart_wait_count", wait="hosts-retry") == 0


async def test_where_nobody_works_nothing_waits(clock: Clock) -> None:
    """A standby exported the age of what another process had done long ago."""
    metrics = Metrics()
    queue: WorkQueue[str] = measured_queue("hosts", clock, metrics)

    async def fails(key: str) -> Result:
        raise Transient("down")

    controller = Controller("hosts", fails, queue, clock, observer=ControllerMetrics(metrics, "hosts", Ages(clock, metrics)))
    queue.add("before it ever worked")
    await elapse(100)
    ages = [("workqueue_oldest_waiting_seconds", {"name": "hosts"}), ("applecart_wait_oldest_seconds", {"wait": "hosts-retry"})]
    assert value(metrics, *ages[0][:1], **ages[0][1]) == 0
    for _ in range(2):
        task = asyncio.create_task(controller.run())
        await elapse(50)
        assert value(metrics, "applecart_wait_oldest_seconds", wait="hosts-retry") == 50
        task.cancel()
        await asyncio.wait({task})
        queue.add("afterwards")
        await elapse(1000)
        assert [value(metrics, name, **labels) for name, labels in ages] == [0, 0]


def test_an_election_exports_who_leads_and_how_often_it_changed() -> None:
    metrics = Metrics()
    election = ElectionMetrics(metrics, "provider")
    election.took_over()
    election.leading(True)
    assert value(metrics, "leader_election_master_status", name="provider") == 1
    election.leading(False)
    assert value(metrics, "leader_election_master_status", name="provider") == 0
    assert value(metrics, "leader_election_taken_total", name="provider") == 1


def test_a_recorder_exports_what_became_of_its_events() -> None:
    metrics = Metrics()
    recorder = RecorderMetrics(metrics, "kubelet")
    recorder.recorded("written")
    recorder.recorded("dropped")
    recorder.recorded("dropped")
    assert value(metrics, "applecart_events_total", component="kubelet", outcome="dropped") == 2


def test_a_recorder_that_dropped_nothing_says_so() -> None:
    """An alert on an increase does not see a series that begins with its first Event."""
    metrics = Metrics()
    RecorderMetrics(metrics, "hosts")
    assert value(metrics, "applecart_events_total", component="hosts", outcome="dropped") == 0


async def test_the_page_of_commands_names_every_metric(running: RunningApi, clock: Clock) -> None:
    """Only what counts objects and waits was written down, so nobody could make an alert of the others."""
    manager = Manager(Client(running.transport(), clock))
    ElectionMetrics(manager.metrics, "provider")
    manager.informer(ConfigMap)
    manager.recorder("kubelet")
    manager.controller("hosts", lambda _: asyncio.sleep(0))
    page = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()
    for family in manager.metrics.registry.collect():
        assert f"`{family.name}{'_total' * (family.type == 'counter')}`" in page or family.name == "applecart_wait_untracked"
