"""How a deleted namespace is emptied, what is said meanwhile, and its end."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import Container
from applecart.api.coordination import Lease
from applecart.api.core import ConfigMap, Namespace, Secret, ServiceAccount
from applecart.api.meta import Key, ObjectMeta, Resource
from applecart.api.pods import Pod, PodSpec, PodStatus
from applecart.clock import Clock
from applecart.embedded.controllers.namespaces.ending import (
    WELL,
    Content,
    Ending,
    Survey,
    conditions_after,
    deletable,
    finalizers_of,
    longest_grace_s,
    status_after,
    unexpected,
)
from applecart.embedded.kinds.strategy import Document
from applecart.kube.client import Client
from applecart.kube.discovery import Discovery, Served, discover
from applecart.kube.errors import NotFound, ServerFault
from applecart.kube.transport import Request
from tests.embedded.controllers.namespaces.scenarios import ConditionedNamespace
from tests.embedded.controllers.scene import HOLD
from tests.embedded.controllers.stages import api_in_memory, run_alone
from tests.kube.faults import Fault, FaultyTransport, Lost, Plan, Refused, Says, always
from tests.virtual_time import elapse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)

EVERY = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
NAMESPACE = "going"

LONG_S = 600.0
GOING = Key("", "going")


def said(survey: Survey, type: str) -> tuple[str, str, str]:
    found = next(one for one in conditions_after(survey, (), NOW) if one["type"] == type)
    return found["status"], found["reason"], found["message"]


def test_an_empty_namespace_says_that_all_is_well() -> None:
    conditions = conditions_after(Survey(), (), NOW)
    assert [one["type"] for one in conditions] == list(WELL)
    assert {one["status"] for one in conditions} == {"False"}
    assert {one["lastTransitionTime"] for one in conditions} == {"2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("survey", "type", "expected"),
    [
        (
            Survey(remaining={("pods", ""): 2, ("leases", "coordination.k8s.io"): 1}),
            "NamespaceContentRemaining",
            (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: leases.coordination.k8s.io has 1 resource instances, "
                "pods. has 2 resource instances",
            ),
        ),
        (
            Survey(remaining={("pods", ""): 2}, finalizers={"b/c": 1, "a/b": 2}),
            "NamespaceFinalizersRemaining",
            (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: a/b in 2 resource instances, "
                "b/c in 1 resource instances",
            ),
        ),
        (
            Survey(failures=("z is wrong", "a is wrong")),
            "NamespaceDeletionContentFailure",
            ("True", "ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: a is wrong, z is wrong"),
        ),
        (
            Survey(unknown=("metrics.k8s.io/v1beta1",)),
            "NamespaceDeletionDiscoveryFailure",
            (
                "True",
                "DiscoveryFailed",
                "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
                "metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1",
            ),
        ),
    ],
    ids=["content", "finalizers", "failures", "discovery"],
)
def test_trouble_is_told(survey: Survey, type: str, expected: tuple[str, str, str]) -> None:
    assert said(survey, type) == expected
    assert not survey.is_clear


def test_a_time_moves_only_with_the_status() -> None:
    first = conditions_after(Survey(remaining={("pods", ""): 2}), (), NOW)
    second = conditions_after(Survey(remaining={("pods", ""): 1}), first, LATER)
    assert {one["lastTransitionTime"] for one in second} == {"2026-01-01T00:00:00Z"}
    third = conditions_after(Survey(), second, LATER)
    moved = [one["type"] for one in third if one["lastTransitionTime"] == "2026-01-02T00:00:00Z"]
    assert moved == ["NamespaceContentRemaining"]


def test_conditions_of_others_stay_as_and_where_they_are() -> None:
    other: Document = {"type": "Mine", "status": "Unknown", "more": 1}
    assert conditions_after(Survey(), [other], NOW)[0] == other


surveys = st.builds(
    Survey,
    unknown=st.lists(st.text(), max_size=2).map(tuple),
    failures=st.lists(st.text(), max_size=2).map(tuple),
    remaining=st.dictionaries(st.tuples(st.text(), st.text()), st.integers(1, 9), max_size=2),
    finalizers=st.dictionaries(st.text(), st.integers(1, 9), max_size=2),
)


@given(surveys)
def test_saying_the_same_again_changes_nothing(survey: Survey) -> None:
    once = conditions_after(survey, (), NOW)
    assert conditions_after(survey, once, LATER) == once


@given(surveys)
def test_only_a_namespace_about_which_all_is_well_is_clear(survey: Survey) -> None:
    troubled = {one["type"] for one in conditions_after(survey, (), NOW) if one["status"] == "True"}
    assert survey.is_clear == (not troubled - {"NamespaceFinalizersRemaining"})


class Emptied:
    """A namespace with a ConfigMap, a Secret and a Lease in it."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.network = FaultyTransport(client.transport)
        self.content = Content(Client(self.network, clock))

    async def fill(self) -> None:
        await self.client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        for kind in (ConfigMap, Secret, Lease):
            await self.client.create(kind(metadata=ObjectMeta(name="a", namespace=NAMESPACE)))

    async def left(self) -> list[str]:
        return [kind.__name__ for kind in (ConfigMap, Secret, Lease) if await self.client.list(kind, NAMESPACE)]


