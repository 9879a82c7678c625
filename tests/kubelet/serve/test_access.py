"""What a caller may do: paths become subresources of the Node, and the API decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import ObjectMeta
from applecart.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kubelet.serve.access import ALLOWED_S, DENIED_S, Access, Asked, asked, forbidden
from applecart.kubelet.serve.callers import Caller, CannotAsk
from tests.kube.embedded_api import serving
from tests.kubelet.serve.test_callers import Counted
from tests.virtual_time import elapse

RBAC = "rbac.authorization.k8s.io"
ANN = Caller("ann", ("system:authenticated",))
LOGS = Asked("get", ("proxy",))


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/containerLogs/ns/pod/vm", "get", ("proxy",)),
        ("GET", "/exec/ns/pod/vm", "create", ("proxy",)),
        ("POST", "/exec/ns/pod/vm", "create", ("proxy",)),
        ("GET", "/attach/ns/pod/vm", "create", ("proxy",)),
        ("GET", "/stats/summary", "get", ("stats",)),
        ("GET", "/metrics", "get", ("metrics",)),
        ("GET", "/metrics/resource", "get", ("metrics",)),
        ("GET", "/logs/system.log", "get", ("log",)),
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("GET", "/healthz", "get", ("healthz", "proxy")),
        ("DELETE", "/anything", "delete", ("proxy",)),
        ("HEAD", "/", "get", ("proxy",)),
    ],
)
def test_a_path_is_asked_about_as_a_kubelet_asks(method: str, path: str, verb: str, subresources: tuple[str, ...]) -> None:
    assert asked(method, path) == Asked(verb, subresources)


@given(st.text(), st.text())
def test_every_path_is_something_to_ask_about(method: str, path: str) -> None:
    assert asked(method, path).subresources


def test_a_refusal_has_a_kubelets_words() -> None:
    assert forbidden(ANN, asked("GET", "/pods")) == (
        "Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[pods proxy])"
    )


async def allow(client: Client, user: str, verb: str, *resources: str, nodes: tuple[str, ...] = ()) -> None:
    name = f"{user}-{verb}-{len(resources)}"
    rule = PolicyRule(verbs=(verb,), api_groups=("",), resources=resources, resource_names=nodes)
    await client.create(ClusterRole(metadata=ObjectMeta(name=name), rules=(rule,)))
    await client.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            role_ref=RoleRef(kind="ClusterRole", name=name, api_group=RBAC),
            subjects=(Subject(kind="User", name=user, api_group=RBAC),),
        )
    )


async def test_the_api_decides_and_its_yes_is_good_for_five_minutes(clock: Clock) -> None:
    async with serving(clock) as running:
        wire = Counted(running.transport())
        client = Client(wire, clock)
        await allow(client, "ann", "get", "nodes/proxy", nodes=("mac-1",))
        access = Access(client, "mac-1", clock)
        wire.sent.clear()
        assert [await access.allows(ANN, LOGS) for _ in range(3)] == [True] * 3
        assert len(wire.sent) == 1
        wire.is_cut = True
        await elapse(ALLOWED_S - 1)
        assert await access.allows(ANN, LOGS)
        await elapse(1)
        with pytest.raises(CannotAsk, match="ann"):
            await access.allows(ANN, LOGS)


async def test_a_no_is_good_for_half_a_minute(clock: Clock) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        access = Access(client, "mac-1", clock)
        assert not await access.allows(ANN, LOGS)
        await allow(client, "ann", "get", "nodes/proxy")
        await elapse(DENIED_S - 1)
        assert not await access.allows(ANN, LOGS)
        await elapse(1)
        assert await access.allows(ANN, LOGS)


async def test_rights_to_another_node_or_to_read_are_no_rights_to_run_commands(clock: Clock) -> None:
    """A WebSocket begins with GET: for years `get nodes/proxy` was enough to run commands on every node."""
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        await allow(client, "ann", "get", "nodes/proxy", nodes=("mac-1",))
        assert not await Access(client, "mac-2", clock).allows(ANN, LOGS)
        assert not await Access(client, "mac-1", clock).allows(ANN, asked("GET", "/exec/ns/pod/vm"))


@pytest.mark.parametrize("resource", ["nodes/pods", "nodes/proxy"])
async def test_one_of_two_subresources_is_enough(clock: Clock, resource: str) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        await allow(client, "ann", "get", resource)
        assert await Access(client, "mac-1", clock).allows(ANN, asked("GET", "/pods"))


async def test_the_api_server_is_let_in_without_asking_the_api(clock: Clock) -> None:
    async with serving(clock) as running:
        wire = Counted(running.transport())
        wire.is_cut = True
        access = Access(Client(wire, clock), "mac-1", clock)
        for caller in (
            Caller("kube-apiserver-kubelet-client", has_certificate=True),
            Caller("root", ("system:masters",), has_certificate=True),
        ):
            assert await access.allows(caller, asked("GET", "/exec/ns/pod/vm"))
        with pytest.raises(CannotAsk):
            await access.allows(Caller("kube-apiserver-kubelet-client"), LOGS)  # a token may say any name
