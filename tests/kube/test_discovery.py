"""What a server serves: read from recorded answers, from the embedded API, and from a real one."""

from typing import Any

import msgspec
import pytest

from applecart.api.coordination import Lease
from applecart.api.core import ConfigMap
from applecart.api.meta import Resource
from applecart.api.nodes import Node
from applecart.clock import Clock
from applecart.errors import ControlPlaneFault
from applecart.kube.client import Client
from applecart.kube.codec import Garbled
from applecart.kube.connect import connect
from applecart.kube.discovery import ACCEPT, Discovery, discover
from applecart.kube.errors import ServerFault
from applecart.kube.transport import Request, Response, Stream
from tests.embedded.controllers.stages import api_in_memory
from tests.kubernetes.cluster import FullCluster


class Recorded:
    """A server that answers the two questions of discovery from a recording."""

    def __init__(self, core: Any, groups: Any, status: int = 200) -> None:
        self.asked: list[Request] = []
        self._answers = {"/api": core, "/apis": groups}
        self._status = status

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(self._status, msgspec.json.encode(self._answers[request.path]))

    async def open(self, request: Request) -> Stream:
        raise AssertionError("discovery opens no stream")

    async def aclose(self) -> None: ...


def answer(*items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": list(items)}


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name} if name else {}, "versions": list(versions)}


def version(name: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {"version": name, "resources": list(resources), "freshness": freshness}


def resource(plural: str, kind: str, scope: str = "Namespaced", *verbs: str) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "verbs": list(verbs) or ["delete", "get", "list", "watch"],
        "subresources": [{"subresource": "status", "verbs": ["get"]}],
    }


async def discovered(clock: Clock, core: Any, groups: Any) -> Discovery:
    return await discover(Client(Recorded(core, groups), clock))


async def test_two_questions_are_enough(clock: Clock) -> None:
    server = Recorded(answer(), answer())
    await discover(Client(server, clock))
    assert [(str(asked), asked.accept) for asked in server.asked] == [("GET /api", ACCEPT), ("GET /apis", ACCEPT)]


async def test_groups_scopes_and_verbs_are_told(clock: Clock) -> None:
    core = answer(group("", version("v1", resource("nodes", "Node", "Cluster", "get"))))
    groups = answer(group("coordination.k8s.io", version("v1", resource("leases", "Lease"))))
    found = await discovered(clock, core, groups)
    assert [one.resource for one in found.served] == [Node.resource, Lease.resource]
    nodes, leases = found.served
    assert nodes.allows("get")
    assert not nodes.allows("get", "delete")
    assert leases.allows("delete", "list", "watch")


async def test_a_resource_is_preferred_in_the_first_version_that_has_it(clock: Clock) -> None:
    versions = (
        version("v2", resource("a", "A")),
        version("v1", resource("a", "A"), resource("b", "B")),
        version("v1beta1", resource("b", "B")),
    )
    found = await discovered(clock, answer(), answer(group("x.test", *versions)))
    assert [(one.resource.plural, one.resource.version) for one in found.preferred()] == [("a", "v2"), ("b", "v1")]
    assert found.find("x.test/v1beta1", "B") == Resource("x.test", "v1beta1", "B", "b")
    assert found.find("x.test/v1beta1", "A") is None
    assert found.find("v1", "B") is None


async def test_a_group_whose_server_does_not_answer_is_unknown_and_not_empty(clock: Clock) -> None:
    found = await discovered(clock, answer(), answer(group("metrics.k8s.io", version("v1beta1", freshness="Stale"))))
    assert found.unknown == ("metrics.k8s.io/v1beta1",)
    assert found.is_unknown("metrics.k8s.io")
    assert not found.is_unknown("metrics")


@pytest.mark.parametrize(
    "document", [[], "x", {"kind": "APIGroupDiscoveryList", "items": [1]}, {"items": [{"versions": [{}]}]}]
)
async def test_an_answer_that_is_none_is_garbled(clock: Clock, document: Any) -> None:
    with pytest.raises(Garbled):
        await discovered(clock, answer(), document)


async def test_a_server_too_old_for_the_form_is_told_so(clock: Clock) -> None:
    old = {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
    with pytest.raises(ControlPlaneFault, match=r"Kubernetes 1\.27"):
        await discovered(clock, answer(), old)


async def test_a_refusal_is_a_refusal(clock: Clock) -> None:
    with pytest.raises(ServerFault):
        await discover(Client(Recorded({}, {}, 503), clock))


async def check_server(client: Client) -> None:
    found = await discover(client)
    assert found.unknown == ()
    assert found.find("v1", "ConfigMap") == ConfigMap.resource
    assert found.find("v1", "Node") == Node.resource
    assert found.find("coordination.k8s.io/v1", "Lease") == Lease.resource
    assert found.find("v1", "Ghost") is None
    by_label = {one.resource.label: one for one in found.preferred()}
    assert by_label["configmaps"].allows("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    assert not by_label["namespaces"].allows("deletecollection")
    assert not by_label["tokenreviews.authentication.k8s.io"].allows("delete")


async def test_the_embedded_api_tells_what_it_serves(clock: Clock) -> None:
    async with api_in_memory(clock) as (client, _):
        await check_server(client)


@pytest.mark.kubernetes
async def test_a_real_server_tells_what_it_serves(real_cluster: FullCluster, clock: Clock) -> None:
    client = Client(connect(str(real_cluster.kubeconfig), None, clock, environ={}), clock)
    try:
        await check_server(client)
    finally:
        await client.aclose()
