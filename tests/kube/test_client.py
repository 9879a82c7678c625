"""Deadlines and retries of calls, on virtual time, through a network that fails on purpose."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.embedded.server.server import RunningApi
from applecart.errors import ApplecartError, DeadlineExceeded, NeverSent, Unreachable
from applecart.kube.backoff import OF_CALLS
from applecart.kube.client import DEADLINE_S, Client, retry_after_s, selector_query, with_revision
from applecart.kube.endpoint import Endpoint
from applecart.kube.errors import ApiError, Conflict, Expired, ServerFault, TooManyRequests
from applecart.kube.http import explained
from applecart.kube.patch import Json, Merge, Patch
from applecart.kube.transport import Request, Response, Stream
from tests.kube.embedded_api import serving
from tests.kube.faults import Cut, Fault, FaultyTransport, Hung, Lost, Refused, Says, Slow, Stalls, always, in_turn, refusal
from tests.kube.objects import config_map

KEY = Key("ci", "a")


class World:
    """A client, a server, and the network between them."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.running = running
        self.network = FaultyTransport(running.transport())
        self.client = Client(self.network, clock)

    @property
    def attempts(self) -> int:
        return len(self.network.calls)

    def suffer(self, *faults: Fault | None) -> None:
        """These faults for the next calls, one each."""
        self.network.plan = in_turn(faults)
        self.network.calls.clear()
        self.network.called_at_s.clear()

    def count_stored(self) -> int:
        return len(self.running.store.table(ConfigMap.resource.label))


@asynccontextmanager
async def new_world() -> AsyncIterator[World]:
    """One for a single example on a loop of its own."""
    clock = VirtualClock(asyncio.get_running_loop())
    async with serving(clock, ["ci"]) as running:
        yield World(running, clock)


@pytest.fixture
async def world(running: RunningApi, clock: Clock) -> World:
    world = World(running, clock)
    await world.client.create(config_map("ci", "a", colour="green"))
    return world


# What is sent again


@pytest.mark.parametrize("fault", [Refused(), Lost(), Says(429), Says(500), Says(503), Cut()], ids=repr)
async def test_a_read_is_tried_again_after_anything_that_may_pass(world: World, fault: Fault) -> None:
    world.suffer(fault, fault)
    assert (await world.client.get(ConfigMap, KEY)).data == {"colour": "green"}
    assert world.attempts == 3


@pytest.mark.parametrize("fault", [Refused(), Says(429), Says(429, 2), Says(503, 1)], ids=repr)
async def test_a_creation_that_surely_did_not_happen_is_tried_again(world: World, fault: Fault) -> None:
    world.suffer(fault, fault)
    await world.client.create(config_map("ci", "b"))
    assert world.attempts == 3


async def test_a_creation_whose_answer_was_lost_is_left_to_the_caller(world: World) -> None:
    """Only the caller knows whether a second object under a generated name would hurt."""
    world.suffer(Lost())
    with pytest.raises(Unreachable):
        await world.client.create(config_map("ci", "b"))
    assert world.attempts == 1
    assert world.count_stored() == 2


@pytest.mark.parametrize("fault", [Says(500), Says(503), Cut()], ids=repr)
async def test_a_creation_that_may_have_happened_is_left_to_the_caller(world: World, fault: Fault) -> None:
    world.suffer(fault)
    with pytest.raises((ServerFault, Unreachable)):
        await world.client.create(config_map("ci", "b"))
    assert world.attempts == 1


async def test_a_merge_patch_is_tried_again_because_twice_is_as_once(world: World) -> None:
    world.suffer(Lost(), Says(500))
    changed = await world.client.patch(ConfigMap, KEY, Merge({"data": {"colour": "red"}}))
    assert changed.data == {"colour": "red"}
    assert world.attempts == 3


