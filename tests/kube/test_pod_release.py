"""A stuck Pod is freed under the revision that was judged; whatever happens to it meanwhile wins."""

from collections.abc import Callable
from functools import partial

import pytest

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.patch import Merge
from applecart.kube.pod_release import ATTEMPTS, ReleaseOutcome, release, release_all
from applecart.kube.stuck_pod_plan import judge, plan_unstick
from applecart.kube.transport import Request
from tests.kube.backends import Backend
from tests.kube.faults import FaultyTransport, Says
from tests.kube.stuck import THEIRS, Between, at_path, names_in, store


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
