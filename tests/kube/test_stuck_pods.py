"""Pods of lost Nodes are freed by whoever sweeps, under the revision that was judged, and nobody else's Pod is touched."""

import asyncio
from functools import partial

import pytest

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Unreachable
from applecart.kube.client import Client
from applecart.kube.errors import Forbidden, NotFound
from applecart.kube.stuck_pod_plan import Cause
from applecart.kube.stuck_pods import QUARANTINE_S, RELEASED_METRIC, STUCK, SWEEP_EVERY_S, Sweep, confirmed_gone
from applecart.kube.transport import Request
from applecart.observe.ages import Ages
from applecart.observe.metrics import Metrics
from tests.kube.backends import Backend
from tests.kube.faults import FaultyTransport, Says, always
from tests.kube.stuck import THEIRS, Between, add_node, at_path, let_go, names_in, store, store_many
from tests.virtual_time import elapse

HOW_MANY = 504  # as many as once were stuck


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