async def test_a_json_patch_whose_answer_was_lost_is_left_to_the_caller(world: World) -> None:
    """An `add` to a list would add twice."""
    patch = Json([{"op": "add", "path": "/metadata/finalizers", "value": ["applecart.dev/a"]}])
    world.suffer(Lost())
    with pytest.raises(Unreachable):
        await world.client.patch(ConfigMap, KEY, patch)
    assert world.attempts == 1
    world.suffer(Refused(), Says(429))
    await world.client.patch(ConfigMap, KEY, patch)
    assert world.attempts == 3


async def test_a_deletion_is_tried_again(world: World) -> None:
    world.suffer(Says(503), Refused())
    await world.client.delete(ConfigMap, KEY)
    assert world.count_stored() == 0


@pytest.mark.parametrize("fault", [Says(409), Says(410)], ids=repr)
async def test_an_answer_that_will_not_change_is_the_callers_at_once(world: World, fault: Fault) -> None:
    world.suffer(fault)
    with pytest.raises((Conflict, Expired)):
        await world.client.get(ConfigMap, KEY)
    assert world.attempts == 1


# When


async def test_the_servers_wish_to_wait_is_honoured_with_our_own_wait_on_top(world: World) -> None:
    world.suffer(Says(429, 7))
    await world.client.get(ConfigMap, KEY)
    first_s, second_s = world.network.called_at_s
    assert 7 + OF_CALLS.first_s / 2 <= second_s - first_s <= 7 + OF_CALLS.first_s


async def test_a_wish_beyond_the_deadline_gives_up_at_once(world: World) -> None:
    world.suffer(Says(429, int(DEADLINE_S) + 1))
    before_s = asyncio.get_running_loop().time()
    with pytest.raises(TooManyRequests) as caught:
        await world.client.get(ConfigMap, KEY)
    assert caught.value.retry_after_s == DEADLINE_S + 1
    assert asyncio.get_running_loop().time() == before_s


async def test_waits_grow_while_failures_go_on(world: World) -> None:
    world.suffer(*[Refused()] * 5)
    await world.client.get(ConfigMap, KEY)
    times = world.network.called_at_s
    waits = [later - earlier for earlier, later in pairwise(times)]
    for failures, waited_s in enumerate(waits, start=1):
        step_s = OF_CALLS.first_s * 2 ** (failures - 1)
        assert step_s / 2 <= round(waited_s, 6) <= step_s


async def test_the_deadline_covers_all_attempts(world: World) -> None:
    world.network.plan = always(Refused())
    before_s = asyncio.get_running_loop().time()
    with pytest.raises(NeverSent):
        await world.client.get(ConfigMap, KEY)
    assert asyncio.get_running_loop().time() - before_s <= DEADLINE_S
    assert 5 <= world.attempts <= 20


async def test_a_hung_call_ends_at_the_deadline_and_is_not_repeated_beyond_it(world: World) -> None:
    world.suffer(Hung())
    before_s = asyncio.get_running_loop().time()
    with pytest.raises(DeadlineExceeded):
        await world.client.get(ConfigMap, KEY)
    assert asyncio.get_running_loop().time() - before_s == pytest.approx(DEADLINE_S)
    assert world.attempts == 1


async def test_a_last_attempt_that_runs_out_of_time_also_says_why_the_one_before_failed(world: World) -> None:
    world.suffer(Refused(), Hung())
    with pytest.raises(DeadlineExceeded, match=r"the attempt before: .*connection refused"):
        await world.client.get(ConfigMap, KEY)
    assert world.attempts == 2


async def test_who_waited_in_vain_is_told_the_deadline_that_was_given_and_not_what_was_left_of_it(world: World) -> None:
    """A busy loop woke up behind the deadline, and said "did not answer within -0.0159 s"."""
    world.suffer(Refused(), Hung())
    with pytest.raises(DeadlineExceeded, match=rf"no answer within {DEADLINE_S:g} s; the attempt before"):
        await world.client.get(ConfigMap, KEY)
    late = msgspec.structs.replace(world.network.calls[-1], deadline_s=-0.0159)
    assert str(explained(TimeoutError(), late, Endpoint(server="https://api", server_from=""), None)).endswith(
        f"did not answer within {DEADLINE_S:g} s"
    )


