"""Nobody's fields are lost, whoever writes with whatever: stories told to the API, and the owners it names."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from applecart.clock import Clock
from applecart.embedded.patching.apply import LAST_APPLIED
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.server.server import ADMIN, RunningApi
from applecart.kube.transport import Request
from tests.embedded.patching.shapes import GROUP, PROBE_CRD
from tests.embedded.schema.definition_documents import GROUP as SCALES
from tests.embedded.schema.definition_documents import SCALED
from tests.kube.embedded_api import serving

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/ci/configmaps"
PODS = "/api/v1/namespaces/ci/pods"
CLIENT_SIDE = "kubectl-client-side-apply"


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock, ["ci"]) as running:
        yield running


class Kubectl:
    """The requests that kubectl sends, as its `-v 8` shows them."""

    def __init__(self, running: RunningApi) -> None:
        self._transport = running.transport()

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        answer = await self._transport.send(Request(method, path, tuple(query.items()), sent, content_type))
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    async def get(self, path: str) -> Any:
        return await self.call("GET", path)

    async def bind(self, name: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": "mac-1"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.call("POST", f"{PODS}/{name}/binding", body)

    async def apply(self, collection: str, body: dict[str, Any]) -> Any:
        """`kubectl apply -f`, of an object that is not there yet."""
        text = json.dumps(body, separators=(",", ":")) + "\n"
        metadata = {**body["metadata"], "annotations": {LAST_APPLIED: text}}
        return await self.call("POST", collection, {**body, "metadata": metadata}, fieldManager=CLIENT_SIDE)

    async def patch(self, path: str, body: Any, content_type: str = MERGE, manager: str = "provider") -> Any:
        return await self.call("PATCH", path, body, content_type, fieldManager=manager)

    async def apply_on_the_server(self, path: str, body: dict[str, Any]) -> Any:
        """`kubectl apply --server-side -f`: what a client-side apply owned is handed over, and then it applies again."""
        applied = await self.call("PATCH", path, body, APPLY, fieldManager="kubectl", force="false")
        entries = applied["metadata"]["managedFields"]
        moved = [one for one in entries if one["operation"] == "Update" and _owns_last_applied(one["fieldsV1"])]
        if not moved:
            return applied
        kubectl = next(one for one in entries if one["manager"] == "kubectl" and one["operation"] == "Apply")
        for one in moved:
            _unite(kubectl["fieldsV1"], one["fieldsV1"])
        migration = [
            {"op": "replace", "path": "/metadata/managedFields", "value": [one for one in entries if one not in moved]},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": applied["metadata"]["resourceVersion"]},
        ]
        await self.patch(path, migration, JSON_PATCH, "kubectl")
        return await self.call("PATCH", path, body, APPLY, fieldManager="kubectl", force="false")


def _owns_last_applied(fields: dict[str, Any]) -> bool:
    return f"f:{LAST_APPLIED}" in fields.get("f:metadata", {}).get("f:annotations", {})


def _unite(fields: dict[str, Any], more: dict[str, Any]) -> None:
    for name, below in more.items():
        _unite(fields.setdefault(name, {}), below)


def owners(document: dict[str, Any]) -> dict[str, Any]:
    """Fields by manager and subresource."""
    entries = document["metadata"].get("managedFields", [])
    return {one["manager"] + "/" * ("subresource" in one) + one.get("subresource", ""): one["fieldsV1"] for one in entries}


async def test_server_side_apply_keeps_what_others_wrote_after_a_client_side_apply(running: RunningApi) -> None:
    """Seen with kubectl: a finalizer, a label and a field of a provider were gone after `apply --server-side` of the same file,
    because nobody had owned them until then and kubectl took over all that nobody owned."""
    kubectl = Kubectl(running)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": "v"}}
    await kubectl.apply(MAPS, body)
    guard = {"metadata": {"finalizers": ["provider.dev/guard"], "labels": {"claimed": "yes"}}, "data": {"host": "mac-1"}}
    await kubectl.patch(f"{MAPS}/a", guard)
    applied = await kubectl.apply_on_the_server(f"{MAPS}/a", body)
    assert applied["metadata"]["finalizers"] == ["provider.dev/guard"]
    assert applied["metadata"]["labels"] == {"app": "x", "claimed": "yes"}
    assert applied["data"] == {"k": "v", "host": "mac-1"}
    assert owners(applied)["provider"] == {
        "f:data": {"f:host": {}},
        "f:metadata": {
            "f:finalizers": {".": {}, 'v:"provider.dev/guard"': {}},
            "f:labels": {"f:claimed": {}},
        },
    }


async def test_server_side_apply_of_a_bound_pod_leaves_it_where_it_runs(running: RunningApi) -> None:
    """Seen with kubectl: the apply wanted to remove `nodeName` and the status, and was refused."""
    kubectl = Kubectl(running)
    containers = [{"name": "main", "image": "example.invalid/app"}]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}}
    await kubectl.apply(PODS, body)
    target = {"apiVersion": "v1", "kind": "Node", "name": "mac-1"}
    await kubectl.call(
        "POST", f"{PODS}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    )
    await kubectl.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}, STRATEGIC, "kubelet")
    await kubectl.patch(f"{PODS}/a", {"metadata": {"finalizers": ["kubelet.dev/vm"]}}, MERGE, "kubelet")
    applied = await kubectl.apply_on_the_server(f"{PODS}/a", body)
    assert applied["spec"]["nodeName"] == "mac-1"
    assert applied["status"]["phase"] == "Running"
    assert applied["metadata"]["finalizers"] == ["kubelet.dev/vm"]
    assert owners(applied)["kubelet/status"] == {"f:status": {"f:phase": {}}}


async def test_what_the_server_does_to_a_pod_is_nobodys(running: RunningApi) -> None:
    kubectl = Kubectl(running)
    containers = [{"name": "main", "image": "example.invalid/app"}]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "finalizers": ["a.b/c"]},
        "spec": {"containers": containers},
    }
    created = await kubectl.call("POST", PODS, body, fieldManager="maker")
    target = {"apiVersion": "v1", "kind": "Node", "name": "mac-1"}
    await kubectl.call(
        "POST", f"{PODS}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    )
    await kubectl.call("POST", f"{PODS}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}})
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
    await kubectl.call("DELETE", f"{PODS}/a", options)
    marked = await kubectl.get(f"{PODS}/a")
    assert marked["spec"]["nodeName"] == "mac-1"
    assert "deletionTimestamp" in marked["metadata"]
    assert owners(marked) == owners(created)


async def test_what_the_server_makes_for_itself_is_its_own(running: RunningApi) -> None:
    """As on a real 1.36."""
    kubectl = Kubectl(running)
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    namespace = await kubectl.get("/api/v1/namespaces/kube-system")
    assert owners(namespace) == {"kube-apiserver": {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}}}
    marks: dict[str, Any] = {
        "f:annotations": {".": {}, "f:rbac.authorization.kubernetes.io/autoupdate": {}},
        "f:labels": {".": {}, "f:kubernetes.io/bootstrapping": {}},
    }
    assert owners(await kubectl.get(f"{roles}/cluster-admin")) == {"kube-apiserver": {"f:metadata": marks, "f:rules": {}}}
    selectors = {"f:aggregationRule": {".": {}, "f:clusterRoleSelectors": {}}, "f:metadata": marks}
    admin = await kubectl.get(f"{roles}/admin")
    assert owners(admin) == {"clusterrole-aggregation-controller": {"f:rules": {}}, "kube-apiserver": selectors}
    assert admin["metadata"]["managedFields"][0]["operation"] == "Apply"


async def test_what_the_server_says_of_a_definition_is_its_own(running: RunningApi) -> None:
    """As on a real 1.36."""
    kubectl = Kubectl(running)
    collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await kubectl.call("POST", collection, PROBE_CRD, fieldManager="me")
    owned = owners(await kubectl.get(f"{collection}/probes.{GROUP}"))
    said: dict[str, Any] = {".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {}}
    assert owned["kube-apiserver/status"] == {
        "f:status": {
            "f:acceptedNames": {"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:singular": {}},
            "f:conditions": {'k:{"type":"Established"}': said, 'k:{"type":"NamesAccepted"}': said},
        }
    }
    assert list(owned["me"]) == ["f:spec"]


@pytest.mark.parametrize(
    ("name", "program", "manager"),
    [("m" * 128, "p/1", "m" * 128), ("", "p" * 200 + "/1", "p" * 128), ("", "p" * 127 + "\u00e9/1", "p" * 127)],
)
async def test_a_manager_is_who_says_so_or_the_beginning_of_the_program(
    running: RunningApi, name: str, program: str, manager: str
) -> None:
    body = json.dumps({"metadata": {"name": "a"}, "data": {"k": "v"}}).encode()
    headers = {"content-type": "application/json", "user-agent": program}
    answer = await running.api.handle(ApiRequest("POST", MAPS, {"fieldManager": name} if name else {}, ADMIN, headers, body))
    assert isinstance(answer, Answer)
    assert list(owners(json.loads(answer.body))) == [manager]


@pytest.mark.parametrize("name", ["m" * 129, "\u00e9" * 65])
async def test_the_name_of_a_manager_has_so_many_bytes(running: RunningApi, name: str) -> None:
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    answer = await running.transport().send(Request("POST", MAPS, (("fieldManager", name),), body))
    assert answer.status == 422
    assert b"fieldManager: Too long: may not be more than 128 bytes" in answer.body


@pytest.mark.parametrize(("force", "code"), [("true", 200), ("false", 409), (None, 409)])
async def test_a_conflict_is_overridden_only_by_who_says_so(running: RunningApi, force: str | None, code: int) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    await Kubectl(running).call("POST", MAPS, body)
    query = (("fieldManager", "other"), *([] if force is None else [("force", force)]))
    applied = json.dumps({**body, "data": {"k": "w"}}).encode()
    answer = await running.transport().send(Request("PATCH", f"{MAPS}/a", query, applied, APPLY))
    assert answer.status == code


async def test_an_object_that_is_too_large_with_its_owners_is_stored_without_them(running: RunningApi) -> None:
    """As the real server does it: owners of many empty fields take as much as the fields."""
    data = {f"{number:0200}": "" for number in range(4500)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    created = await Kubectl(running).call("POST", MAPS, body)
    assert created["data"] == data
    assert owners(created) == {}


@pytest.mark.parametrize("cleared", [[], [{}]], ids=repr)
async def test_an_object_without_owners_keeps_what_it_has_when_somebody_applies(
    running: RunningApi, cleared: list[dict[str, Any]]
) -> None:
    """Objects of a database from before owners were tracked, and those whose owners somebody cleared."""
    kubectl = Kubectl(running)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": "v"}}
    await kubectl.call("POST", MAPS, body)
    await kubectl.patch(f"{MAPS}/a", {"metadata": {"managedFields": cleared}})
    written = await kubectl.patch(f"{MAPS}/a", {"data": {"host": "mac-1"}})
    assert owners(written) == {}
    applied = await kubectl.call("PATCH", f"{MAPS}/a", {**body, "data": {"k": "v"}}, APPLY, fieldManager="m1")
    assert applied["data"] == {"k": "v", "host": "mac-1"}
    assert owners(applied) == {
        "m1": {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:app": {}}}},
        "before-first-apply": {
            "f:data": {".": {}, "f:host": {}, "f:k": {}},
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        },
    }


async def test_who_scales_takes_the_number_from_its_applier(running: RunningApi) -> None:
    """Seen with `kubectl scale`: the applier went on as the owner, and its next apply set the number back unopposed."""
    kubectl = Kubectl(running)
    await kubectl.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SCALED)
    path = f"/apis/{SCALES}/v1/scales/a"
    body = {"apiVersion": f"{SCALES}/v1", "kind": "Scales", "metadata": {"name": "a"}, "spec": {"replicas": 1}}
    await kubectl.call("PATCH", path, body, APPLY, fieldManager="owner")
    await kubectl.patch(f"{path}/scale", {"spec": {"replicas": 1}}, manager="scaler")
    assert owners(await kubectl.get(path)) == {"owner": {"f:spec": {"f:replicas": {}}}}
    await kubectl.patch(f"{path}/scale", {"spec": {"replicas": 2}}, manager="scaler")
    assert owners(await kubectl.get(path)) == {"scaler/scale": {"f:spec": {"f:replicas": {}}}}
    sent = Request("PATCH", path, (("fieldManager", "owner"),), json.dumps(body).encode(), APPLY)
    refused = json.loads((await running.transport().send(sent)).body)
    text = f'conflict with "scaler" with subresource "scale" using {SCALES}/v1: .spec.replicas'
    assert refused["message"] == f"Apply failed with 1 conflict: {text}"


@pytest.mark.parametrize(
    ("method", "media", "body"),
    [
        ("PATCH", MERGE, {"spec": {"replicas": 3}}),
        ("PATCH", JSON_PATCH, [{"op": "add", "path": "/spec/replicas", "value": 3}]),
        ("PUT", "application/json", {"metadata": {"name": "a"}, "spec": {"replicas": 3}}),
    ],
)
async def test_what_wants_no_number_yet_is_scaled_all_the_same(running: RunningApi, method: str, media: str, body: Any) -> None:
    kubectl = Kubectl(running)
    await kubectl.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SCALED)
    path = f"/apis/{SCALES}/v1/scales"
    await kubectl.call("POST", path, {"apiVersion": f"{SCALES}/v1", "kind": "Scales", "metadata": {"name": "a"}})
    scale = body if method == "PATCH" else {"apiVersion": "autoscaling/v1", "kind": "Scale", **body}
    await kubectl.call(method, f"{path}/a/scale", scale, media)
    assert (await kubectl.get(f"{path}/a"))["spec"] == {"replicas": 3}


async def test_who_scales_owns_nothing_of_what_nobody_owned(running: RunningApi) -> None:
    kubectl = Kubectl(running)
    await kubectl.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SCALED)
    path = f"/apis/{SCALES}/v1/scales"
    body = {"apiVersion": f"{SCALES}/v1", "kind": "Scales", "metadata": {"name": "a"}, "spec": {"replicas": 1}}
    await kubectl.call("POST", path, body, fieldManager="maker")
    await kubectl.patch(f"{path}/a", [{"op": "add", "path": "/metadata/managedFields", "value": [{}]}], JSON_PATCH)
    await kubectl.patch(f"{path}/a/scale", {"spec": {"replicas": 2}}, manager="scaler")
    assert owners(await kubectl.get(f"{path}/a")) == {}
