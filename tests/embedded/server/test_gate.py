"""Whatever way a write comes, it is authorized, admitted and refused alike: the calls that have the same effect, as tables."""

import ast
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import applecart.embedded
from applecart.clock import Clock
from applecart.embedded.auth.authenticate import impersonated
from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION
from applecart.embedded.auth.rbac import ALLOWED
from applecart.embedded.auth.user import AUTHENTICATED, NODES, User
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.server import gate
from applecart.embedded.server.api import Api
from applecart.embedded.server.core import Settings
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.server import ADMIN, RunningApi, running_api
from applecart.embedded.server.worker import LARGE_BYTES
from applecart.kube.transport import Request
from tests.embedded.auth.objects_in_memory import pod
from tests.embedded.memory_log import MemoryLog
from tests.embedded.schema.definition_documents import GROUP, SCALED, definition, resource
from tests.embedded.server.test_trial import Interrupted
from tests.kube.embedded_api import serving, token_keys
from tests.virtual_time import elapse

EDITOR = User("edna", (AUTHENTICATED,))  # may do everything but create
NODE = User("system:node:mac-1", (NODES, AUTHENTICATED))
RBAC = "rbac.authorization.k8s.io"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
PODS = "/api/v1/namespaces/ci/pods"


class Call(NamedTuple):
    """One request that would have the effect."""

    method: str
    path: str
    body: Any = None
    media: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()


async def ask(running: RunningApi, user: User, call: Call) -> tuple[int, Document]:
    content = b"" if call.body is None else json.dumps(call.body).encode()
    query = (*call.query, ("fieldManager", "test")) if call.media == APPLY else call.query
    answer = await running.transport(user).send(Request(call.method, call.path, query, body=content, content_type=call.media))
    return answer.status, json.loads(answer.body)


async def make(running: RunningApi, path: str, document: Document) -> Document:
    code, answer = await ask(running, ADMIN, Call("POST", path, document))
    assert code == 201, answer
    return answer


