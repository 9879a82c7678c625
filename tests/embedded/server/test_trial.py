"""Large requests are worked out beside the loop, and are stored as if nothing had happened meanwhile, or not at all."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from applecart.api.meta import Key
from applecart.clock import Clock, SystemClock
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.schema import budget
from applecart.embedded.server import trial
from applecart.embedded.server.api import Api
from applecart.embedded.server.core import Settings
from applecart.embedded.server.gate import OBJECT_LIMIT_BYTES, SYSTEM
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.registry import CRD_LABEL
from applecart.embedded.server.representation import Forms
from applecart.embedded.server.request import ApiRequest
from applecart.embedded.server.server import ADMIN, RunningApi, running_api
from applecart.embedded.server.syntax import MOST_VALUES, MOST_YAML_BYTES
from applecart.embedded.server.trial import Trial, is_large
from applecart.embedded.server.worker import LARGE_BYTES, MOST_WAITING, Result, Worker
from applecart.embedded.store.record import NOTHING, LogEntry, Op, Record, Traits
from applecart.kube.transport import Request, Response
from tests.embedded.memory_log import MemoryLog
from tests.embedded.schema.definition_documents import GROUP, definition, resource
from tests.kube.embedded_api import serving, token_keys
from tests.virtual_time import elapse

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/ci/configmaps"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
LARGE = {"large": "x" * LARGE_BYTES}

NO_TRAITS = Traits("", NOTHING, NOTHING)


def ask(
    method: str,
    size_bytes: int,
    *,
    content_type: str = "application/json",
    accept: str = "application/json",
    begins: bytes = b"a: b",
) -> ApiRequest:
    headers = {"content-type": content_type, "accept": accept}
    return ApiRequest(method, f"{MAPS}/a", {}, ADMIN, headers, begins.ljust(size_bytes) if size_bytes else b"")


Meanwhile = Callable[[], Awaitable[object]]


class Interrupted(Worker):
    """Works at once; then others have their turn, before the loop hears of it."""

    def __init__(self, running: RunningApi) -> None:
        self.authorizer = running.core.authorizer
        self.meanwhile: list[Meanwhile] = []
        self.runs = 0

    async def run(self, user: User, work: Callable[[], Result], *, is_stream: bool = False) -> Result:
        self.runs += 1
        try:
            return work()
        finally:
            if self.meanwhile:
                await self.meanwhile.pop(0)()


class Callers:
    """One whose large requests are interrupted, and one who interrupts."""

    def __init__(self, running: RunningApi) -> None:
        self.running = running
        self.worker = Interrupted(running)
        api = Api(replace(running.core, worker=self.worker), running.identity, running.api._pages)
        self._api, self._other = api, running.transport()
        self.user = ADMIN

    async def asks(self, method: str, path: str, body: Any, content_type: str = "application/json") -> Response:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        path, _, query = path.partition("?")
        asked = tuple((name, value) for name, _, value in (one.partition("=") for one in query.split("&") if one))
        return await self.transport().send(Request(method, path, asked, body=raw, content_type=content_type))

    def transport(self) -> InProcessTransport:
        return InProcessTransport(self._api, self.user)

    def meanwhile(self, method: str, path: str, body: Any, times: int = 1) -> None:
        async def write(turn: int) -> None:
            raw = msgspec.json.encode(body).replace(b"TURN", str(turn).encode())
            content_type = MERGE if method == "PATCH" else "application/json"
            assert (await self._other.send(Request(method, path, body=raw, content_type=content_type))).status < 300

        self.worker.meanwhile += [lambda turn=turn: write(turn) for turn in range(times)]  # type: ignore[misc]

    async def stored(self, path: str) -> dict[str, Any]:
        answer = await self._other.send(Request("GET", path))
        assert answer.status == 200
        found: dict[str, Any] = msgspec.json.decode(answer.body)
        return found


@pytest.fixture
async def callers(clock: Clock) -> AsyncIterator[Callers]:
    async with serving(clock, ["ci", "test"]) as running:
        yield Callers(running)


async def test_a_large_object_is_stored_and_answered_with_its_revision(callers: Callers) -> None:
    before = callers.running.store.revision
    made = await callers.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": LARGE})
    assert made.status == 201
    assert msgspec.json.decode(made.body) == await callers.stored(f"{MAPS}/a")
    assert (await callers.stored(f"{MAPS}/a"))["metadata"]["resourceVersion"] == str(before + 1)
    gone = await callers.asks("DELETE", f"{MAPS}/a", b"")
    assert gone.status == 200
    assert callers.running.store.revision == before + 2
    assert callers.worker.runs == 2


async def test_what_others_write_meanwhile_is_not_lost(callers: Callers) -> None:
    await callers.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": {"b": "c"}})
    callers.meanwhile("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"by": "another"}}})
    patched = await callers.asks("PATCH", f"{MAPS}/a", {"data": LARGE}, MERGE)
    assert patched.status == 200
    assert callers.worker.runs == 2
    found = await callers.stored(f"{MAPS}/a")
    assert (found["metadata"]["labels"], found["data"]) == ({"by": "another"}, {"b": "c", **LARGE})
    assert msgspec.json.decode(patched.body) == found


async def test_writes_of_other_objects_meanwhile_change_nothing(callers: Callers) -> None:
    callers.meanwhile("POST", MAPS, {"metadata": {"name": "other"}}, times=1)
    made = await callers.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": LARGE})
    assert (made.status, callers.worker.runs) == (201, 1)
    assert msgspec.json.decode(made.body) == await callers.stored(f"{MAPS}/a")


async def test_an_update_of_an_older_revision_conflicts_also_when_it_became_older_meanwhile(callers: Callers) -> None:
    await callers.asks("POST", MAPS, {"metadata": {"name": "a"}})
    mine = await callers.stored(f"{MAPS}/a")
    callers.meanwhile("PATCH", f"{MAPS}/a", {"data": {"by": "another"}})
    assert (await callers.asks("PUT", f"{MAPS}/a", {**mine, "data": LARGE})).status == 409
    assert (await callers.stored(f"{MAPS}/a"))["data"] == {"by": "another"}


async def test_nothing_is_created_in_a_namespace_that_was_deleted_meanwhile(callers: Callers) -> None:
    callers.meanwhile("DELETE", "/api/v1/namespaces/ci", {})
    assert (await callers.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": LARGE})).status in (403, 404)


@pytest.mark.parametrize("change", ["tightened", "deleted"])
async def test_a_large_object_is_held_against_its_definition_as_it_is_by_then(callers: Callers, change: str) -> None:
    """A request may wait for the thread longer than its definition lives."""
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"data": {"type": "object", "additionalProperties": text}}}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await callers.asks("POST", definitions, definition("drafts", schema))).status == 201
    tight = {"type": "object", "properties": {"data": {"type": "object", "additionalProperties": {**text, "maxLength": 9}}}}
    if change == "tightened":
        callers.meanwhile(
            "PATCH", f"{definitions}/drafts.{GROUP}", {"spec": {"versions": definition("drafts", tight)["spec"]["versions"]}}
        )
    else:
        callers.meanwhile("DELETE", f"{definitions}/drafts.{GROUP}", {})
    answer = await callers.asks("POST", f"/apis/{GROUP}/v1/drafts", resource("drafts", "a", data=LARGE))
    assert answer.status == (422 if change == "tightened" else 404)
    assert len(callers.running.store.table(f"drafts.{GROUP}")) == 0


async def test_a_large_pod_is_not_evicted_past_a_budget_that_was_made_meanwhile(callers: Callers) -> None:
    large = {**POD, "metadata": {"name": "p", "annotations": LARGE}}
    assert (await callers.asks("POST", PODS, large)).status == 201
    assert (await callers.asks("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, MERGE)).status == 200
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {}}}
    callers.meanwhile("POST", "/apis/policy/v1/namespaces/ci/poddisruptionbudgets", budget)
    assert (await callers.asks("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})).status == 429


async def test_a_large_role_is_not_written_by_a_right_that_was_withdrawn_meanwhile(callers: Callers) -> None:
    """What the escalation check read of roles was not noted as other reads are."""
    rbac, everything = "/apis/rbac.authorization.k8s.io/v1", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"}
    await callers.asks("POST", f"{rbac}/clusterroles", {"metadata": {"name": "all"}, "rules": everything})
    binding = {"metadata": {"name": "all"}, "subjects": subjects, "roleRef": reference}
    assert (await callers.asks("POST", f"{rbac}/clusterrolebindings", binding)).status == 201
    callers.user = User("alice", ())
    role = {"metadata": {"name": "mine", "annotations": LARGE}, "rules": everything}
    callers.meanwhile("PATCH", f"{rbac}/clusterroles/all", {"rules": []})
    assert (await callers.asks("POST", f"{rbac}/clusterroles", role)).status == 403
    assert callers.worker.runs == 2


async def test_a_handler_finds_what_it_wrote_as_it_wrote_it_last(callers: Callers) -> None:
    tried = Trial(replace(callers.running.core, worker=callers.worker))
    for value in (b"1", b"2"):
        tried.write("things", Op.MODIFIED, Record(Key("ci", "a"), tried.next_revision(), value, Traits("", NOTHING, NOTHING)))
    found = tried.table("things").tip(Key("ci", "a"))
    assert found is not None
    assert found.value == b"2"


class SlowLog(MemoryLog):
    """A log whose disk takes a second."""

    def submit(self, entry: LogEntry) -> None:
        asyncio.get_running_loop().call_later(1.0, self._published, [entry])


@pytest.mark.parametrize("data", [LARGE, {"small": "x"}], ids=["beside the loop", "on it"])
@pytest.mark.parametrize("is_change", [True, False], ids=["a change", "no change of what is on its way"])
async def test_nothing_is_answered_before_it_is_on_the_disk(clock: Clock, data: dict[str, str], is_change: bool) -> None:
    """Also if whoever wrote what is on its way has gone meanwhile."""
    async with running_api(SlowLog(), clock, token_keys()) as running:
        callers, document = Callers(running), {"metadata": {"name": "a"}, "data": data}
        maps = "/api/v1/namespaces/default/configmaps"
        first = asyncio.create_task(running.transport().send(Request("POST", maps, body=msgspec.json.encode(document))))
        await elapse(0.5)
        asyncio.get_running_loop().call_later(0.2, first.cancel)
        began_s = clock.monotonic()
        change = {name: "changed" if is_change else value for name, value in data.items()}
        assert (await callers.asks("PATCH", f"{maps}/a", {"data": change}, MERGE)).status == 200
        assert clock.monotonic() - began_s == pytest.approx(1.0 if is_change else 0.5)
        assert first.cancelled()


async def test_a_deletion_that_changes_nothing_is_not_answered_before_the_one_that_did_is_on_the_disk(clock: Clock) -> None:
    async with running_api(SlowLog(), clock, token_keys()) as running:
        callers, held = Callers(running), {"metadata": {"name": "a", "finalizers": ["example.com/held"]}}
        maps = "/api/v1/namespaces/default/configmaps"
        assert (await callers.asks("POST", maps, held)).status == 201
        first = asyncio.create_task(callers.asks("DELETE", f"{maps}/a", b""))
        await elapse(0.5)
        began_s = clock.monotonic()
        assert (await callers.asks("DELETE", f"{maps}/a", b"")).status == 200
        assert clock.monotonic() - began_s == pytest.approx(0.5)
        assert (await first).status == 200


async def test_two_large_creations_of_one_name_make_one_object(callers: Callers) -> None:
    callers.meanwhile("POST", MAPS, {"metadata": {"name": "a"}, "data": {"by": "another"}})
    assert (await callers.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": LARGE})).status == 409
    assert (await callers.stored(f"{MAPS}/a"))["data"] == {"by": "another"}


async def test_what_changes_all_the_time_is_told_to_come_again(callers: Callers) -> None:
    await callers.asks("POST", MAPS, {"metadata": {"name": "a"}})
    callers.meanwhile("PATCH", f"{MAPS}/a", {"data": {"turn": "TURN"}}, times=10)
    assert (await callers.asks("PATCH", f"{MAPS}/a", {"data": LARGE}, MERGE)).status == 429
    assert set((await callers.stored(f"{MAPS}/a"))["data"]) == {"turn"}


async def test_a_dry_run_stores_nothing(callers: Callers) -> None:
    before = callers.running.store.revision
    assert (await callers.asks("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}, "data": LARGE})).status == 201
    assert callers.running.store.revision == before


async def test_json_that_kubectl_sends_as_yaml_may_be_large_and_yaml_may_not(callers: Callers) -> None:
    """2.8 MB of YAML took the loop 14 s."""
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x" * 1_000_000}}
    assert (await callers.asks("PATCH", f"{MAPS}/a?fieldManager=kubectl", applied, APPLY)).status == 201
    yaml = b"metadata: {name: b}\ndata:\n" + b"".join(b"  k%d: v\n" % number for number in range(MOST_YAML_BYTES // 9))
    for method, path, content_type in (("POST", MAPS, "application/yaml"), ("PATCH", f"{MAPS}/b?fieldManager=me", APPLY)):
        answer = await callers.asks(method, path, yaml, content_type)
        assert (answer.status, b"limit is 262144 for YAML; send JSON" in answer.body) == (413, True)


@pytest.mark.parametrize(
    ("request_", "stored_bytes", "expected"),
    [
        (ask("POST", 2_000), 0, False),
        (ask("POST", 2_000, content_type="application/yaml"), 0, True),
        (ask("POST", 2_000, content_type="application/yaml", begins=b"{"), 0, False),
        (ask("POST", 20_000), 0, True),
        (ask("PATCH", 10), 20_000, True),
        (ask("GET", 0), 20_000, False),
        (ask("GET", 0, accept="application/json;as=Table"), 20_000, True),
        (ask("GET", 0, accept="application/yaml"), 2_000, True),
        (ask("GET", 0, accept="application/yaml"), 500, False),
    ],
)
def test_what_is_large_is_told_by_what_is_read_made_and_shown(request_: ApiRequest, stored_bytes: int, expected: bool) -> None:
    """A byte of YAML is as much work as sixteen of JSON, read or written."""
    value = b'{"metadata":{"name":"a"}}'.ljust(stored_bytes)
    record = Record(Key("ci", "a"), 1, value, NO_TRAITS) if stored_bytes else None
    assert is_large(request_, record) is expected


async def test_an_object_is_no_larger_than_in_etcd(callers: Callers) -> None:
    crowded = {f"example.com/k{number}": "v" * 2000 for number in range(100)}  # 200 kB of annotations
    containers = [{"name": f"c{number}", "image": "i" * 300} for number in range(5000)]
    pod = {"metadata": {"name": "p", "annotations": crowded}, "spec": {"containers": containers}}
    answer = await callers.asks("POST", "/api/v1/namespaces/ci/pods", pod)
    assert answer.status == 413
    assert f"etcdserver: request is too large: limit is {OBJECT_LIMIT_BYTES}".encode() in answer.body


async def test_a_body_has_only_so_many_values_however_much_text(callers: Callers) -> None:
    """2.7 MB of `{}` kept everybody waiting for 2 s: one call made, checked or freed them all."""
    many = b"[" + b",".join([b"{}"] * (MOST_VALUES // 2)) + b"]"
    for body in (b'{"metadata":{"name":"a"},"x":%b}' % many, b'{"spec":{"containers":%b}}' % many, b'{"a\\\\":%b}' % many):
        answer = await callers.asks("POST", PODS, body)
        assert (answer.status, b"limit is 100000 values" in answer.body) == (413, True)
    text = {"a": '\\",{[' * MOST_VALUES}
    assert (await callers.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": text})).status == 201


async def test_an_object_does_not_come_to_have_more_values_patch_by_patch(callers: Callers) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await callers.asks("POST", definitions, definition("drafts", schema))
    drafts = f"/apis/{GROUP}/v1/drafts"
    assert (await callers.asks("POST", drafts, resource("drafts", "a"))).status == 201
    codes = [(await callers.asks("PATCH", f"{drafts}/a", {"spec": {name: [1] * 60_000}}, MERGE)).status for name in "ab"]
    assert codes == [200, 413]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"{MAPS}/a"),
        ("DELETE", MAPS),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/api/v1/namespaces/ci/pods/p/eviction"),
    ],
)
async def test_options_and_questions_are_small(callers: Callers, method: str, path: str) -> None:
    assert (await callers.asks(method, path, b" " * 100_000)).status == 413


PODS, STRATEGIC, STEPS = "/api/v1/namespaces/ci/pods", "application/strategic-merge-patch+json", "application/json-patch+json"
POD = {
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {"nodeName": "mac", "containers": [{"name": "c", "image": "i"}]},
}
BINDINGS = "/api/v1/namespaces/ci/bindings"
UNBOUND = {"metadata": {"name": "u"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
HELD = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
READING = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "ci"}}
WRITES: list[tuple[str, str, Any, str]] = [
    ("POST", PODS, POD, ""),
    ("POST", PODS, POD, ""),
    ("POST", PODS, {"spec": {}}, ""),
    ("POST", f"{PODS}?dryRun=All", {**POD, "metadata": {"generateName": "x"}}, ""),
    ("PATCH", f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, STRATEGIC),
    ("PATCH", f"{PODS}/p", [{"op": "test", "path": "/metadata/labels/a", "value": "no"}], STEPS),
    ("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, MERGE),
    ("PATCH", f"{PODS}/p", {"spec": {"nodeName": "other"}}, MERGE),
    ("PATCH", f"{PODS}/p", {}, MERGE),
    ("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, ""),
    ("DELETE", f"{PODS}/p?gracePeriodSeconds=0", b"", ""),
    ("PUT", f"{PODS}/p", POD, ""),
    ("POST", MAPS, HELD, ""),
    ("DELETE", f"{MAPS}/held", b"", ""),
    ("POST", MAPS, HELD, ""),
    ("PATCH", f"{MAPS}/held", {"metadata": {"finalizers": None}}, MERGE),
    ("PATCH", f"{MAPS}/a?fieldManager=one", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}, APPLY),
    ("PATCH", f"{MAPS}/a?fieldManager=two", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "2"}}, APPLY),
    ("PATCH", f"{MAPS}/a?fieldManager=one", {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}, APPLY),
    ("PUT", f"{MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}, ""),
    ("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "another"}}, ""),
    ("DELETE", f"{MAPS}/a", b"", ""),
    ("POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": READING}, ""),
    ("POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {**READING, "user": "nobody"}}, ""),
    ("POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "ci"}}, ""),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "a.b.c"}}, ""),
    ("POST", PODS, UNBOUND, ""),
    ("POST", BINDINGS, {"metadata": {"name": "u"}, "target": {"name": "mac"}}, ""),
    ("POST", BINDINGS, {"metadata": {"name": "u"}, "target": {"name": "mac"}}, ""),
]


async def test_every_write_does_beside_the_loop_what_it_does_on_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[tuple[int, bytes]]] = []
    for large_bytes in (LARGE_BYTES, -1):
        monkeypatch.setattr(trial, "LARGE_BYTES", large_bytes)
        async with serving(clock, ["ci"]) as running:
            callers = Callers(running)
            told = [await callers.asks(method, path, body, kind or "application/json") for method, path, body, kind in WRITES]
            answers.append([(one.status, re.sub(rb'"uid":"[^"]*"|"name":"x\w+"', b"", one.body)) for one in told])
            assert callers.worker.runs == (0 if large_bytes > 0 else len(WRITES))
            answers[-1].append((running.store.revision, b""))
    assert answers[0] == answers[1]
    assert {status for status, _ in answers[0]} >= {200, 201, 404, 409, 422}


async def test_a_small_object_whose_rules_are_much_work_is_held_against_them_beside_the_loop(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million steps are a second, and any tenant may write an object that needs them."""
    monkeypatch.setattr(budget, "OF_THE_LOOP", 300)
    rule = {"rule": "self.all(x, self.all(y, x >= y - 1000000))"}
    numbers = {"type": "array", "maxItems": 300, "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"numbers": numbers}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }
    assert (await callers.asks("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)).status == 201
    things, before = "/apis/example.com/v1/namespaces/ci/things", callers.worker.runs
    for name, count, runs in (("few", 3, 0), ("many", 90, 1)):
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"numbers": [1] * count}}
        assert (await callers.asks("POST", things, thing)).status == 201
        assert (name, callers.worker.runs - before) == (name, runs)


RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/ci"
PODS = "/api/v1/namespaces/ci/pods"
CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}


