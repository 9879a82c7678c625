"""What the status of a disruption budget says; scenarios show it beside the real controller's."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from applecart.api.meta import Key, LabelSelector, ObjectMeta, OwnerReference
from applecart.api.pods import Eviction, Pod, PodCondition
from applecart.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from applecart.api.runners import RunnerPool, RunnerPoolSpec
from applecart.clock import EPOCH, Clock
from applecart.embedded.controllers.disruption_budgets import (
    DELETED_WITHIN,
    SELECTED_AT_ONCE,
    WORKERS,
    DisruptionBudgets,
    selects,
    status_now,
    status_unknown,
    wanted,
)
from applecart.kube.client import Client
from applecart.kube.codec import encode_object
from applecart.kube.errors import AlreadyExists
from applecart.kube.patch import Merge, Strategic
from applecart.kube.paths import object_path
from applecart.kube.transport import Request
from tests.embedded.controllers.budget_scenarios import POOLS
from tests.embedded.controllers.pods import pod, store
from tests.embedded.controllers.stages import run_alone
from tests.kube.faults import FaultyTransport, Says, Slow
from tests.turns import Turns
from tests.virtual_time import elapse

META = ObjectMeta(name="budget", namespace="default", generation=3)


def budget(**status: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget(metadata=META, status=PodDisruptionBudgetStatus(**status))


def ready(name: str, *, is_going: bool = False) -> Pod:
    made = pod(name, deleted_at=EPOCH if is_going else None)
    status = msgspec.structs.replace(made.status, conditions=(PodCondition(type="Ready", status="True"),))
    return msgspec.structs.replace(made, status=status)


@pytest.mark.parametrize(
    ("least", "most", "numbers"),
    [
        (None, None, (0, 0)),
        (2, None, (4, 2)),
        ("50%", None, (5, 3)),
        ("100%", None, (5, 5)),
        (None, 1, (5, 4)),
        (None, 9, (5, 0)),
        (None, "30%", (5, 3)),
        (None, 0, (5, 5)),
    ],
)
def test_how_many_pods_there_should_be_and_how_many_healthy(
    least: int | str | None, most: int | str | None, numbers: tuple[int, int]
) -> None:
    assert wanted(PodDisruptionBudgetSpec(min_available=least, max_unavailable=most), present=4, scale=5) == numbers


def test_a_pod_that_was_evicted_or_goes_is_not_healthy() -> None:
    known = budget(disrupted_pods={"evicted": EPOCH, "going": EPOCH, "gone": EPOCH})
    pods = [ready("stays"), ready("evicted"), ready("going", is_going=True)]
    status = status_now(known, pods, 3, 1, EPOCH)
    assert (status.current_healthy, status.disruptions_allowed) == (1, 0)
    assert set(status.disrupted_pods) == {"evicted"}


def test_a_pod_whose_eviction_came_to_nothing_counts_again() -> None:
    known = budget(disrupted_pods={"evicted": EPOCH})
    status = status_now(known, [ready("evicted")], 1, 0, EPOCH + DELETED_WITHIN)
    assert (status.current_healthy, status.disruptions_allowed, status.disrupted_pods) == (1, 1, {})


def test_nothing_may_go_before_the_first_pod_is_there() -> None:
    assert status_now(budget(), [], 0, 0, EPOCH).disruptions_allowed == 0
    assert status_now(budget(), [ready("of nobody")], 0, 0, EPOCH).disruptions_allowed == 0


def test_what_was_said_already_is_not_written_again() -> None:
    first = status_now(budget(), [ready("one")], 1, 0, EPOCH)
    again = status_now(budget(**msgspec.structs.asdict(first)), [ready("one")], 1, 0, EPOCH + timedelta(hours=1))
    assert again == first
    failed = status_unknown(budget(**msgspec.structs.asdict(first)), "no scale", EPOCH)
    assert (failed.disruptions_allowed, failed.current_healthy, failed.conditions[0].message) == (0, 1, "no scale")


def test_a_budget_without_a_selector_selects_nothing() -> None:
    assert not selects(budget(), {})
    everything = msgspec.structs.replace(budget(), spec=PodDisruptionBudgetSpec(selector=LabelSelector()))
    assert selects(everything, {})


async def test_evictions_that_come_to_nothing_are_given_back_in_time(network: FaultyTransport, clock: Clock) -> None:
    """An eviction may be counted and the Pod stay, because its deletion failed: nobody tells the controller so."""
    client = Client(network, clock)
    await store(client, pod("one"))
    is_ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch_status(Pod, Key("default", "one"), Strategic(is_ready))
    spec = PodDisruptionBudgetSpec(min_available=0, selector=LabelSelector())
    made = await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="budget", namespace="default"), spec=spec))
    task = asyncio.create_task(run_alone(DisruptionBudgets, client))
    await elapse(1)
    assert (await client.get(PodDisruptionBudget, made.key)).status.disruptions_allowed == 1
    spent = {"status": {"disruptedPods": {"one": f"{clock.now():%Y-%m-%dT%H:%M:%SZ}"}, "disruptionsAllowed": 0}}
    await client.patch_status(PodDisruptionBudget, made.key, Merge(spent))
    await elapse(DELETED_WITHIN.total_seconds() - 5)
    assert (await client.get(PodDisruptionBudget, made.key)).status.disruptions_allowed == 0
    await elapse(10)
    assert (await client.get(PodDisruptionBudget, made.key)).status.disruptions_allowed == 1
    task.cancel()
    await asyncio.wait([task])


async def test_only_the_owner_itself_says_how_many_pods_there_should_be(network: FaultyTransport, clock: Clock) -> None:
    """Not an object that took its name; and while nobody says it, nothing may go."""
    client = Client(network, clock)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await client.call(Request("POST", path, body=msgspec.json.encode(POOLS)))
    await elapse(1)
    owner = OwnerReference(api_version="tuist.dev/v1alpha1", kind="RunnerPool", name="pool", uid="gone", controller=True)
    metadata = ObjectMeta(name="one", namespace="default", owner_references=(owner,))
    await client.create(msgspec.structs.replace(pod("one"), metadata=metadata))
    spec = PodDisruptionBudgetSpec(max_unavailable=1, selector=LabelSelector())
    made = await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="budget", namespace="default"), spec=spec))
    task = asyncio.create_task(run_alone(DisruptionBudgets, client))
    for _ in range(2):
        await elapse(1)
        status = (await client.get(PodDisruptionBudget, made.key)).status
        assert [one.message for one in status.conditions] == ['found no controllers for pod "one"']
        assert status.disruptions_allowed == 0
        pool = RunnerPoolSpec(image="image", fleet_selector="fleet", dispatch_label="mac", runner_labels=("mac",), replicas=5)
        with suppress(AlreadyExists):
            await client.create(RunnerPool(metadata=ObjectMeta(name="pool", namespace="default"), spec=pool))
        await client.patch(Pod, Key("default", "one"), Merge({"metadata": {"labels": {"looked": "at"}}}))
    task.cancel()
    await asyncio.wait([task])


async def test_an_api_in_trouble_is_asked_again_and_what_is_said_already_is_written_once(
    network: FaultyTransport, clock: Clock
) -> None:
    client = Client(network, clock)
    owner = OwnerReference(api_version="tuist.dev/v1alpha1", kind="RunnerPool", name="pool", uid="gone", controller=True)
    metadata = ObjectMeta(name="one", namespace="default", owner_references=(owner,))
    await client.create(msgspec.structs.replace(pod("one"), metadata=metadata))
    spec = PodDisruptionBudgetSpec(max_unavailable=1, selector=LabelSelector())
    made = await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="budget", namespace="default"), spec=spec))
    network.plan = lambda request: Says(500) if request.path == "/apis" else None
    task = asyncio.create_task(run_alone(DisruptionBudgets, client))
    await elapse(120)
    network.heal()
    await elapse(600)
    status = (await client.get(PodDisruptionBudget, made.key)).status
    assert "no matches for kind" in status.conditions[0].message
    written = sum("budgets" in call.path and call.method == "PATCH" for call in network.calls)
    for turn in range(3):
        await client.patch(Pod, Key("default", "one"), Merge({"metadata": {"labels": {"turn": str(turn)}}}))
        await elapse(1)
    assert sum("budgets" in call.path and call.method == "PATCH" for call in network.calls) == written
    task.cancel()
    await asyncio.wait([task])


async def test_an_eviction_under_way_is_not_forgotten_by_a_write_that_was_decided_before_it(
    network: FaultyTransport, clock: Clock
) -> None:
    """The controller's write arrives late: it must not give back what an eviction has taken meanwhile."""
    client = Client(network, clock)
    condition = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    for name in ("one", "two"):
        await store(client, pod(name))
        await client.patch_status(Pod, Key("default", name), Strategic(condition))
    spec = PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector())
    made = await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="budget", namespace="default"), spec=spec))
    task = asyncio.create_task(run_alone(DisruptionBudgets, client))
    await elapse(1)
    assert (await client.get(PodDisruptionBudget, made.key)).status.disruptions_allowed == 1
    network.plan = lambda request: Slow(10) if "poddisruptionbudgets" in request.path and request.method == "PATCH" else None
    await store(client, pod("three"))  # not ready: more are expected, and as many may go
    await elapse(5)

    async def evict(name: str) -> int:
        body = encode_object(Eviction(metadata=ObjectMeta(name=name, namespace="default")))
        path = object_path(Pod.resource, Key("default", name), "eviction")
        return (await network.send(Request("POST", path, body=body))).status

    assert await evict("one") == 201
    await elapse(6)
    assert await evict("two") == 429
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("many", ["budgets", "pods"])
async def test_others_get_a_turn_after_every_few_selectors(
    many: str, network: FaultyTransport, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 600 budgets of 95 requirements each change of a Pod kept everybody waiting for 111 ms."""
    client = Client(network, clock)
    task = asyncio.create_task(run_alone(DisruptionBudgets, client))
    count = (WORKERS + 2) * SELECTED_AT_ONCE
    spec = PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector(match_labels={"chosen": "yes"}))
    for number in range(count if many == "budgets" else 1):
        metadata = ObjectMeta(name=f"budget-{number}", namespace="default")
        await client.create(PodDisruptionBudget(metadata=metadata, spec=spec))
    for number in range(count if many == "pods" else 1):
        await store(client, pod(f"pod-{number}"))
    await elapse(1)
    turns = Turns()
    turns.count(monkeypatch, LabelSelector, "selects")
    await client.patch(Pod, Key("default", "pod-0"), Merge({"metadata": {"labels": {"chosen": "yes"}}}))
    await elapse(1)
    assert turns.calls >= count
    assert turns.most <= (WORKERS + 1) * SELECTED_AT_ONCE  # in one turn of each worker
    status = (await client.get(PodDisruptionBudget, Key("default", "budget-0"))).status
    assert (status.desired_healthy, status.expected_pods) == (1, 1)
    task.cancel()
    await asyncio.wait([task])