async def allow(running: RunningApi, name: str, subject: Document, *rules: Document) -> None:
    """Bind a role of these rules to somebody, everywhere."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
    await make(running, f"/apis/{RBAC}/v1/clusterroles", role)
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "subjects": [{"apiGroup": RBAC, **subject}],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
    }
    await make(running, f"/apis/{RBAC}/v1/clusterrolebindings", binding)


def everything(*verbs: str) -> Document:
    return {"verbs": list(verbs), "apiGroups": ["*"], "resources": ["*"]}


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock, ["ci", "going"]) as running:
        but_create = everything("get", "update", "patch", "delete", "deletecollection")
        await allow(running, "edits", {"kind": "User", "name": EDITOR.name}, but_create)
        yield running


def thing(api_version: str, kind: str, namespace: str = "ci", **content: Any) -> Document:
    metadata = {"name": "new", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


NEW_THINGS: dict[str, tuple[str, Document]] = {  # where it is served, and a good one
    "configmaps": ("/api/v1/namespaces/ci", thing("v1", "ConfigMap")),
    "services": ("/api/v1/namespaces/ci", thing("v1", "Service", spec={"ports": [{"port": 80}]})),
    "leases": ("/apis/coordination.k8s.io/v1/namespaces/ci", thing("coordination.k8s.io/v1", "Lease")),
    "roles": (f"/apis/{RBAC}/v1/namespaces/ci", thing(f"{RBAC}/v1", "Role", rules=[])),
    "clusterroles": (f"/apis/{RBAC}/v1", thing(f"{RBAC}/v1", "ClusterRole", "", rules=[])),
    "nodes": ("/api/v1", thing("v1", "Node", "")),
    "namespaces": ("/api/v1", thing("v1", "Namespace", "")),
}
CREATED_BY_PUT = ("services", "leases", "roles", "clusterroles")


@pytest.mark.parametrize("dry_run", [(), (("dryRun", "All"),)], ids=["", "dry-run"])
@pytest.mark.parametrize(
    ("plural", "method"),
    [*((plural, "PATCH") for plural in NEW_THINGS), *((plural, "PUT") for plural in CREATED_BY_PUT)],
)
async def test_who_may_not_create_creates_by_no_other_verb(
    running: RunningApi, plural: str, method: str, dry_run: tuple[tuple[str, str], ...]
) -> None:
    """A user with `patch` made ClusterRoles by server-side apply, and one with `update` Leases by PUT."""
    base, document = NEW_THINGS[plural]
    path = f"{base}/{plural}/new"
    before = running.store.revision
    code, answer = await ask(
        running, EDITOR, Call(method, path, document, APPLY if method == "PATCH" else "application/json", dry_run)
    )
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert f'User "edna" cannot create resource "{plural}" in API group ' in answer["message"]
    assert plural != "namespaces" or answer["message"].endswith('in the namespace "new"')  # it lies in itself
    assert running.store.revision == before


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_who_may_create_under_one_name_creates_that_one_by_put_and_by_apply(running: RunningApi, method: str) -> None:
    named = {"verbs": ["create"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["new"]}
    await allow(running, "creates-one", {"kind": "User", "name": EDITOR.name}, named)
    base, document = NEW_THINGS["leases"]
    media = APPLY if method == "PATCH" else "application/json"
    assert (await ask(running, EDITOR, Call(method, f"{base}/leases/new", document, media)))[0] == 201
    other = {**document, "metadata": {"name": "other"}}
    assert (await ask(running, EDITOR, Call(method, f"{base}/leases/other", other, media)))[0] == 403


async def test_a_bad_object_is_told_before_the_lack_of_a_right_to_create_it(running: RunningApi) -> None:
    """The real server authorizes the creation after it has validated what would be created."""
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"not a key": ""}}
    code, answer = await ask(running, EDITOR, Call("PATCH", "/api/v1/namespaces/ci/configmaps/new", bad, APPLY))
    assert (code, answer["reason"]) == (422, "Invalid")


@pytest.fixture
async def nodes(running: RunningApi) -> RunningApi:
    """Two nodes and a Pod of each; nodes are bound to a role that allows everything, so that only admission is left."""
    await allow(running, "careless", {"kind": "Group", "name": NODES}, everything("*"))
    await make(running, "/api/v1/namespaces/ci/serviceaccounts", thing("v1", "ServiceAccount"))
    for number in ("1", "2"):
        await make(running, "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"mac-{number}"}})
        await make(running, PODS, pod("ci", f"pod-{number}", f"mac-{number}", serviceAccountName="new"))
    await make(running, PODS, pod("ci", "unbound", "", serviceAccountName="new"))
    return running


FOREIGN = f"{PODS}/pod-2"
BINDING = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "mac-1"}}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}
FAILED: Document = {"status": {"phase": "Failed"}}
NOT_OF_A_NODE: dict[str, Call] = {
    "merge patch": Call("PATCH", FOREIGN, {"metadata": {"labels": {"a": "b"}}}, MERGE),
    "strategic patch": Call("PATCH", FOREIGN, {"metadata": {"labels": {"a": "b"}}}, STRATEGIC),
    "json patch": Call("PATCH", FOREIGN, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], JSON_PATCH),
    "apply": Call("PATCH", FOREIGN, {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}}, APPLY),
    "apply that creates": Call("PATCH", f"{PODS}/new", pod("ci", "new", "mac-1"), APPLY),
    "post": Call("POST", PODS, pod("ci", "new", "mac-1")),
    "status": Call("PATCH", f"{FOREIGN}/status", FAILED, MERGE),
    "status by json patch": Call(
        "PATCH", f"{FOREIGN}/status", [{"op": "replace", "path": "/status/phase", "value": "Failed"}], JSON_PATCH
    ),
    "status by apply": Call(
        "PATCH", f"{FOREIGN}/status", {"apiVersion": "v1", "kind": "Pod", **FAILED}, APPLY, (("force", "true"),)
    ),
    "binding": Call("POST", f"{PODS}/unbound/binding", {**BINDING, "metadata": {"name": "unbound"}}),
    "virtual binding": Call("POST", "/api/v1/namespaces/ci/bindings", {**BINDING, "metadata": {"name": "unbound"}}),
    "eviction": Call("POST", f"{FOREIGN}/eviction", {**EVICTION, "metadata": {"name": "pod-2"}}),
    "eviction under another name": Call("POST", f"{FOREIGN}/eviction", {**EVICTION, "metadata": {"name": "pod-1"}}),
    "eviction without a name": Call("POST", f"{FOREIGN}/eviction", EVICTION),
    "delete": Call("DELETE", FOREIGN),
    "deletecollection": Call("DELETE", PODS, query=(("fieldSelector", "spec.nodeName=mac-2"),)),
    "token": Call("POST", "/api/v1/namespaces/ci/serviceaccounts/new/token", {"spec": {}}),
    "another node": Call("PATCH", "/api/v1/nodes/mac-2", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    "another node's status": Call("PATCH", "/api/v1/nodes/mac-2/status", {"status": {"phase": "x"}}, MERGE),
    "another node's deletion": Call("DELETE", "/api/v1/nodes/mac-2"),
    "a node by apply": Call("PATCH", "/api/v1/nodes/new", thing("v1", "Node", ""), APPLY),
    "a lease by put": Call("PUT", NEW_THINGS["leases"][0] + "/leases/new", NEW_THINGS["leases"][1]),
    "a lease by apply": Call("PATCH", NEW_THINGS["leases"][0] + "/leases/new", NEW_THINGS["leases"][1], APPLY),
}


async def test_whoever_may_delete_takes_away_what_it_does_not_hold_and_labels_what_may_not_be_deleted(
    running: RunningApi,
) -> None:
    await allow(running, "all", {"kind": "User", "name": "boss"}, everything("*"))
    assert (await ask(running, EDITOR, Call("DELETE", f"/apis/{RBAC}/v1/clusterroles/all")))[0] == 200
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await ask(running, EDITOR, Call("PATCH", "/api/v1/namespaces/default", labels, MERGE)))[0] == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_node_is_told_that_an_object_is_not_its_own_before_that_it_has_changed(nodes: RunningApi, method: str) -> None:
    old = thing("v1", "Node", "") | {"metadata": {"name": "mac-2", "resourceVersion": "1"}}
    media = "application/json" if method == "PUT" else MERGE
    assert (await ask(nodes, NODE, Call(method, "/api/v1/nodes/mac-2", old, media)))[0] == 403
    assert (await ask(nodes, ADMIN, Call(method, "/api/v1/nodes/mac-2", old, media)))[0] == 409


async def test_a_precondition_that_fails_is_told_before_the_namespace_that_may_not_be_deleted(running: RunningApi) -> None:
    another = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    assert (await ask(running, ADMIN, Call("DELETE", "/api/v1/namespaces/default", another)))[0] == 409
    assert (await ask(running, ADMIN, Call("DELETE", "/api/v1/namespaces/default")))[0] == 403


@pytest.mark.parametrize("dry_run", [(), (("dryRun", "All"),)], ids=["", "dry-run"])
@pytest.mark.parametrize("call", NOT_OF_A_NODE)
async def test_what_is_not_a_nodes_own_it_changes_by_no_call(
    nodes: RunningApi, call: str, dry_run: tuple[tuple[str, str], ...]
) -> None:
    """A node's eviction was refused, and its condition stood in the other node's Pod; bindings were not admitted at all."""
    before = nodes.store.revision
    for user in (NODE, impersonated(ADMIN, as_user(NODE), lambda *_: ALLOWED)):
        assert user is not None
        asked = NOT_OF_A_NODE[call]
        code, answer = await ask(nodes, user, asked._replace(query=(*asked.query, *dry_run)))
        assert (code, answer["reason"]) == (403, "Forbidden"), answer
        assert answer["message"].partition(" is forbidden: ")[2]
    assert nodes.store.revision == before


def as_user(user: User) -> list[tuple[str, str]]:
    return [("Impersonate-User", user.name), *(("Impersonate-Group", group) for group in user.groups)]


async def test_a_node_evicts_its_own_pod(nodes: RunningApi) -> None:
    code, answer = await ask(nodes, NODE, Call("POST", f"{PODS}/pod-1/eviction", {**EVICTION, "metadata": {"name": "pod-1"}}))
    assert code == 201, answer


SECRETS = [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]
REF = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
ROLES = f"/apis/{RBAC}/v1/namespaces/ci/roles"
BINDINGS = f"/apis/{RBAC}/v1/namespaces/ci/rolebindings"
GRANTS: dict[str, Call] = {
    "post": Call("POST", ROLES, thing(f"{RBAC}/v1", "Role", rules=SECRETS)),
    "put that creates": Call("PUT", f"{ROLES}/new", thing(f"{RBAC}/v1", "Role", rules=SECRETS)),
    "apply that creates": Call("PATCH", f"{ROLES}/new", thing(f"{RBAC}/v1", "Role", rules=SECRETS), APPLY),
    "put": Call("PUT", f"{ROLES}/empty", {**thing(f"{RBAC}/v1", "Role", rules=SECRETS), "metadata": {"name": "empty"}}),
    "merge patch": Call("PATCH", f"{ROLES}/empty", {"rules": SECRETS}, MERGE),
    "strategic patch": Call("PATCH", f"{ROLES}/empty", {"rules": SECRETS}, STRATEGIC),
    "json patch": Call("PATCH", f"{ROLES}/empty", [{"op": "add", "path": "/rules", "value": SECRETS}], JSON_PATCH),
    "apply": Call("PATCH", f"{ROLES}/empty", {"apiVersion": f"{RBAC}/v1", "kind": "Role", "rules": SECRETS}, APPLY),
    "binding by post": Call("POST", BINDINGS, thing(f"{RBAC}/v1", "RoleBinding", roleRef=REF)),
    "binding by put": Call("PUT", f"{BINDINGS}/new", thing(f"{RBAC}/v1", "RoleBinding", roleRef=REF)),
    "binding by apply": Call("PATCH", f"{BINDINGS}/new", thing(f"{RBAC}/v1", "RoleBinding", roleRef=REF), APPLY),
}


@pytest.mark.parametrize("call", GRANTS)
async def test_nobody_grants_what_they_do_not_hold_by_any_call(running: RunningApi, call: str) -> None:
    writer = User("rita", (AUTHENTICATED,))
    rule = {"verbs": ["*"], "apiGroups": [RBAC], "resources": ["roles", "rolebindings"]}
    safe = {**rule, "verbs": ["create", "update", "patch"]}
    await allow(running, "writes-roles", {"kind": "User", "name": writer.name}, safe)
    await make(running, ROLES, {**thing(f"{RBAC}/v1", "Role", rules=[]), "metadata": {"name": "empty"}})
    before = running.store.revision
    code, answer = await ask(running, writer, GRANTS[call])
    assert (code, answer["reason"]) == (403, "Forbidden"), answer
    assert "attempting to grant RBAC permissions not currently held" in answer["message"]
    assert running.store.revision == before


@pytest.mark.parametrize(("method", "media"), [("POST", "application/json"), ("PUT", "application/json"), ("PATCH", APPLY)])
@pytest.mark.parametrize(("namespace", "expected"), [("going", (403, "Forbidden")), ("nowhere", (404, "NotFound"))])
async def test_nothing_is_made_in_a_namespace_that_goes_or_is_none(
    running: RunningApi, method: str, media: str, namespace: str, expected: tuple[int, str]
) -> None:
    assert (await ask(running, ADMIN, Call("DELETE", "/api/v1/namespaces/going")))[0] == 200
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    lease = thing("coordination.k8s.io/v1", "Lease", namespace)
    code, answer = await ask(running, ADMIN, Call(method, leases if method == "POST" else f"{leases}/new", lease, media))
    assert (code, answer["reason"]) == expected


@pytest.mark.parametrize(("taken", "code"), [(1, 201), (gate.NAME_ATTEMPTS, 201), (gate.NAME_ATTEMPTS + 1, 409)])
async def test_a_generated_name_that_is_taken_is_drawn_again_a_few_times(
    running: RunningApi, monkeypatch: pytest.MonkeyPatch, taken: int, code: int
) -> None:
    drawn = iter(["first"] * (taken + 1) + ["other"])
    monkeypatch.setattr(running.core.clock.random, "choices", lambda *_, k: next(drawn))
    generated = Call("POST", "/api/v1/namespaces/ci/configmaps", {"metadata": {"generateName": "a-"}})
    assert (await ask(running, ADMIN, generated))[1]["metadata"]["name"] == "a-first"
    status, answer = await ask(running, ADMIN, generated)
    assert status == code
    assert code == 409 or answer["metadata"]["name"] == "a-other"


async def test_what_is_only_called_like_them_may_be_deleted(running: RunningApi) -> None:
    accounts = "/api/v1/namespaces/ci/serviceaccounts"
    await make(running, accounts, {"metadata": {"name": "default"}})
    assert (await ask(running, ADMIN, Call("DELETE", f"{accounts}/default")))[0] == 200


@pytest.mark.parametrize("media", [MERGE, "application/json"], ids=["PATCH", "PUT"])
async def test_whoever_takes_the_last_finalizer_is_answered_with_what_would_have_been_stored(
    running: RunningApi, media: str
) -> None:
    maps = "/api/v1/namespaces/ci/configmaps"
    await make(running, maps, {"metadata": {"name": "a", "finalizers": ["a/b"]}, "data": {"by": "maker"}})
    going = (await ask(running, ADMIN, Call("DELETE", f"{maps}/a")))[1]
    freed = {**going, "metadata": {**going["metadata"], "finalizers": None}, "data": {"by": "finalizer"}}
    code, answer = await ask(running, ADMIN, Call("PATCH" if media == MERGE else "PUT", f"{maps}/a", freed, media))
    assert (code, answer["data"], "finalizers" in answer["metadata"]) == (200, {"by": "finalizer"}, False)
    assert (await ask(running, ADMIN, Call("GET", f"{maps}/a")))[0] == 404


@pytest.mark.parametrize(("phase", "says_why"), [("Running", True), ("Failed", False), ("Succeeded", False)])
async def test_an_eviction_tells_why_only_of_a_pod_that_runs(running: RunningApi, phase: str, says_why: bool) -> None:
    held = pod("ci", "p", "mac-1")
    await make(running, PODS, {**held, "metadata": {**held["metadata"], "finalizers": ["a/b"]}})
    assert (await ask(running, ADMIN, Call("PATCH", f"{PODS}/p/status", {"status": {"phase": phase}}, MERGE)))[0] == 200
    assert (await ask(running, ADMIN, Call("POST", f"{PODS}/p/eviction", {**EVICTION, "metadata": {"name": "p"}})))[0] == 201
    found = (await ask(running, ADMIN, Call("GET", f"{PODS}/p")))[1]
    assert "deletionTimestamp" in found["metadata"]
    told = [one["type"] for one in found["status"].get("conditions", ())]
    assert ("DisruptionTarget" in told) is says_why


async def test_a_status_brings_no_finalizer_that_no_later_write_could_keep(running: RunningApi) -> None:
    """Every later write was refused because of it: a Pod never went, since its agent could not take its own finalizer off."""
    await make(running, PODS, pod("ci", "p", "mac-1"))
    brings = {"metadata": {"finalizers": ["mine"]}}
    for place in ("", "/status"):
        code, answer = await ask(running, ADMIN, Call("PATCH", f"{PODS}/p{place}", brings, MERGE))
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.finalizers[0]")


async def test_a_namespace_that_goes_says_so_and_names_no_grace(running: RunningApi) -> None:
    code, answer = await ask(running, ADMIN, Call("DELETE", "/api/v1/namespaces/going"))
    assert (code, answer["status"]["phase"]) == (200, "Terminating")
    assert "deletionTimestamp" in answer["metadata"]
    assert "deletionGracePeriodSeconds" not in answer["metadata"]


@pytest.mark.parametrize(("action", "body"), [("binding", BINDING), ("eviction", EVICTION)])
async def test_a_dry_run_below_a_pod_changes_nothing(running: RunningApi, action: str, body: Document) -> None:
    await make(running, PODS, pod("ci", "p"))
    before = running.store.revision
    asked = Call("POST", f"{PODS}/p/{action}", {**body, "metadata": {"name": "p"}}, query=(("dryRun", "All"),))
    assert (await ask(running, ADMIN, asked))[0] == 201
    assert running.store.revision == before


@pytest.mark.parametrize(("method", "name", "media"), [("POST", "", "application/json"), ("PATCH", "/new", APPLY)])
async def test_nothing_is_made_of_a_definition_that_goes(running: RunningApi, method: str, name: str, media: str) -> None:
    definitions, scales = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", f"/apis/{GROUP}/v1/scales"
    await make(running, definitions, definition("scales", {"type": "object"}))
    await make(running, scales, {**resource("scales", "stays"), "metadata": {"name": "stays", "finalizers": ["a/b"]}})
    assert (await ask(running, ADMIN, Call("DELETE", f"{definitions}/scales.{GROUP}")))[0] == 200
    code, answer = await ask(running, ADMIN, Call(method, f"{scales}{name}", resource("scales", "new"), media))
    assert code == 403
    assert answer["message"].endswith("create not allowed while custom resource definition is terminating")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_namespaces_that_everything_needs_may_not_be_deleted(running: RunningApi, name: str) -> None:
    code, answer = await ask(running, ADMIN, Call("DELETE", f"/api/v1/namespaces/{name}"))
    assert (code, answer["message"]) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')


@pytest.mark.parametrize(("method", "path", "media"), [("POST", PODS, "application/json"), ("PATCH", f"{PODS}/new", APPLY)])
async def test_a_pod_is_admitted_alike_however_it_is_made(clock: Clock, method: str, path: str, media: str) -> None:
    async with running_api(MemoryLog(), clock, token_keys(), Settings(needs_service_accounts=True)) as running:
        await make(running, "/api/v1/namespaces", {"metadata": {"name": "ci"}})
        wanted = pod("ci", "new", "")
        code, answer = await ask(running, ADMIN, Call(method, path, wanted, media))
        assert (code, answer["message"]) == (
            403,
            'pods "new" is forbidden: error looking up service account ci/default: serviceaccount "default" not found',
        )
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await make(running, "/api/v1/namespaces/ci/serviceaccounts", account)
        code, answer = await ask(running, ADMIN, Call(method, path, wanted, media))
        assert code == 201
        assert answer["spec"]["serviceAccountName"] == "default"
        assert answer["spec"]["priority"] == 0
        assert len(answer["spec"]["tolerations"]) == 2


async def test_a_mirror_pod_stays_as_its_node_says_and_refers_to_nothing(clock: Clock) -> None:
    """It got the default ServiceAccount, and was then refused because it refers to one."""
    async with running_api(MemoryLog(), clock, token_keys(), Settings(needs_service_accounts=True)) as running:
        await make(running, "/api/v1/namespaces", {"metadata": {"name": "ci"}})
        node = await make(running, "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mac-1"}})
        owner = {"apiVersion": "v1", "kind": "Node", "name": "mac-1", "uid": node["metadata"]["uid"], "controller": True}

        async def mirror(**spec: Any) -> tuple[int, Document]:
            document = pod("ci", "new", "mac-1", **spec)
            document["metadata"] |= {"annotations": {MIRROR_ANNOTATION: "x"}, "ownerReferences": [owner]}
            return await ask(running, NODE, Call("POST", PODS, document))

        for spec, why in (
            ({"serviceAccountName": "robot"}, "service accounts"),
            ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "secrets"),
        ):
            code, answer = await mirror(**spec)
            assert (code, answer["message"]) == (403, f'pods "new" is forbidden: a mirror pod may not reference {why}')
        code, answer = await mirror()
        assert (code, answer.get("spec", {}).get("serviceAccountName")) == (201, None), answer


async def test_an_update_says_which_revision_it_means_and_one_without_a_change_writes_nothing(running: RunningApi) -> None:
    maps = "/api/v1/namespaces/ci/configmaps"
    made = await make(running, maps, {**thing("v1", "ConfigMap"), "metadata": {"name": "new", "finalizers": ["a/b"]}})
    same = await ask(running, ADMIN, Call("PUT", f"{maps}/new", made))
    assert (same[0], same[1]["metadata"]["resourceVersion"]) == (200, made["metadata"]["resourceVersion"])
    assert (await ask(running, ADMIN, Call("PATCH", f"{maps}/new", {"data": {"a": "b"}}, MERGE)))[0] == 200
    code, answer = await ask(running, ADMIN, Call("PUT", f"{maps}/new", {**made, "data": {"a": "c"}}))
    assert (code, answer["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("below", ["", "/status", "/scale"])
async def test_an_update_of_an_object_that_was_made_anew_is_a_conflict(running: RunningApi, below: str) -> None:
    """Of a custom object it was Invalid, which no client takes as a reason to read again."""
    await make(running, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SCALED)
    path = f"/apis/{GROUP}/v1/scales"
    await make(running, path, resource("scales", "a", spec={"replicas": 1}))
    _, stale = await ask(running, ADMIN, Call("GET", f"{path}/a{below}"))
    stale["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    code, answer = await ask(running, ADMIN, Call("PUT", f"{path}/a{below}", stale))
    assert (code, answer["reason"]) == (409, "Conflict")


async def test_an_apply_of_what_is_ignored_moves_neither_the_revision_nor_the_time_of_its_owner(running: RunningApi) -> None:
    """It was written, and told to all watchers, because of the time at which nothing had changed."""
    applied = thing("v1", "Pod", spec={"containers": [{"name": "c", "image": "i"}]})
    applying = Call("PATCH", f"{PODS}/new", applied, APPLY, (("fieldManager", "test"),))
    code, made = await ask(running, ADMIN, applying)
    assert code == 201
    await elapse(3600)
    code, answer = await ask(running, ADMIN, applying._replace(body={**applied, "status": {"message": "ignored"}}))
    assert (code, answer["metadata"]) == (200, made["metadata"])


async def test_a_number_that_becomes_a_truth_is_a_change_and_one_that_gets_a_point_is_none(running: RunningApi) -> None:
    """1 == True in Python: the change was answered and not written."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = definition("loose", {"type": "object", "properties": {"spec": free}})
    await make(running, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    loose = f"/apis/{GROUP}/v1/loose"
    metadata = (await make(running, loose, resource("loose", "a", spec={"on": [1]})))["metadata"]
    for value, generation in ((True, 2), (1, 3), (1.0, 3)):
        code, answer = await ask(running, ADMIN, Call("PATCH", f"{loose}/a", {"spec": {"on": [value]}}, MERGE))
        assert (code, answer["metadata"]["generation"]) == (200, generation)
        found = (await ask(running, ADMIN, Call("GET", f"{loose}/a")))[1]
        assert json.dumps(found["spec"]["on"]) == ("[true]" if value is True else "[1]")
    assert found["metadata"]["managedFields"] == metadata["managedFields"]


@pytest.mark.parametrize(
    ("method", "path", "body", "accept"),
    [
        ("POST", "/api/v1/namespaces/ci/pods/p/binding", {"metadata": {"name": "p"}, "target": {"name": "mac"}}, ""),
        ("POST", "/api/v1/namespaces/ci/configmaps", {"metadata": {"name": "other"}}, ""),
        ("GET", "/api/v1/namespaces/ci/pods/p", None, "application/json;as=Table;g=meta.k8s.io;v=v1"),
        ("GET", "/api/v1/namespaces/ci/pods/none", None, ""),
        ("GET", "/api/v1/namespaces/ci/pods", None, ""),
        ("GET", "/api/v1/pods", None, "application/json;as=Table;g=meta.k8s.io;v=v1"),
        ("GET", "/apis/apps/v1", None, ""),
        ("GET", "/apis", None, ""),
    ],
)
async def test_an_answer_is_a_line_as_that_of_a_real_server(
    running: RunningApi, method: str, path: str, body: Any, accept: str
) -> None:
    containers = [{"name": "c", "image": "i"}]
    await make(running, PODS, {**thing("v1", "Pod"), "metadata": {"name": "p"}, "spec": {"containers": containers}})
    request = Request(method, path, body=json.dumps(body).encode() if body else b"", accept=accept or "application/json")
    answer = await running.transport().send(request)
    assert answer.body.index(b"\n") == len(answer.body) - 1


@pytest.mark.parametrize(
    ("method", "path", "media"),
    [("POST", "", "application/json"), ("PUT", "/old", "application/json"), ("PATCH", "/old", MERGE), ("PATCH", "/new", APPLY)],
)
async def test_an_object_of_the_cluster_is_in_no_namespace_whatever_it_says(
    running: RunningApi, method: str, path: str, media: str
) -> None:
    """As on a real server, which takes the namespace out and says nothing."""
    roles, role = f"/apis/{RBAC}/v1/clusterroles", thing(f"{RBAC}/v1", "ClusterRole", "")
    await make(running, roles, role | {"metadata": {"name": "old"}})
    document = role | {"metadata": {"name": path[1:] or "new", "namespace": "ci"}}
    code, answer = await ask(running, ADMIN, Call(method, f"{roles}{path}", document, media))
    assert (code in (200, 201), answer["metadata"].get("namespace")) == (True, None)


async def test_what_is_deleted_goes_with_its_last_finalizer_and_a_namespace_with_those_of_its_spec(running: RunningApi) -> None:
    maps, namespace = "/api/v1/namespaces/ci/configmaps", "/api/v1/namespaces/going"
    await make(running, maps, {**thing("v1", "ConfigMap"), "metadata": {"name": "new", "finalizers": ["a/b"]}})
    for path in (f"{maps}/new", namespace):
        for _ in range(2):
            assert (await ask(running, ADMIN, Call("DELETE", path)))[0] == 200
        code, left = await ask(running, ADMIN, Call("GET", path))
        assert (code, bool(left["metadata"]["deletionTimestamp"])) == (200, True)
    assert (await ask(running, ADMIN, Call("PATCH", f"{maps}/new", {"metadata": {"finalizers": None}}, MERGE)))[0] == 200
    assert (await ask(running, ADMIN, Call("GET", f"{maps}/new")))[0] == 404
    left["spec"]["finalizers"] = []
    assert (await ask(running, ADMIN, Call("PUT", f"{namespace}/finalize", left)))[0] == 200
    assert (await ask(running, ADMIN, Call("GET", namespace)))[0] == 404


async def test_an_eviction_that_means_another_pod_leaves_no_trace(nodes: RunningApi) -> None:
    before = nodes.store.revision
    options = {"preconditions": {"uid": "another"}}
    eviction = {**EVICTION, "metadata": {"name": "pod-1"}, "deleteOptions": options}
    code, answer = await ask(nodes, ADMIN, Call("POST", f"{PODS}/pod-1/eviction", eviction))
    assert (code, answer["reason"]) == (409, "Conflict")
    assert nodes.store.revision == before


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Table;g=meta.k8s.io;v=v1"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{PODS}/pod-1/eviction", {**EVICTION, "metadata": {"name": "pod-1"}}),
        (f"{PODS}/unbound/binding", {**BINDING, "metadata": {"name": "unbound"}}),
    ],
    ids=["eviction", "binding"],
)
async def test_what_cannot_be_answered_as_asked_is_not_done(nodes: RunningApi, path: str, body: Document, accept: str) -> None:
    """It was done, and then refused."""
    before = nodes.store.revision
    answer = await nodes.transport(ADMIN).send(Request("POST", path, body=json.dumps(body).encode(), accept=accept))
    assert (answer.status, nodes.store.revision) == (406, before)