REPEATED = b"a: &a [x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b]\n"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", MAPS, 422),  # it has no name
        ("POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", 422),  # it asks nothing
        ("POST", BINDINGS, 400),  # it names no node
        ("DELETE", MAPS, 200),
        ("DELETE", f"{MAPS}/a", 200),
    ],
)
async def test_whatever_is_sent_is_read_beside_the_loop_where_that_is_much(
    callers: Callers, monkeypatch: pytest.MonkeyPatch, method: str, path: str, status: int
) -> None:
    """1,158 bytes of YAML, as a question or as options for all objects, kept the loop for 375 ms."""
    assert (await callers.asks("POST", MAPS, {"metadata": {"name": "a"}})).status == 201
    monkeypatch.setattr(budget, "OF_THE_LOOP", 300)
    assert (await callers.asks(method, path, REPEATED, "application/yaml")).status == status
    assert callers.worker.runs == 1


async def test_a_large_pod_that_only_the_body_names_is_bound_beside_the_loop(callers: Callers) -> None:
    assert (
        await callers.asks("POST", PODS, {**UNBOUND, "metadata": {"name": "u", "annotations": {"a": "x" * 50_000}}})
    ).status == 201
    assert (await callers.asks("POST", BINDINGS, {"metadata": {"name": "u"}, "target": {"name": "mac"}})).status == 201
    assert callers.worker.runs == 2
    assert (await callers.stored(f"{PODS}/u"))["spec"]["nodeName"] == "mac"