@pytest.fixture
async def emptied(clock: Clock) -> AsyncIterator[Emptied]:
    async with api_in_memory(clock) as (client, _):
        made = Emptied(client, clock)
        await made.fill()
        yield made


def refusing(status: int, method: str, plural: str) -> Plan:
    def plan(request: object) -> Fault | None:
        is_meant = str(request).startswith(method) and f"/{plural}" in str(request)
        return Says(status) if is_meant else None

    return plan


def without(discovery: Discovery, *verbs: str) -> Discovery:
    served = tuple(Served(one.resource, one.verbs.difference(verbs), one.is_preferred) for one in discovery.served)
    return msgspec.structs.replace(discovery, served=served)


def test_pods_go_first_and_only_what_is_in_namespaces_and_can_be_deleted_goes() -> None:
    def of(plural: str, verbs: frozenset[str] = EVERY, *, is_preferred: bool = True, namespaced: bool = True) -> Served:
        return Served(Resource("", "v1", plural, plural, namespaced), verbs, is_preferred)

    discovery = Discovery(
        (
            of("configmaps"),
            of("nodes", namespaced=False),
            of("bindings", frozenset({"create"})),
            of("pods"),
            of("old", is_preferred=False),
            of("secrets"),
        )
    )
    assert [one.resource.plural for one in deletable(discovery)] == ["pods", "configmaps", "secrets"]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], 0),
        ([(5, "Running"), (60, "Pending")], 60),
        ([(5, "Running"), (60, "Succeeded"), (90, "Failed")], 5),
        ([(None, "Running")], 30),
    ],
)
def test_the_slowest_pod_that_still_runs_decides_how_long_is_waited(pods: list[tuple[int | None, str]], expected: int) -> None:
    made = [
        Pod(
            spec=PodSpec(termination_grace_period_seconds=grace_s, containers=(Container(name="c"),)),
            status=PodStatus(phase=phase),
        )
        for grace_s, phase in pods
    ]
    assert longest_grace_s(made) == expected


def test_the_text_for_what_should_not_be_there() -> None:
    lease = unexpected("going", Lease.resource)
    assert lease == "unexpected items still remain in namespace: going for gvr: coordination.k8s.io/v1, Resource=leases"
    assert unexpected("a", ConfigMap.resource).endswith("for gvr: /v1, Resource=configmaps")


async def test_one_round_empties_a_namespace(emptied: Emptied) -> None:
    survey = await emptied.content.delete(NAMESPACE, await discover(emptied.client), 0)
    assert survey.is_clear
    assert await emptied.left() == []


async def test_a_kind_that_is_not_there_costs_one_question(emptied: Emptied) -> None:
    await emptied.content.delete(NAMESPACE, await discover(emptied.client), 0)
    about_roles = [str(call) for call in emptied.network.calls if call.path.endswith("/roles")]
    assert about_roles == [f"GET /apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"]


async def test_a_kind_without_collections_is_deleted_one_by_one(emptied: Emptied) -> None:
    discovery = without(await discover(emptied.client), "deletecollection")
    assert (await emptied.content.delete(NAMESPACE, discovery, 0)).is_clear
    assert await emptied.left() == []


async def test_a_kind_that_cannot_be_listed_is_deleted_as_a_whole(emptied: Emptied) -> None:
    discovery = without(await discover(emptied.client), "list")
    assert (await emptied.content.delete(NAMESPACE, discovery, 0)).is_clear
    assert await emptied.left() == []


async def test_a_kind_that_refuses_is_noted_and_the_others_go(emptied: Emptied) -> None:
    emptied.network.plan = refusing(403, "DELETE", "secrets")
    survey = await emptied.content.delete(NAMESPACE, await discover(emptied.client), 0)
    assert len(survey.failures) == 1
    assert not survey.is_clear
    assert await emptied.left() == ["Secret"]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_kind_that_is_not_really_there_is_passed_over(emptied: Emptied, status: int) -> None:
    emptied.network.plan = refusing(status, "GET", "secrets")
    assert (await emptied.content.delete(NAMESPACE, await discover(emptied.client), 0)).is_clear
    assert await emptied.left() == ["Secret"]


async def test_a_server_in_trouble_ends_the_round(emptied: Emptied) -> None:
    emptied.network.plan = refusing(503, "GET", "secrets")
    with pytest.raises(ServerFault):
        await emptied.content.delete(NAMESPACE, await discover(emptied.client), 0)


async def test_what_a_finalizer_holds_is_counted(emptied: Emptied) -> None:
    for name in "bc":
        metadata = ObjectMeta(name=name, namespace=NAMESPACE, finalizers=(HOLD,))
        await emptied.client.create(ConfigMap(metadata=metadata))
    survey = await emptied.content.delete(NAMESPACE, await discover(emptied.client), 0)
    assert survey.remaining == {("configmaps", ""): 2}
    assert survey.finalizers == {HOLD: 2}
    assert survey.failures == ()