@pytest.mark.parametrize("body", [b"", b"null", b"{}"])
@pytest.mark.parametrize("shape", ["PartialObjectMetadata", "Table"])
async def test_a_deletion_is_told_in_a_status_whichever_shape_is_asked_for(nodes: RunningApi, shape: str, body: bytes) -> None:
    """It was refused as not acceptable, once it was done; and options that are null were refused."""
    accept = f"application/json;as={shape};g=meta.k8s.io;v=v1"
    answer = await nodes.transport(ADMIN).send(Request("DELETE", "/api/v1/nodes/mac-2", body=body, accept=accept))
    assert (answer.status, json.loads(answer.body)["kind"]) == (200, "Status")
    assert (await ask(nodes, ADMIN, Call("GET", "/api/v1/nodes/mac-2")))[0] == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{PODS}/pod-1/eviction", {**EVICTION, "metadata": {"name": "pod-1", "namespace": "other"}}),
        (f"{PODS}/pod-1/binding", {"metadata": {"name": "pod-1", "namespace": "other"}, "target": {"name": "n"}}),
        ("/api/v1/namespaces/ci/bindings", {"metadata": {"name": "pod-1", "namespace": "other"}, "target": {"name": "n"}}),
        ("/api/v1/namespaces/ci/serviceaccounts/default/token", {"metadata": {"namespace": "other"}, "spec": {}}),
        (
            "/apis/authorization.k8s.io/v1/namespaces/ci/localsubjectaccessreviews",
            {"metadata": {"namespace": "other"}, "spec": {"user": "a", "resourceAttributes": {"namespace": "ci"}}},
        ),
    ],
    ids=["eviction", "binding", "bindings", "token", "review"],
)
async def test_what_is_said_of_another_namespace_is_refused(nodes: RunningApi, path: str, body: dict[str, Any]) -> None:
    """An eviction of a Pod elsewhere evicted the one of that name here."""
    before = nodes.store.revision
    code, answer = await ask(nodes, ADMIN, Call("POST", path, body))
    refused = "the namespace of the provided object does not match the namespace sent on the request"
    assert (code, answer["message"]) == (400, refused)
    assert nodes.store.revision == before