async def test_a_small_request_about_much_is_worked_out_beside_the_loop(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role of 300 bytes kept the loop for 400 ms, a Pod of an account with 40,000 pull secrets for 9 s."""
    callers._api.core = replace(callers._api.core, settings=Settings(needs_service_accounts=True))
    secrets = [{"name": str(number)} for number in range(40)]
    account = {"metadata": {"name": "default"}, "imagePullSecrets": secrets}
    assert (await callers.asks("POST", "/api/v1/namespaces/ci/serviceaccounts", account)).status == 201
    subjects = [{"kind": "User", "name": "tenant", "apiGroup": "rbac.authorization.k8s.io"}]
    right = {"kind": "ClusterRole", "name": "admin", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "tenant"}, "subjects": subjects, "roleRef": right}
    assert (await callers.asks("POST", f"{RBAC}/rolebindings", binding)).status == 201
    for number in range(20):
        budget_of = {"metadata": {"name": str(number)}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
        path = "/apis/policy/v1/namespaces/ci/poddisruptionbudgets"
        assert (await callers.asks("POST", path, budget_of)).status == 201
    assert callers.worker.runs == 0

    monkeypatch.setattr(budget, "OF_THE_LOOP", 300)
    callers.user = User("tenant", ("system:authenticated",))
    assert (await callers.asks("POST", PODS, {"metadata": {"name": "p"}, "spec": CONTAINERS})).status == 201
    assert callers.worker.runs == 1
    assert (await callers.stored(f"{PODS}/p"))["spec"]["imagePullSecrets"] == secrets
    names = [str(number) for number in range(8)]
    rule = {"verbs": names, "apiGroups": names, "resources": names, "resourceNames": names}
    assert (await callers.asks("POST", f"{RBAC}/roles", {"metadata": {"name": "r"}, "rules": [rule]})).status == 403
    assert callers.worker.runs == 2
    callers.user = ADMIN
    assert (await callers.asks("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, MERGE)).status == 200
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await callers.asks("POST", f"{PODS}/p/eviction", eviction)).status == 201
    assert callers.worker.runs == 3


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
THINGS = "/apis/example.com/v1/namespaces/ci/things"


def thing(name: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "all": [1] * 200}


async def define_searching_columns(callers: Callers) -> None:
    column = {"name": "All", "type": "integer", "jsonPath": ".all[*]"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": [column] * 2}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    crd = {"metadata": {"name": "things.example.com"}, "spec": spec}
    assert (await callers.asks("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)).status == 201


async def test_small_objects_whose_columns_are_much_work_are_shown_beside_the_loop(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "OF_THE_LOOP", 300)
    await define_searching_columns(callers)
    for name in ("a", "b"):
        assert (await callers.asks("POST", THINGS, thing(name))).status == 201
    before = callers.worker.runs
    transport = callers.transport()
    listed = msgspec.json.decode((await transport.send(Request("GET", THINGS, accept=TABLE))).body)
    assert [row["cells"] for row in listed["rows"]] == [["a", 1, 1], ["b", 1, 1]]
    assert callers.worker.runs == before + 1
    watch = await transport.open(Request("GET", THINGS, (("watch", "1"),), accept=TABLE))
    lines = [msgspec.json.decode(line)["object"] for line in (await watch.read()).splitlines()]
    await watch.aclose()
    assert [[row["cells"] for row in line["rows"]] for line in lines] == [[["a", 1, 1]], [["b", 1, 1]]]
    assert [len(line["columnDefinitions"] or ()) for line in lines] == [3, 0]
    assert callers.worker.runs == before + 2


async def test_a_large_object_that_leaves_a_selection_is_shown_beside_the_loop(callers: Callers) -> None:
    """Only what was left of it was looked at."""
    large = {"metadata": {"name": "a", "labels": {"large": "y"}}, "data": LARGE}
    assert (await callers.asks("POST", MAPS, large)).status == 201
    query = (("watch", "1"), ("labelSelector", "large"), ("resourceVersion", str(callers.running.store.revision)))
    assert (await callers.asks("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}})).status == 200
    before = callers.worker.runs
    watch = await InProcessTransport(callers._api, ADMIN).open(Request("GET", MAPS, query, accept=TABLE))
    event = msgspec.json.decode(await watch.read())
    await watch.aclose()
    assert (event["type"], event["object"]["rows"][0]["cells"][:2]) == ("DELETED", ["a", 1])
    assert callers.worker.runs == before + 1


class WithoutThread(Worker):
    async def _run(self, work: Callable[[], Result]) -> Result:
        await asyncio.sleep(0)
        return work()


async def test_a_large_change_reaches_every_watch_of_one_namespace_and_is_encoded_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 12 ServiceAccounts with a watch of metadata 4 were cut off by each change of a ConfigMap of 20 kB."""
    encoded, partial_of = [], Forms._partial

    def noted(forms: Forms, record: Record) -> bytes:
        encoded.append(record.revision)
        return partial_of(forms, record)

    monkeypatch.setattr(Forms, "_partial", noted)
    async with serving(clock, ["ci"]) as running:
        send, worker = running.transport().send, WithoutThread(running.core.authorizer)
        made = await send(Request("POST", MAPS, body=msgspec.json.encode({"metadata": {"name": "a"}, "data": LARGE})))
        assert made.status == 201
        api = Api(replace(running.core, worker=worker), running.identity, running.api._pages)
        accounts = [User(f"system:serviceaccount:team:a{number}") for number in range(12)]
        query = (("watch", "1"), ("resourceVersion", str(running.store.revision)), ("timeoutSeconds", "5"))
        asked = Request("GET", MAPS, query, accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        watches = [await InProcessTransport(api, User("admin", (MASTERS,), caller=account)).open(asked) for account in accounts]
        reads = [asyncio.create_task(watch.read()) for watch in watches]
        await elapse(1)
        changed = await send(Request("PATCH", f"{MAPS}/a", body=b'{"data":{"b":"1"}}', content_type=MERGE))
        assert changed.status == 200
        lines = await asyncio.gather(*reads, return_exceptions=True)
        assert all(isinstance(line, bytes) and line.startswith(b'{"type":"MODIFIED"') for line in lines)
        assert encoded == [running.store.revision]
        for watch in watches:
            await watch.aclose()
        worker.close()


@pytest.mark.parametrize("accept", [TABLE, "application/yaml"], ids=["a table", "YAML"])
async def test_a_list_that_has_begun_is_not_cut_because_others_list_as_well(clock: Clock, accept: str) -> None:
    """The ninth list of one user's large objects was refused after its first bytes."""
    async with serving(clock, ["ci"]) as running:
        send, worker = running.transport().send, WithoutThread(running.core.authorizer)
        made = await send(Request("POST", MAPS, body=msgspec.json.encode({"metadata": {"name": "a"}, "data": LARGE})))
        assert made.status == 201
        api = Api(replace(running.core, worker=worker), running.identity, running.api._pages)
        one = InProcessTransport(api, User("admin", (MASTERS,), caller=User("system:serviceaccount:team:a")))
        lists = await asyncio.gather(*(one.send(Request("GET", MAPS, accept=accept)) for _ in range(3 * MOST_WAITING)))
        assert {(answer.status, answer.body == lists[0].body) for answer in lists} == {(200, True)}
        worker.close()


async def test_what_is_written_is_not_written_again_because_its_answer_is_much_work(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object of small size, whose columns search it: it was made, and then once more beside the loop, which said 409."""
    monkeypatch.setattr(budget, "OF_THE_LOOP", 300)
    await define_searching_columns(callers)
    transport = callers.transport()
    made = await transport.send(Request("POST", THINGS, (), msgspec.json.encode(thing("a")), accept=TABLE))
    assert made.status == 201
    longer = [{"op": "add", "path": "/all/-", "value": 1}]
    sent = Request("PATCH", f"{THINGS}/a", (), msgspec.json.encode(longer), "application/json-patch+json", accept=TABLE)
    assert (await transport.send(sent)).status == 200
    assert len((await callers.stored(f"{THINGS}/a"))["all"]) == 201
    assert (await transport.send(Request("DELETE", f"{THINGS}/a", accept=TABLE))).status == 200


@pytest.mark.parametrize("options", [{}, {"dryRun": ["All"]}], ids=["", "in a dry run"])
async def test_large_objects_of_a_collection_are_deleted_beside_the_loop(callers: Callers, options: dict[str, Any]) -> None:
    """A hundred objects of 1.3 MB kept the loop for 1.4 s."""
    for name, data in (("a", LARGE), ("b", {"small": "x"}), ("c", LARGE), ("d", LARGE)):
        assert (await callers.asks("POST", MAPS, {"metadata": {"name": name}, "data": data})).status == 201
    before = callers.worker.runs
    callers.meanwhile("PATCH", f"{MAPS}/a", {"data": {"by": "another"}})
    callers.meanwhile("DELETE", f"{MAPS}/a", {})
    callers.meanwhile("PATCH", f"{MAPS}/c", {"metadata": {"labels": {"keep": "me"}}})
    answer = await callers.asks("DELETE", f"{MAPS}?labelSelector=!keep", options)
    assert (answer.status, len(msgspec.json.decode(answer.body)["items"])) == (200, 4)
    left = [record.key.name for record in callers.running.store.table("configmaps").records()]
    assert left == (["b", "c", "d"] if options else ["c"])
    assert callers.worker.runs == before + 5  # the first one again after each of the two that came between


@pytest.mark.real_time
async def test_large_objects_of_a_deleted_definition_go_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    run, users, gone = Worker.run, [], asyncio.Event()

    async def noted(worker: Worker, user: User, work: Callable[[], Result], *, is_stream: bool = False) -> Result:
        users.append(user)
        return await run(worker, user, work, is_stream=is_stream)

    monkeypatch.setattr(Worker, "run", noted)
    schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    things = [{**resource("drafts", name), "spec": spec} for name, spec in (("a", LARGE), ("b", {}), ("c", LARGE))]
    async with running_api(MemoryLog(), SystemClock(), token_keys(), has_worker=True) as running:
        send = running.transport().send
        running.store.on_commit(CRD_LABEL, lambda change: gone.set() if change.op is Op.DELETED else None)
        for path, made in ((DEFINITIONS, definition("drafts", schema)), *((f"/apis/{GROUP}/v1/drafts", one) for one in things)):
            assert (await send(Request("POST", path, body=msgspec.json.encode(made)))).status == 201
        assert (await send(Request("DELETE", f"{DEFINITIONS}/drafts.{GROUP}"))).status == 200
        async with asyncio.timeout(20):
            await gone.wait()
        assert len(running.store.table(f"drafts.{GROUP}")) == 0
    assert users.count(SYSTEM) == 2
