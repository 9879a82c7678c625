"""The agent's rights are enough for each of its calls, and for nothing beside them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import yaml

from applecart.api import names, well_known_names
from applecart.api.authentication import TokenRequest, TokenRequestSpec, TokenReview, TokenReviewSpec
from applecart.api.authorization import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from applecart.api.coordination import Lease
from applecart.api.core import ConfigMap, Namespace, Secret, ServiceAccount
from applecart.api.events import Event
from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key, ObjectMeta
from applecart.api.node_access import NODE_LEASES, ROLE, bindings, cluster_role, lease_role, namespace_role, roles
from applecart.api.nodes import Node
from applecart.api.pods import ObjectReference, Pod
from applecart.api.rbac import ClusterRoleBinding, PolicyRule
from applecart.clock import Clock
from applecart.embedded.auth.user import AUTHENTICATED, SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS, User
from applecart.embedded.binaries.cluster import Options
from applecart.embedded.server.server import RunningApi
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import Forbidden
from applecart.kube.patch import Merge, Strategic
from tests.kube.embedded_api import serving
from tests.kube.objects import pod
from tests.kubernetes.cluster import FullCluster

MACHINE = "mac-7"
HOME = "fleet"  # where machines and their identities are
PODS_IN = "ci"
ELSEWHERE = "test"

Call = Callable[[Client], Awaitable[object]]


def metadata(name: str, namespace: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


def agent_user() -> User:
    name = f"{SERVICE_ACCOUNT_PREFIX}{HOME}:{names.node_identity(MACHINE)}"
    return User(name, (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{HOME}", AUTHENTICATED))


async def furnish(admin: Client) -> None:
    """A Pod and its belongings in two namespaces, one of which the agent serves."""
    for granted in (*roles([PODS_IN]), *bindings(MACHINE, HOME, [PODS_IN])):
        await admin.create(granted)
    await admin.create(Node(metadata=metadata("other-mac")))
    for namespace in (PODS_IN, ELSEWHERE):
        await admin.create(pod(namespace, "runner", node_name=MACHINE))
        await admin.create(Secret(metadata=metadata("settings", namespace)))
        await admin.create(ConfigMap(metadata=metadata("settings", namespace)))
        await admin.create(ServiceAccount(metadata=metadata("runner", namespace)))


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock, [HOME, PODS_IN, ELSEWHERE]) as running:
        await furnish(Client(running.transport(), clock))
        yield running


@pytest.fixture
def agent(running: RunningApi, clock: Clock) -> Client:
    return Client(running.transport(agent_user()), clock)


def event(namespace: str, kind: str) -> Event:
    about = ObjectReference(api_version="v1", kind=kind, name="runner", namespace="" if kind == "Node" else namespace)
    return Event(metadata=metadata("it-happened", namespace), involved_object=about, reason="CreatingVM", type="Normal")


def token_request() -> TokenRequest:
    return TokenRequest(spec=TokenRequestSpec(audiences=(well_known_names.DISPATCH_AUDIENCE,), expiration_seconds=3600))


async def registers(agent: Client) -> None:
    await agent.create(Node(metadata=metadata(MACHINE)))
    await agent.patch(Node, Key("", MACHINE), Merge({"metadata": {"labels": {"a": "b"}}}))
    await agent.patch_status(Node, Key("", MACHINE), Strategic({"status": {"nodeInfo": {"operatingSystem": "darwin"}}}))
    await agent.list(Node, fields=f"metadata.name={MACHINE}")


async def beats(agent: Client) -> None:
    key = Key(NODE_LEASES, MACHINE)
    await agent.create(Lease(metadata=metadata(MACHINE, NODE_LEASES)))
    await agent.patch(Lease, key, Merge({"spec": {"leaseDurationSeconds": 40}}))
    await agent.get(Lease, key)


async def runs_a_pod(agent: Client) -> None:
    for namespace in (PODS_IN, ELSEWHERE):
        key = Key(namespace, "runner")
        assert [one.name for one in await agent.list(Pod, fields=f"spec.nodeName={MACHINE}")]
        await agent.get(Pod, key)
        await agent.patch(Pod, key, Merge({"metadata": {"finalizers": [VM_CLEANUP]}}))
        await agent.patch_status(Pod, key, Strategic({"status": {"phase": "Succeeded"}}))
        await agent.patch(Pod, key, Merge({"metadata": {"finalizers": None}}))
        await agent.delete(Pod, key, grace_s=0)


async def reads_what_a_pod_names(agent: Client) -> None:
    await agent.get(Secret, Key(PODS_IN, "settings"))
    await agent.get(ConfigMap, Key(PODS_IN, "settings"))
    await agent.get(ServiceAccount, Key(PODS_IN, "runner"))
    await agent.create_subresource(ServiceAccount, Key(PODS_IN, "runner"), "token", token_request())


async def records(agent: Client) -> None:
    for namespace, kind in ((PODS_IN, "Pod"), (ELSEWHERE, "Pod"), ("default", "Node")):
        await agent.create(event(namespace, kind))
        await agent.patch(Event, Key(namespace, "it-happened"), Merge({"count": 2}))


async def asks_who_may(agent: Client) -> None:
    await agent.create(TokenReview(spec=TokenReviewSpec(token="not-a-token")))
    wanted = ResourceAttributes(verb="get", resource="nodes", subresource="proxy", name=MACHINE)
    await agent.create(SubjectAccessReview(spec=SubjectAccessReviewSpec(user="alice", resource_attributes=wanted)))


CALLS: tuple[Call, ...] = (registers, beats, reads_what_a_pod_names, records, asks_who_may, runs_a_pod)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_an_agent_with_exactly_these_rights_can_do_its_work(agent: Client, call: Call) -> None:
    """Incident 14: an agent that was to end Pods had no right to delete them, and every deletion was refused."""
    await call(agent)


REFUSED: dict[str, Call] = {
    "read a Secret of another namespace": lambda agent: agent.get(Secret, Key(ELSEWHERE, "settings")),
    "read a Secret beside its own identity": lambda agent: agent.get(Secret, Key(HOME, names.node_identity_token(MACHINE))),
    "list the Secrets of a namespace it serves": lambda agent: agent.list(Secret, PODS_IN),
    "list all Secrets": lambda agent: agent.list(Secret),
    "write a Secret": lambda agent: agent.create(Secret(metadata=metadata("new", PODS_IN))),
    "read a ConfigMap of another namespace": lambda agent: agent.get(ConfigMap, Key(ELSEWHERE, "settings")),
    "list ConfigMaps": lambda agent: agent.list(ConfigMap, PODS_IN),
    "mint a token in another namespace": lambda agent: agent.create_subresource(
        ServiceAccount, Key(ELSEWHERE, "runner"), "token", token_request()
    ),
    "mint a token of another agent": lambda agent: agent.create_subresource(
        ServiceAccount, Key(HOME, names.node_identity("mac-8")), "token", token_request()
    ),
    "delete a Node": lambda agent: agent.delete(Node, Key("", "other-mac")),
    "create a Pod": lambda agent: agent.create(pod(PODS_IN, "another")),
    "delete a Lease": lambda agent: agent.delete(Lease, Key(NODE_LEASES, MACHINE)),
    "touch a Lease of a leader election": lambda agent: agent.patch(
        Lease, Key(HOME, well_known_names.RUNNERS_LEADER), Merge({"spec": {"holderIdentity": "me"}})
    ),
    "read Events": lambda agent: agent.list(Event, PODS_IN),
    "list namespaces": lambda agent: agent.list(Namespace),
    "grant itself more": lambda agent: agent.patch(
        ClusterRoleBinding, Key("", names.node_identity(MACHINE)), Merge({"subjects": []})
    ),
}


@pytest.mark.parametrize("wanted", REFUSED)
async def test_what_an_agent_does_not_need_is_refused(agent: Client, wanted: str) -> None:
    """Weakness 30: every host's identity could read all Secrets of the cluster and mint tokens for any ServiceAccount."""
    with pytest.raises(Forbidden):
        await REFUSED[wanted](agent)