LARGE = {"annotations": {"large": "x" * LARGE_BYTES}}
LARGE_CALLS: dict[str, tuple[User, Call, str]] = {
    "creation by apply": (
        EDITOR,
        Call(
            "PATCH",
            "/api/v1/namespaces/ci/configmaps/new",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", **LARGE}},
            APPLY,
        ),
        "cannot create resource",
    ),
    "another node's Pod": (NODE, Call("PATCH", FOREIGN, {"metadata": LARGE}, MERGE), "only create and delete mirror pods"),
    "a grant": (
        User("rita", (AUTHENTICATED,)),
        Call("POST", ROLES, {"metadata": {"name": "new", **LARGE}, "rules": SECRETS}),
        "attempting to grant",
    ),
}


@pytest.mark.parametrize("call", LARGE_CALLS)
async def test_what_is_worked_out_beside_the_loop_passes_the_same_gate(nodes: RunningApi, call: str) -> None:
    rule = {"verbs": ["create"], "apiGroups": [RBAC], "resources": ["roles"]}
    await allow(nodes, "writes-roles", {"kind": "User", "name": "rita"}, rule)
    worker = Interrupted(nodes)
    user, asked, expected = LARGE_CALLS[call]
    api = Api(replace(nodes.core, worker=worker), nodes.identity, nodes.api._pages)
    before = nodes.store.revision
    query = (("fieldManager", "test"),)
    request = Request(asked.method, asked.path, query, body=json.dumps(asked.body).encode(), content_type=asked.media)
    answer = await InProcessTransport(api, user).send(request)
    assert (answer.status, worker.runs) == (403, 1)
    assert expected in json.loads(answer.body)["message"]
    assert nodes.store.revision == before


