"""`applecart pods unstick`: shows first, frees only what qualifies and was shown, and says what is still there."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.cli.pods.survey import Scope
from applecart.cli.pods.unstick import STALE_AFTER_S, unstick
from applecart.clock import Clock, VirtualClock, VirtualLoop
from applecart.embedded.server.server import RunningApi
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.transport import Request
from tests.cli.pods.fleet import KEPT, stuck_fleet
from tests.kube.embedded_api import serving
from tests.kube.faults import FaultyTransport, Says
from tests.kube.stuck import THEIRS, Between, add_node, let_go, names_in, store, store_many

HOW_MANY = 504  # as many as once were stuck
LATER_S = 120.0  # beyond the time an agent has
TEST = Scope("test")

Printed = pytest.CaptureFixture[str]


def yes(_: int) -> bool:
    return True


def no(_: int) -> bool:
    return False


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock) as running:
        yield running


@pytest.fixture
def client(running: RunningApi, clock: Clock) -> Client:
    return Client(running.transport(), clock)


def later(clock: Clock) -> None:
    """The agents had their time."""
    assert isinstance(clock, VirtualClock)
    clock.jump(timedelta(seconds=LATER_S))


async def test_504_pods_that_ended_are_freed_and_pods_of_others_stay(client: Client, clock: Clock, capsys: Printed) -> None:
    """Incident 1: the Pods had ended and were deleted, and no agent took the finalizer off."""
    await stuck_fleet(client, "test", "mac-1", HOW_MANY)
    later(clock)
    await store(client, "living-fresh", on="mac-1")
    before = {pod.name: pod for pod in await client.list(Pod, "test") if pod.name in {*KEPT, "living-fresh"}}
    assert await unstick(client, TEST, clock, yes) == 0
    assert {pod.name: pod for pod in await client.list(Pod, "test")} == before
    assert set(before) == {*KEPT, "living-fresh"}
    assert "504 of 504 Pods freed, 504 gone" in capsys.readouterr().out


async def test_a_dry_run_changes_nothing_and_tells_what_stays_and_why(client: Client, clock: Clock, capsys: Printed) -> None:
    await stuck_fleet(client, "test", "mac-1", 2)
    later(clock)
    before = await client.list(Pod, "test")
    assert await unstick(client, TEST, clock, no) == 0
    assert await client.list(Pod, "test") == before
    said = capsys.readouterr().out
    assert [" ".join(line.split()) for line in said.splitlines()] == [
        "2 Pods can be freed:",
        "POD NODE PHASE DEADLINE BECAUSE",
        "test/living-0 mac-1 Succeeded 2 min ago it is Succeeded, and the agent of Node mac-1 did not let it go",
        "test/lost-0 mac-gone Succeeded 2 min ago its Node mac-gone does not exist",
        "",
        "2 Pods left alone:",
        "POD NODE PHASE DEADLINE BECAUSE",
        "test/living-running mac-1 Running 90 s ago its VM may still run on Node mac-1; the agent there ends it",
        f"test/theirs mac-gone Succeeded 2 min ago it waits for {THEIRS}, which is not ours",
        "",
        "1 Pod not being deleted, left alone.",
        "",
        "Nothing was changed; add --yes to free them.",
    ]


async def test_where_nothing_is_stuck_nobody_is_asked(client: Client, clock: Clock, capsys: Printed) -> None:
    def never(_: int) -> bool:
        raise AssertionError

    assert await unstick(client, TEST, clock, never) == 0
    assert capsys.readouterr().out == "No Pod in namespace test is stuck on our finalizer.\n"


async def test_only_missing_nodes_leaves_the_pods_of_living_nodes_to_their_agents(client: Client, clock: Clock) -> None:
    await stuck_fleet(client, "test", "mac-1", 2)
    later(clock)
    assert await unstick(client, Scope("test", finished_too=False), clock, yes) == 0
    assert await names_in(client) == {"living-0", *KEPT}


async def test_another_namespace_and_another_node_stay_out_of_it(client: Client, clock: Clock) -> None:
    await add_node(client, "mac-1")
    await store(client, "a", on="mac-gone")
    await store(client, "b", on="mac-gone-too")
    await store(client, "c", on="mac-gone", namespace="ci")
    assert await unstick(client, Scope("test", "mac-gone"), clock, yes) == 0
    assert await names_in(client) == {"b"}
    assert await names_in(client, "ci") == {"c"}
    assert await unstick(client, Scope(""), clock, yes) == 0
    assert await names_in(client, "") == set()


async def test_where_no_node_is_listed_the_node_must_be_named(client: Client, clock: Clock, capsys: Printed) -> None:
    await store(client, "runner", on="mac-gone", phase="Running")
    assert await unstick(client, TEST, clock, yes) == 0
    assert await names_in(client) == {"runner"}
    said = capsys.readouterr().out
    assert "the API lists no Node at all, so none counts as gone; say --node mac-gone if you know that it is" in said
    assert await unstick(client, Scope("test", "mac-gone"), clock, yes) == 0
    assert await names_in(client) == set()


async def test_a_node_that_exists_is_not_gone_because_a_person_names_it(client: Client, clock: Clock) -> None:
    await add_node(client, "mac-1")
    await store(client, "runner", on="mac-1", phase="Running")
    assert await unstick(client, Scope("test", "mac-1"), clock, yes) == 0
    assert await names_in(client) == {"runner"}


async def test_a_pod_that_others_hold_too_is_freed_and_named_with_its_holder(
    client: Client, clock: Clock, capsys: Printed
) -> None:
    await add_node(client, "mac-1")
    await store(client, "shared", on="mac-gone", finalizers=(THEIRS, VM_CLEANUP))
    assert await unstick(client, TEST, clock, yes) == 1
    said = capsys.readouterr().out
    assert f"its Node mac-gone does not exist (stays until {THEIRS} goes too)" in said
    assert f"test/shared is still there: held by {THEIRS}\n1 of 1 Pod freed, 0 gone, in 30.0 s\n" in said
    assert (await client.get(Pod, Key("test", "shared"))).metadata.finalizers == (THEIRS,)


async def test_a_pod_that_goes_while_we_look_is_no_failure(client: Client, clock: Clock) -> None:
    await add_node(client, "mac-1")
    await store(client, "shared", on="mac-gone", finalizers=(THEIRS, VM_CLEANUP))

    async def they_let_go() -> None:
        await asyncio.sleep(10)
        await let_go(client, Key("test", "shared"))
        await client.delete(Pod, Key("test", "shared"), grace_s=0)

    theirs = asyncio.create_task(they_let_go())
    assert await unstick(client, TEST, clock, yes) == 0
    await asyncio.wait([theirs])


async def test_pods_that_cannot_be_freed_are_told_and_the_exit_code_says_so(
    running: RunningApi, client: Client, clock: Clock, capsys: Printed
) -> None:
    await add_node(client, "mac-1")
    await store_many(client, [f"lost-{number}" for number in range(30)], "test", "mac-gone")
    refusing = FaultyTransport(running.transport(), lambda request: Says(403) if request.method == "PATCH" else None)
    assert await unstick(Client(refusing, clock), TEST, clock, yes) == 1
    said = capsys.readouterr().out
    assert said.count("was not freed: ") == 20
    assert "and 10 more like these\n0 of 30 Pods freed, 0 gone" in said


async def test_after_a_long_thought_only_what_was_shown_and_still_qualifies_is_freed(
    running: RunningApi, client: Client, clock: Clock
) -> None:
    """The Node of one Pod is back, and another Pod was deleted, while the prompt waited."""
    await add_node(client, "mac-1")
    await store(client, "back", on="mac-back", phase="Running")
    await store(client, "lost", on="mac-gone")

    lists = 0

    async def node_returns(request: Request) -> None:
        nonlocal lists
        lists += request.path.endswith("/pods")
        if lists == 2:
            lists += 1
            await add_node(client, "mac-back")
            await store(client, "new", on="mac-gone")

    def thinks(_: int) -> bool:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.advance(STALE_AFTER_S + 1)
        return True

    assert await unstick(Client(Between(running.transport(), node_returns), clock), TEST, clock, thinks) == 0
    assert await names_in(client) == {"back", "new"}


async def test_a_namespace_that_does_not_exist_is_a_slip_of_the_pen(client: Client, clock: Clock) -> None:
    with pytest.raises(BadInput, match="namespace 'tset' does not exist; correct --namespace or use --all-namespaces"):
        await unstick(client, Scope("tset"), clock, yes)