async def test_without_its_bindings_an_agent_may_do_nothing(running: RunningApi, clock: Clock) -> None:
    stranger = Client(running.transport(User(f"{SERVICE_ACCOUNT_PREFIX}{HOME}:tart-kubelet-mac-8", (AUTHENTICATED,))), clock)
    for call in CALLS:
        with pytest.raises(Forbidden):
            await call(stranger)


@pytest.fixture(scope="module")
def cluster_of_its_own(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    """The ClusterRole has one name, which others may use on a cluster that is shared."""
    cluster = FullCluster(kube_programs, tmp_path_factory.mktemp("access"), Options(durable=False))
    asyncio.run(cluster.start())
    yield cluster
    asyncio.run(cluster.stop())


@pytest.mark.kubernetes
async def test_a_real_kubernetes_allows_and_refuses_the_same(
    cluster_of_its_own: FullCluster, clock: Clock, tmp_path: Path
) -> None:
    admin = Client(connect(str(cluster_of_its_own.kubeconfig), None, clock, environ={}), clock)
    config = yaml.safe_load(cluster_of_its_own.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] |= {"as": agent_user().name, "as-groups": list(agent_user().groups)}
    file = tmp_path / "agent.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    agent = Client(connect(str(file), None, clock, environ={}), clock)
    for name in (HOME, PODS_IN, ELSEWHERE):
        await admin.create(Namespace(metadata=metadata(name)))
    await furnish(admin)
    for call in CALLS:
        await call(agent)
    for call in REFUSED.values():
        with pytest.raises(Forbidden):
            await call(agent)
    await agent.aclose()
    await admin.aclose()


def every_rule() -> list[PolicyRule]:
    return [rule for role in (cluster_role(), lease_role(), namespace_role(PODS_IN)) for rule in role.rules or ()]


def test_no_rule_is_a_wildcard_or_reaches_secrets_from_the_whole_cluster() -> None:
    for rule in every_rule():
        assert not {"*", "escalate", "bind", "impersonate"} & {*rule.verbs, *rule.resources, *rule.api_groups}
    reached = {resource.partition("/")[0] for rule in cluster_role().rules or () for resource in rule.resources}
    assert not reached & {"secrets", "configmaps", "serviceaccounts"}


def test_every_role_has_the_name_that_the_bindings_refer_to() -> None:
    for role in roles(["b", "a", "b"]):
        assert role.name == ROLE
    assert [role.namespace for role in roles(["b", "a", "b"])] == ["", NODE_LEASES, "a", "b"]
    for binding in bindings(MACHINE, HOME, ["b", "a", "b"]):
        assert binding.role_ref.name == ROLE
        assert binding.name == names.node_identity(MACHINE)
        assert [(one.name, one.namespace) for one in binding.subjects] == [(names.node_identity(MACHINE), HOME)]
    assert [binding.namespace for binding in bindings(MACHINE, HOME, ["b", "a", "b"])] == ["", NODE_LEASES, "a", "b"]


def test_a_machine_name_that_is_none_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadInput, match="machine name 'Mac 7' is not a DNS label"):
        bindings("Mac 7", HOME, [])
