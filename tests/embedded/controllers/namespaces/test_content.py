"""Emptying a namespace: the order, the grace, and what a refusal means for the rest."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from applecart.api.containers import Container
from applecart.api.coordination import Lease
from applecart.api.core import ConfigMap, Namespace, Secret, ServiceAccount
from applecart.api.meta import ObjectMeta, Resource
from applecart.api.pods import Pod, PodSpec, PodStatus
from applecart.clock import Clock
from applecart.embedded.controllers.namespaces.content import Content, deletable, longest_grace_s, unexpected
from applecart.kube.client import Client
from applecart.kube.discovery import Discovery, Served, discover
from applecart.kube.errors import ServerFault
from tests.embedded.controllers.scene import HOLD
from tests.embedded.controllers.stages import api_in_memory
from tests.kube.faults import Fault, FaultyTransport, Plan, Says

EVERY = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
NAMESPACE = "going"


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