@pytest.mark.parametrize(("deleted_for_s", "has_failed"), [(0.0, False), (29.0, False), (30.0, True)])
async def test_a_pod_beyond_its_grace_is_a_failure(emptied: Emptied, deleted_for_s: float, has_failed: bool) -> None:
    spec = PodSpec(node_name="n", termination_grace_period_seconds=30, containers=(Container(name="c", image="i"),))
    pod = Pod(metadata=ObjectMeta(name="p", namespace=NAMESPACE), spec=spec)
    await emptied.client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=NAMESPACE)))
    await emptied.client.create(pod)
    survey = await emptied.content.delete(NAMESPACE, await discover(emptied.client), deleted_for_s)
    assert survey.remaining == {("pods", ""): 1}
    assert survey.failures == ((unexpected(NAMESPACE, Pod.resource),) if has_failed else ())
    assert len(await emptied.left()) == 3


async def test_a_group_that_does_not_answer_keeps_the_namespace(emptied: Emptied) -> None:
    discovery = msgspec.structs.replace(await discover(emptied.client), unknown=("metrics.k8s.io/v1beta1",))
    survey = await emptied.content.delete(NAMESPACE, discovery, 0)
    assert await emptied.left() == []
    assert not survey.is_clear


class Ended:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.network = FaultyTransport(client.transport)

    async def make(self) -> Namespace:
        made = await self.client.create(Namespace(metadata=ObjectMeta(name=GOING.name)))
        for kind in (ConfigMap, Secret):
            await self.client.create(kind(metadata=ObjectMeta(name="a", namespace=GOING.name)))
        return made

    async def is_there(self) -> bool:
        try:
            await self.client.get(Namespace, GOING)
        except NotFound:
            return False
        return True

    async def says(self, type: str) -> tuple[str, str, str]:
        return (await self.client.get(ConditionedNamespace, GOING)).says(type)


@pytest.fixture
async def ended(clock: Clock) -> AsyncIterator[Ended]:
    async with api_in_memory(clock) as (client, _):
        made = Ended(client)
        task = asyncio.create_task(run_alone(Ending, Client(made.network, clock)))
        yield made
        task.cancel()
        await asyncio.wait([task])


async def test_a_kind_that_refuses_keeps_the_namespace_and_says_so(ended: Ended) -> None:
    def refuse_secrets(request: Request) -> Fault | None:
        return Says(403) if request.method == "DELETE" and request.path.endswith("/secrets") else None

    await ended.make()
    ended.network.plan = refuse_secrets
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    assert await ended.is_there()
    status, reason, message = await ended.says("NamespaceDeletionContentFailure")
    assert (status, reason) == ("True", "ContentDeletionFailed")
    assert message.startswith("Failed to delete all resource types, 1 remaining: DELETE ")
    ended.network.heal()
    await elapse(LONG_S)
    assert not await ended.is_there()


@pytest.mark.parametrize("fault", [Refused(), Lost(), Says(500), Says(409), Says(429, 1)], ids=repr)
async def test_an_outage_only_delays_the_end(ended: Ended, fault: Fault) -> None:
    await ended.make()
    ended.network.plan = always(fault)
    ended.network.sever()
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    ended.network.heal()
    await elapse(LONG_S)
    assert not await ended.is_there()


async def test_a_namespace_that_lives_is_never_emptied(ended: Ended) -> None:
    await ended.make()
    await elapse(LONG_S)
    assert [obj.name for obj in await ended.client.list(Secret, GOING.name)] == ["a"]
    assert not [call for call in ended.network.calls if call.method == "DELETE"]


async def test_a_namespace_made_again_under_the_same_name_is_another_one(ended: Ended) -> None:
    await ended.make()
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    again = await ended.make()
    await elapse(LONG_S)
    assert (await ended.client.get(Namespace, GOING)).uid == again.uid
    assert [obj.name for obj in await ended.client.list(Secret, GOING.name)] == ["a"]


async def test_a_stuck_namespace_is_looked_at_ever_less_often(ended: Ended) -> None:
    await ended.make()
    await ended.client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=GOING.name, finalizers=("x.test/hold",))))
    await ended.client.delete(Namespace, GOING)
    await elapse(LONG_S)
    rounds = sum(call.path == "/apis" for call in ended.network.calls)
    assert LONG_S / 10 <= rounds < LONG_S / 4


def test_the_status_keeps_what_it_does_not_know(clock: Clock) -> None:
    status = status_after({"phase": "Active", "future": 1}, Survey(), clock.now())
    assert (status["phase"], status["future"], len(status["conditions"])) == ("Terminating", 1, 5)


@pytest.mark.parametrize("document", [{}, {"spec": None}, {"spec": {}}, {"spec": {"finalizers": None}}])
def test_a_namespace_without_finalizers(document: dict[str, object]) -> None:
    assert finalizers_of(document) == []
