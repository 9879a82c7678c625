"""Pods of lost Nodes are freed by whoever sweeps, under the revision that was judged, and nobody else's Pod is touched."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED, UNKNOWN, Pod
from applecart.clock import EPOCH, Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Unreachable
from applecart.kube.client import Client
from applecart.kube.errors import Details, Forbidden, NotFound, Status
from applecart.kube.patch import Merge
from applecart.kube.stuck_pods import (
    AGENT_PATIENCE,
    ATTEMPTS,
    QUARANTINE_S,
    RELEASED_METRIC,
    STUCK,
    SWEEP_EVERY_S,
    Cause,
    Keep,
    ReleaseOutcome,
    Sweep,
    Unstick,
    confirmed_gone,
    judge,
    plan_unstick,
    release,
    release_all,
    suspected_nodes,
)
from applecart.kube.transport import Request
from applecart.observe.ages import Ages
from applecart.observe.metrics import Metrics
from tests.kube.backends import Backend
from tests.kube.faults import FaultyTransport, Says, always
from tests.kube.stuck import THEIRS, Between, add_node, at_path, held_pod, let_go, names_in, store, store_many
from tests.virtual_time import elapse

NOW = EPOCH
GONE = frozenset({"mac-gone"})
PHASES = (PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN, "")

HOW_MANY = 504  # as many as once were stuck


async def test_a_pod_that_ended_after_its_deletion_goes_although_its_grace_period_was_never_ended(api: Backend) -> None:
    """Incident 14: taking the finalizer off left the object, which kept its port and its place in a spread."""
    client, key = api.client, Key(api.namespace, "runner")
    stuck = await store(client, "runner", namespace=api.namespace, phase="Failed", ends_late=True)
    assert stuck.metadata.deletion_grace_period_seconds
    (step,) = plan_unstick([stuck], {"mac-1"}, client.clock.now())
    outcome = await release(client, step, partial(judge, gone={"mac-1"}, now=client.clock.now()))
    assert outcome.released
    with pytest.raises(NotFound):
        await client.get(Pod, key)


async def one_step(running: RunningApi, clock: Clock, happens: Callable[[Request], object], **pod: object) -> ReleaseOutcome:
    """Release one Pod of a lost Node while something else happens to it."""
    client = Client(running.transport(), clock)
    stuck = await store(client, "runner", on="mac-gone", **pod)  # type: ignore[arg-type]
    gone = frozenset({"mac-gone"})
    (step,) = plan_unstick([stuck], gone, clock.now())
    again = partial(judge, gone=gone, now=clock.now())
    return await release(Client(Between(running.transport(), happens), clock), step, again)


async def test_a_finalizer_that_somebody_adds_meanwhile_survives(running: RunningApi, clock: Clock) -> None:
    client, key = Client(running.transport(), clock), Key("test", "runner")
    times = iter([True])

    async def is_claimed(request: Request) -> None:
        if request.method == "PATCH" and next(times, False):
            await client.patch(Pod, key, Merge({"metadata": {"finalizers": [THEIRS, VM_CLEANUP]}}))

    # An object on its way out takes no new finalizer, so theirs is there from the start and only moves.
    outcome = await one_step(running, clock, is_claimed, finalizers=(VM_CLEANUP, THEIRS))
    assert outcome.released
    assert outcome.held_by == (THEIRS,)
    assert (await client.get(Pod, key)).metadata.finalizers == (THEIRS,)


async def test_a_successor_of_the_same_name_keeps_its_finalizer(running: RunningApi, clock: Clock) -> None:
    client, key = Client(running.transport(), clock), Key("test", "runner")
    times = iter([True])

    async def is_replaced(request: Request) -> None:
        if request.method == "PATCH" and next(times, False):
            await client.patch(Pod, key, Merge({"metadata": {"finalizers": None}}))
            await store(client, "runner", on="mac-gone", phase="Running", deleted=False)

    assert (await one_step(running, clock, is_replaced)).released  # the one that was judged is gone
    assert (await client.get(Pod, key)).metadata.finalizers == (VM_CLEANUP,)


async def test_a_pod_that_the_agent_frees_first_is_no_failure(running: RunningApi, clock: Clock) -> None:
    client, key = Client(running.transport(), clock), Key("test", "runner")

    async def is_freed(request: Request) -> None:
        if request.method == "PATCH":
            await client.patch(Pod, key, Merge({"metadata": {"finalizers": None}}))

    assert (await one_step(running, clock, is_freed)).released


async def test_a_pod_that_never_rests_is_left_for_the_next_look(running: RunningApi, clock: Clock) -> None:
    client, key = Client(running.transport(), clock), Key("test", "runner")
    wrote = 0

    async def is_written(request: Request) -> None:
        nonlocal wrote
        if request.method == "PATCH":
            wrote += 1
            await client.patch(Pod, key, Merge({"metadata": {"annotations": {"n": str(wrote)}}}))

    outcome = await one_step(running, clock, is_written)
    assert (outcome.released, outcome.because) == (False, "it keeps changing")
    assert wrote == ATTEMPTS
    assert (await client.get(Pod, key)).metadata.finalizers == (VM_CLEANUP,)


async def test_one_pod_that_cannot_be_freed_keeps_no_other_from_it(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    gone = frozenset({"mac-gone"})
    stuck = [await store(client, name, on="mac-gone") for name in ("a", "b", "c")]
    faulty = Client(FaultyTransport(running.transport(), at_path("/pods/b", Says(403))), clock)
    heard: list[ReleaseOutcome] = []
    again = partial(judge, gone=gone, now=clock.now())
    outcomes = await release_all(faulty, plan_unstick(stuck, gone, clock.now()), again, told=heard.append)
    assert [outcome.released for outcome in outcomes] == [True, False, True]
    assert "403" in outcomes[1].because
    assert sorted(heard, key=lambda outcome: outcome.key) == outcomes
    assert await names_in(client) == {"b"}


@pytest.mark.parametrize("phase", PHASES)
def test_a_pod_whose_node_is_gone_qualifies_whatever_its_phase(phase: str) -> None:
    """Weakness 17: four Pods stayed Terminating for a day because only the agent of a Node that was deleted could free them."""
    verdict = judge(held_pod(on="mac-gone", phase=phase), GONE, NOW)
    assert isinstance(verdict, Unstick)
    assert verdict.cause is Cause.NODE_GONE
    assert verdict.because == "its Node mac-gone does not exist"


def test_a_pod_that_never_had_a_node_qualifies() -> None:
    verdict = judge(held_pod(on="", phase=PENDING), frozenset(), NOW)
    assert isinstance(verdict, Unstick)
    assert verdict.cause is Cause.NEVER_PLACED


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED])
def test_a_pod_that_ended_on_a_living_node_qualifies_when_asked_for_and_only_after_the_agents_time(phase: str) -> None:
    """Incident 1: 504 Pods that had ended kept the finalizer for days, because their agents had stopped looking at them."""
    patience_s = AGENT_PATIENCE.total_seconds()
    late, early = (held_pod(phase=phase, deleted_s_ago=patience_s + more_s) for more_s in (1, 0))
    verdict = judge(late, GONE, NOW, finished_too=True)
    assert isinstance(verdict, Unstick)
    assert verdict.because == f"it is {phase}, and the agent of Node mac-1 did not let it go"
    assert judge(early, GONE, NOW, finished_too=True) == Keep(early, "the agent of Node mac-1 still has time to let it go")
    assert judge(late, GONE, NOW) == Keep(late, "the agent of Node mac-1 lets it go")


def test_the_grace_period_counts_because_the_api_adds_it_to_the_deletion_time() -> None:
    inside_its_grace = held_pod(deleted_s_ago=-600, grace_s=900)
    assert plan_unstick([inside_its_grace], GONE, NOW, finished_too=True) == []


@pytest.mark.parametrize("phase", [PENDING, RUNNING, UNKNOWN, ""])
def test_a_pod_that_may_run_on_a_living_node_never_qualifies(phase: str) -> None:
    pod = held_pod(phase=phase, deleted_s_ago=10 * 86_400)
    assert judge(pod, GONE, NOW, finished_too=True) == Keep(pod, "its VM may still run on Node mac-1; the agent there ends it")


@pytest.mark.parametrize(
    ("finalizers", "on", "because"),
    [
        ((THEIRS,), "mac-gone", f"it waits for {THEIRS}, which is not ours"),
        ((THEIRS, "b/c"), "", f"it waits for {THEIRS}, b/c, which are not ours"),
        ((), "mac-1", "it has no finalizer of ours; the agent of Node mac-1 ends it"),
        ((), "mac-gone", "it has no finalizer of ours; the collection of Pods ends it, because Node mac-gone is gone"),
        ((), "", "it has no finalizer of ours"),
        ((VM_CLEANUP + "-2",), "mac-gone", f"it waits for {VM_CLEANUP}-2, which is not ours"),
    ],
)
def test_a_pod_without_our_finalizer_is_nobody_of_ours(finalizers: tuple[str, ...], on: str, because: str) -> None:
    pod = held_pod(on=on, finalizers=finalizers)
    assert judge(pod, GONE, NOW, finished_too=True) == Keep(pod, because)


def test_what_others_hold_is_named_in_the_plan() -> None:
    verdict = judge(held_pod(on="", finalizers=("a/b", VM_CLEANUP, THEIRS)), GONE, NOW)
    assert isinstance(verdict, Unstick)
    assert verdict.others == ("a/b", THEIRS)


@pytest.mark.parametrize("node_names", [None, set()], ids=["failed list", "empty list"])
def test_without_a_list_of_nodes_nobody_is_suspected(node_names: set[str] | None) -> None:
    assert suspected_nodes([held_pod()], node_names) == set()


def test_only_nodes_of_pods_that_we_hold_are_suspected() -> None:
    pods = [
        held_pod("held", on="mac-gone"),
        held_pod("lives", on="mac-1"),
        held_pod("unplaced", on=""),
        held_pod("theirs", on="mac-2", finalizers=(THEIRS,)),
        held_pod("running", on="mac-3", deleted_s_ago=None),
    ]
    assert suspected_nodes(pods, {"mac-1"}) == {"mac-gone"}


PODS = st.builds(
    held_pod,
    on=st.sampled_from(["", "mac-1", "mac-gone"]),
    phase=st.sampled_from(PHASES),
    deleted_s_ago=st.none() | st.floats(-1e6, 1e6),
    grace_s=st.integers(0, 10_000),
    finalizers=st.lists(st.sampled_from([VM_CLEANUP, THEIRS, "a/b"]), unique=True).map(tuple),
)


@given(PODS, st.booleans())
def test_whatever_qualifies_is_being_deleted_and_ours_and_has_no_running_vm(pod: Pod, finished_too: bool) -> None:
    for step in plan_unstick([pod], GONE, NOW, finished_too=finished_too):
        assert step.pod.is_being_deleted
        assert VM_CLEANUP in step.pod.metadata.finalizers
        assert set(step.others) == set(pod.metadata.finalizers) - {VM_CLEANUP}
        assert step.pod.spec.node_name in ("", "mac-gone") or (finished_too and pod.is_terminal)


@given(PODS, st.booleans(), st.floats(0, 1e6))
def test_a_later_look_never_spares_what_an_earlier_one_would_have_freed(pod: Pod, finished_too: bool, later_s: float) -> None:
    later = NOW + timedelta(seconds=later_s)
    first = plan_unstick([pod], GONE, NOW, finished_too=finished_too)
    assert first == [] or plan_unstick([pod], GONE, later, finished_too=finished_too) == first


@given(PODS)
def test_asking_for_less_never_frees_more(pod: Pod) -> None:
    asked = plan_unstick([pod], GONE, NOW, finished_too=True)
    assert all(step in asked for step in plan_unstick([pod], GONE, NOW))
    assert all(step in plan_unstick([pod], GONE, NOW) for step in plan_unstick([pod], frozenset(), NOW))


def at_once(client: Client, clock: Clock, namespace: str = "test") -> Sweep:
    return Sweep(client, clock, namespace=namespace, quarantine_s=0)


async def test_pods_of_a_node_that_is_gone_are_freed_and_all_others_stay(api: Backend) -> None:
    """Weakness 17: nobody but the agent took the finalizer off, and the agent was gone with its Node."""
    client, namespace = api.client, api.namespace
    put = partial(store, client, namespace=namespace)
    living = f"living-{namespace}"
    await add_node(client, living)
    await put("ended", on="mac-gone")
    await put("running", on="mac-gone", phase="Running")  # deleted with a grace period that nobody is left to end
    await put("unplaced", on="", phase="Pending")
    await put("shared", on="mac-gone", finalizers=(THEIRS, VM_CLEANUP))
    await put("theirs", on="mac-gone", finalizers=(THEIRS,))
    await put("not-deleted", on="mac-gone", deleted=False)
    await put("living-ended", on=living)
    await put("living-running", on=living, phase="Running")
    outcomes = await at_once(client, client.clock, namespace).once()
    assert {outcome.key.name for outcome in outcomes if outcome.released} == {"ended", "running", "unplaced", "shared"}
    assert await names_in(client, namespace) == {"shared", "theirs", "not-deleted", "living-ended", "living-running"}
    finalizers = {pod.name: pod.metadata.finalizers for pod in await client.list(Pod, namespace)}
    assert finalizers.pop("shared") == (THEIRS,)
    assert finalizers.pop("theirs") == (THEIRS,)
    assert set(finalizers.values()) == {(VM_CLEANUP,)}
    for name in ("shared", "theirs"):
        await let_go(client, Key(namespace, name))
    await client.delete(Node, Key("", living))


async def test_all_pods_of_a_lost_fleet_are_freed_by_one_call_each(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    await add_node(client, "mac-1")
    await store_many(client, [f"runner-{number}" for number in range(HOW_MANY)], "test", "mac-gone")
    between = Between(running.transport(), lambda _: None)
    outcomes = await at_once(Client(between, clock), clock).once()
    assert len(outcomes) == HOW_MANY
    assert all(outcome.released for outcome in outcomes)
    assert await names_in(client) == set()
    assert len(between.requests) < HOW_MANY + 10


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
async def test_a_node_without_which_no_node_is_left_is_not_believed(running: RunningApi, clock: Clock, phase: str) -> None:
    """An empty list is more often a fault than the truth."""
    client = Client(running.transport(), clock)
    await store(client, "runner", on="mac-gone", phase=phase)
    assert await at_once(client, clock).once() == []
    assert await names_in(client) == {"runner"}


async def test_a_list_of_nodes_that_fails_frees_nobody(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-gone")
    await store(client, "unplaced", on="")
    faulty = Client(FaultyTransport(running.transport(), at_path("/nodes", Says(403))), clock)
    with pytest.raises(Forbidden):
        await at_once(faulty, clock).once()
    assert await names_in(client) == {"runner", "unplaced"}


async def test_a_node_that_a_list_leaves_out_but_the_api_knows_keeps_its_pods(running: RunningApi, clock: Clock) -> None:
    """A miss in a list is a suspicion; the Node itself is asked for before anything is done."""
    client = Client(running.transport(), clock)
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-late")

    async def appears(request: Request) -> None:
        if request.path.endswith("/nodes/mac-late"):
            await add_node(client, "mac-late")

    between = Between(running.transport(), appears)
    assert await at_once(Client(between, clock), clock).once() == []
    assert between.methods("/nodes/mac-late") == ["GET"]
    assert await names_in(client) == {"runner"}


async def test_a_404_that_speaks_of_no_node_is_no_confirmation(running: RunningApi, clock: Clock) -> None:
    """A proxy in front of the API answers so for everything while it is set up."""
    faulty = Client(FaultyTransport(running.transport(), always(Says(404))), clock)
    with pytest.raises(NotFound):
        await confirmed_gone(faulty, ["mac-1"])


@pytest.mark.parametrize("name", ["", "mac-2"])
async def test_a_404_that_speaks_of_something_else_is_no_confirmation(name: str) -> None:
    class Elsewhere:
        async def get(self, *_: object) -> Node:
            raise NotFound(Status(details=Details(name=name)), "GET")

    with pytest.raises(NotFound):
        await confirmed_gone(cast(Client, Elsewhere()), ["mac-1"])


async def test_a_node_that_comes_back_within_the_quarantine_keeps_its_pods(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-2", phase="Running")
    sweep = Sweep(client, clock)
    assert await sweep.once() == []
    await add_node(client, "mac-2")  # its agent noticed
    await elapse(QUARANTINE_S)
    assert await sweep.once() == []
    await client.delete(Node, Key("", "mac-2"))
    assert await sweep.once() == []  # missing again, and only since now
    await elapse(QUARANTINE_S)
    assert [outcome.cause for outcome in await sweep.once()] == [Cause.NODE_GONE]


async def test_a_sweep_that_runs_frees_within_two_rounds_counts_it_and_shows_the_age(running: RunningApi, clock: Clock) -> None:
    client, metrics = Client(running.transport(), clock), Metrics()
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-gone")
    ages = Ages(clock, metrics)
    task = asyncio.create_task(Sweep(client, clock, metrics=metrics, ages=ages).run())
    await elapse(QUARANTINE_S)
    assert ages.oldest(9, STUCK) == []  # what is just being deleted waits for nothing yet
    await elapse(SWEEP_EVERY_S)
    assert [waiting.key for waiting in ages.oldest(9, STUCK)] == [Key("test", "runner")]
    await elapse(2 * SWEEP_EVERY_S)
    assert await names_in(client) == set()
    assert ages.oldest(9, STUCK) == []
    page = metrics.render().decode()
    assert f'{RELEASED_METRIC}{{because="node-gone"}} 1.0' in page
    assert f'{RELEASED_METRIC}{{because="never-placed"}} 0.0' in page
    task.cancel()


async def test_a_sweep_outlives_an_api_that_is_away(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-gone")
    away_until_s = clock.monotonic() + 600

    def away(_: Request) -> None:
        if clock.monotonic() < away_until_s:
            raise Unreachable("no route")

    task = asyncio.create_task(Sweep(Client(Between(running.transport(), away), clock), clock).run())
    await elapse(600)
    assert await names_in(client) == {"runner"}
    await elapse(4 * SWEEP_EVERY_S)
    assert await names_in(client) == set()
    task.cancel()


async def test_whoever_dies_after_ending_the_grace_period_leaves_a_pod_that_is_found_again(
    running: RunningApi, clock: Clock
) -> None:
    client = Client(running.transport(), clock)
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-gone", phase="Running")

    def dies(request: Request) -> None:
        if request.method == "PATCH":
            raise Unreachable("killed")

    (outcome,) = await at_once(Client(Between(running.transport(), dies), clock, deadline_s=1), clock).once()
    assert not outcome.released
    left = await client.get(Pod, Key("test", "runner"))
    assert left.metadata.finalizers == (VM_CLEANUP,)
    assert left.metadata.deletion_grace_period_seconds == 0
    assert [outcome.released for outcome in await at_once(client, clock).once()] == [True]
    assert await names_in(client) == set()