def test_only_the_gate_writes_to_the_store() -> None:
    """Every `write` of the package, because a store has many names: a trial called it `_real`, and nobody saw that."""
    package = Path(applecart.embedded.__file__).parent
    found = {
        (str(file.relative_to(package)), ast.unparse(node))
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("write", "submit")
    }
    to_a_store = {
        ("server/gate.py", "core.store.write"),
        ("server/trial.py", "self._real.write"),  # stores what passed the gate beside the loop
        ("store/store.py", "self._log.submit"),
    }
    to_none = {
        ("server/gate.py", "admitted.write"),
        ("server/front.py", "self._log.write"),
        ("server/front.py", "response.write"),
        ("server/front.py", "writer.write"),
        ("server/request_log.py", "out.write"),
        ("trust/private_file.py", "file.write"),
    }
    assert found == to_a_store | to_none


async def test_a_put_brings_nothing_back_that_was_deleted(running: RunningApi) -> None:
    """Who held a Lease that somebody had removed wrote it again, with what it had read before."""
    base, document = NEW_THINGS["leases"]
    _, made = await ask(running, ADMIN, Call("PUT", f"{base}/leases/new", document))
    await ask(running, ADMIN, Call("DELETE", f"{base}/leases/new", None))
    code, answer = await ask(running, ADMIN, Call("PUT", f"{base}/leases/new", made))
    assert (code, answer["reason"]) == (409, "Conflict")
    assert answer["message"].endswith(f"UID in precondition: {made['metadata']['uid']}, UID in object meta: ")