async def test_a_creation_that_may_have_happened_is_never_told_as_never_sent(world: World) -> None:
    world.suffer(Refused(), Hung())
    with pytest.raises(DeadlineExceeded):
        await world.client.create(config_map("ci", "b"))


async def test_each_attempt_has_only_what_is_left_of_the_deadline(world: World) -> None:
    world.suffer(Says(503, 10), Says(503, 10), None)
    await world.client.get(ConfigMap, KEY)
    left = [request.deadline_s for request in world.network.calls]
    assert left[0] == DEADLINE_S
    assert left[1] <= DEADLINE_S - 10
    assert left[2] <= DEADLINE_S - 20


async def test_a_slow_answer_within_the_deadline_is_an_answer(world: World) -> None:
    world.suffer(Slow(DEADLINE_S - 1))
    assert (await world.client.get(ConfigMap, KEY)).name == "a"
    assert world.attempts == 1


FAULTS = st.one_of(
    st.sampled_from([Refused(), Lost(), Hung(), Cut(), Stalls()]),
    st.builds(Slow, st.floats(0, 100)),
    st.builds(Says, st.sampled_from([409, 410, 429, 500, 503]), st.one_of(st.none(), st.integers(0, 100))),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.none(), FAULTS), max_size=60), st.sampled_from(["get", "create", "merge", "json", "delete"]))
def test_no_schedule_of_faults_makes_a_call_outlive_its_deadline_or_raise_a_stranger(
    faults: list[Fault | None], verb: str
) -> None:
    async def scenario() -> None:
        async with new_world() as world:
            await world.client.create(config_map("ci", "a"))
            world.suffer(*faults)
            before_s = asyncio.get_running_loop().time()
            try:
                await act(world.client, verb)
            except ApplecartError:
                assert faults
            assert asyncio.get_running_loop().time() - before_s <= DEADLINE_S + 1e-6
            assert world.attempts <= 20

    run_virtual(scenario())


async def act(client: Client, verb: str) -> None:
    match verb:
        case "get":
            await client.get(ConfigMap, KEY)
        case "create":
            await client.create(config_map("ci", "b"))
        case "merge":
            await client.patch(ConfigMap, KEY, Merge({"data": {"a": "1"}}))
        case "json":
            await client.patch(ConfigMap, KEY, Json([{"op": "add", "path": "/data", "value": {"a": "1"}}]))
        case "delete":
            await client.delete(ConfigMap, KEY)


@settings(max_examples=100, deadline=None)
@given(st.lists(FAULTS, max_size=8))
def test_a_creation_happens_at_most_once_whatever_the_network_does(faults: list[Fault]) -> None:
    async def scenario() -> None:
        wanted = ConfigMap(metadata=ObjectMeta(namespace="ci", generate_name="a-"))
        async with new_world() as world:
            world.suffer(*faults)
            try:
                await world.client.create(wanted)
            except ApplecartError:
                assert world.count_stored() <= 1
            else:
                assert world.count_stored() == 1

    run_virtual(scenario())


# Lists


async def test_a_list_whose_snapshot_expires_begins_again_and_repeats_nothing(world: World) -> None:
    for number in range(9):
        await world.client.create(config_map("ci", f"b-{number}"))
    seen: list[str] = []
    began = 0

    def begin() -> object:
        nonlocal began
        began += 1
        seen.clear()
        return lambda page: seen.extend(obj.name for obj in page)

    world.suffer(None, None, Says(410), None, Says(410))
    await world.client.read_list(ConfigMap, begin, "ci", page_size=4)  # type: ignore[arg-type]
    assert seen == ["a", *(f"b-{number}" for number in range(9))]
    assert began == 3
    assert dict(world.network.calls[-1].query).get("limit") is None  # at last in one piece


async def test_a_list_that_expires_even_in_one_piece_is_the_callers(world: World) -> None:
    world.network.plan = always(Says(410))
    with pytest.raises(Expired):
        await world.client.list(ConfigMap, "ci")


# Streams


async def test_a_refused_stream_raises_its_class_and_is_not_repeated(world: World) -> None:
    world.suffer(Says(429, 3))
    with pytest.raises(TooManyRequests) as caught:
        await world.client.open(Request("GET", "/api/v1/namespaces/ci/configmaps", (("watch", "true"),)))
    assert caught.value.retry_after_s == 3
    assert world.attempts == 1


async def test_a_stream_is_given_up_at_the_shorter_of_both_deadlines(world: World, clock: Clock) -> None:
    world.network.plan = always(Hung())
    for request_s, client_s in ((5.0, 30.0), (30.0, 5.0)):
        began_s = clock.monotonic()
        client = Client(world.network, clock, deadline_s=client_s)
        with pytest.raises(DeadlineExceeded):
            await client.open(Request("GET", "/api/v1/nodes", deadline_s=request_s))
        assert clock.monotonic() - began_s == pytest.approx(5)


class Endless:
    """A refusal whose body does not end."""

    status = 500
    headers: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.read_bytes = 0

    async def send(self, request: Request) -> Response:
        raise AssertionError(request)

    async def open(self, _: Request) -> Stream:
        return self

    async def read(self) -> bytes:
        self.read_bytes += 1 << 16
        return b"x" * (1 << 16) if self.read_bytes < 1 << 24 else b""

    async def aclose(self) -> None: ...


async def test_a_refusal_that_does_not_end_is_not_read_to_its_end(clock: Clock) -> None:
    endless = Endless()
    with pytest.raises(ServerFault):
        await Client(endless, clock).open(Request("GET", "/api/v1/nodes"))
    assert endless.read_bytes <= 1 << 20


class Pages:
    """A list in these answers, one a call."""

    def __init__(self, *answers: Response) -> None:
        self._answers = iter(answers)

    async def send(self, _: Request) -> Response:
        return next(self._answers)

    async def open(self, request: Request) -> Stream:
        raise AssertionError(request)

    async def aclose(self) -> None: ...


def page(name: str, token: str = "") -> Response:
    items = [{"metadata": {"name": name, "namespace": "ci", "resourceVersion": "1"}}]
    return Response(200, msgspec.json.encode({"metadata": {"resourceVersion": "1", "continue": token}, "items": items}))


async def test_a_list_that_begins_again_holds_nothing_of_the_one_before(clock: Clock) -> None:
    pages = Pages(page("a", "more"), refusal(410), page("a"))
    assert [obj.name for obj in await Client(pages, clock).list(ConfigMap, "ci")] == ["a"]


async def test_a_closed_client_answers_nothing_more(world: World) -> None:
    await world.client.aclose()
    with pytest.raises(Unreachable):
        await world.client.get(ConfigMap, KEY)


# Small parts


@pytest.mark.parametrize(
    ("value", "expected"), [("7", 7.0), ("0", 0.0), ("", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_the_header_that_asks_for_a_wait(value: str, expected: float | None) -> None:
    assert retry_after_s({"retry-after": value}) == expected
    assert retry_after_s({}) is None


def test_selectors_become_query_parameters_only_where_they_say_something() -> None:
    assert selector_query("", "") == ()
    assert selector_query("a=b", "") == (("labelSelector", "a=b"),)
    assert selector_query("a=b", "metadata.name=c") == (("labelSelector", "a=b"), ("fieldSelector", "metadata.name=c"))


@pytest.mark.parametrize("patch", [Merge({"metadata": {"labels": {"a": "b"}}}), Json([])])
def test_a_precondition_does_not_change_the_patch_it_is_added_to(patch: Patch) -> None:
    before = patch.encoded()
    guarded = with_revision(patch, "7")
    assert patch.encoded() == before
    assert b'"7"' in guarded.encoded()
    assert guarded.content_type == patch.content_type


def test_a_refusal_names_the_call() -> None:
    assert "GET /api/v1/namespaces/ci/configmaps/a" in str(_caught())


def _caught() -> ApiError:
    async def scenario() -> ApiError:
        async with new_world() as world:
            with pytest.raises(ApiError) as caught:
                await world.client.get(ConfigMap, KEY)
            return caught.value

    return run_virtual(scenario())
