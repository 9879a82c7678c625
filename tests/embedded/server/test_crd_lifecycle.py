"""Definitions and the kinds of the server itself, which no definition replaces, joins or takes along."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal, too_many_requests
from applecart.embedded.schema.crd_strategy import MOST_OF_A_DEFINITION
from applecart.embedded.schema.custom_kind import _compiled
from applecart.embedded.server import crd_lifecycle, gate, registry
from applecart.embedded.server.admission import Write
from applecart.embedded.server.core import Core
from applecart.embedded.server.crd_lifecycle import LOOK_AGAIN_S
from applecart.embedded.server.deletion import DeleteOptions
from applecart.embedded.server.gate import Submitted, write_own
from applecart.embedded.server.registry import Registry
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.server.server import RunningApi, running_api
from applecart.embedded.store import store
from applecart.embedded.store.record import Record
from applecart.embedded.tables.json_path import MAX_LENGTH
from tests.embedded.memory_log import MemoryLog
from tests.embedded.schema.definition_documents import GROUP, definition, resource
from tests.kube.embedded_api import serving, token_keys
from tests.turns import Turns
from tests.virtual_time import elapse

ADMIN = User("admin", (MASTERS,))
AUTHOR = User("author", ("system:authenticated",))  # who may do everything with definitions, and nothing else
RBAC = "rbac.authorization.k8s.io"
ROLES, BINDINGS = f"/apis/{RBAC}/v1/clusterroles", f"/apis/{RBAC}/v1/clusterrolebindings"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVERYTHING = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}}
MINE: dict[str, Any] = {"subjects": [{"kind": "User", "apiGroup": RBAC, "name": AUTHOR.name}]}


async def call(running: RunningApi, user: User, method: str, path: str, body: Any = None) -> Any:
    headers = {"content-type": "application/json"}
    answer = await running.api.handle(ApiRequest(method, path, {}, user, headers, msgspec.json.encode(body) if body else b""))
    assert isinstance(answer, Answer)
    return answer.status, msgspec.json.decode(answer.body) if answer.body[:1] == b"{" else answer.body


def taking_over(plural: str = "clusterrolebindings", kind: str = "ClusterRoleBinding", group: str = RBAC) -> dict[str, Any]:
    """A definition whose defaults make its author a cluster-admin, through every binding that is read."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {
        "subjects": {"type": "array", "items": free, "default": MINE["subjects"]},
        "roleRef": {**free, "default": EVERYTHING["roleRef"]},
    }
    crd = definition(plural, {**free, "properties": properties})
    crd["metadata"] = {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}}
    crd["spec"] |= {"group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind}}
    return crd


async def let_define(running: RunningApi) -> None:
    """The author may do everything with definitions."""
    rules = [{"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
    role = {"metadata": {"name": "definers"}, "rules": rules}
    binding = {"metadata": {"name": "definers"}, **MINE, "roleRef": {**EVERYTHING["roleRef"], "name": "definers"}}
    for path, document in ((ROLES, role), (BINDINGS, binding)):
        assert (await call(running, ADMIN, "POST", path, document))[0] == 201


async def bindings(running: RunningApi) -> dict[str, Any]:
    items = (await call(running, ADMIN, "GET", BINDINGS))[1]["items"]
    return {item["metadata"]["name"]: (item["metadata"]["uid"], item.get("subjects"), item["roleRef"]) for item in items}


async def test_a_definition_cannot_take_over_a_kind_of_the_server(clock: Clock) -> None:
    """Seen once: such a definition replaced ClusterRoleBinding, its default bound everybody's bindings to its author, and its
    deletion removed every binding of the cluster."""
    async with serving(clock) as running:
        await let_define(running)
        before = await bindings(running)
        status, refusal = await call(running, AUTHOR, "POST", DEFINITIONS, taking_over())
        assert (status, refusal["reason"]) == (422, "Invalid")
        assert "spec.group" in refusal["message"]
        assert "built into this server" in refusal["message"]
        path = f"{DEFINITIONS}/clusterrolebindings.{RBAC}"
        assert (await call(running, AUTHOR, "PUT", path, taking_over()))[0] in (404, 405, 422)
        assert (await call(running, AUTHOR, "GET", "/api/v1/secrets"))[0] == 403
        await call(running, AUTHOR, "DELETE", path)
        await elapse(5)
        assert await bindings(running) == before


@pytest.mark.parametrize(
    "group", [RBAC, "apiextensions.k8s.io", "authentication.k8s.io", "metrics.k8s.io", "coordination.k8s.io"]
)
async def test_no_other_kind_joins_a_group_of_the_server(clock: Clock, group: str) -> None:
    async with serving(clock) as running:
        assert (await call(running, ADMIN, "POST", DEFINITIONS, taking_over("extras", "Extra", group)))[0] == 422


async def test_the_names_of_built_in_kinds_are_free_in_other_groups(clock: Clock) -> None:
    async with serving(clock) as running:
        crd = taking_over("pods", "Pod", "example.com")
        crd["spec"]["names"]["shortNames"] = ["po"]
        assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
        thing = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "x"}}
        assert (await call(running, ADMIN, "POST", "/apis/example.com/v1/pods", thing))[0] == 201
        assert (await call(running, ADMIN, "GET", "/api/v1/pods"))[1]["items"] == []
        await call(running, ADMIN, "DELETE", f"{DEFINITIONS}/pods.example.com")
        await elapse(5)
        assert (await call(running, ADMIN, "GET", "/api/v1/pods"))[0] == 200


async def test_such_a_definition_of_an_older_server_is_not_served_and_goes_alone(clock: Clock) -> None:
    """A database written before they were refused may hold one; it neither acts nor keeps anybody from deleting it.

    It said for ever that it was Established."""
    log = MemoryLog()
    async with running_api(log, clock, token_keys()) as running:
        await let_define(running)
        before = await bindings(running)
        kind = running.core.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert kind is not None
        crd = taking_over()
        kind.strategy.default(crd)
        kind.strategy.prepare_create(crd)
        crd["status"]["acceptedNames"] = crd["spec"]["names"]
        crd["status"]["conditions"] = [{"type": name, "status": "True"} for name in ("NamesAccepted", "Established")]
        await write_own(running.core, kind, crd | {"metadata": {**crd["metadata"], "uid": "1"}}).settle()
        assert await bindings(running) == before
        assert not running.core.registry.custom(f"clusterrolebindings.{RBAC}")
    async with running_api(log, clock, token_keys()) as running:
        assert await bindings(running) == before
        assert (await call(running, AUTHOR, "GET", "/api/v1/secrets"))[0] == 403
        path = f"{DEFINITIONS}/clusterrolebindings.{RBAC}"
        await elapse(1)
        code, found = await call(running, AUTHOR, "GET", path)
        assert (code, states(found)) == (200, {"NamesAccepted": "False", "Established": "False"})
        assert (await call(running, AUTHOR, "PUT", path, found | {"metadata": {**found["metadata"], "labels": {"a": "b"}}}))[
            0
        ] == 200
        assert states((await call(running, AUTHOR, "GET", path))[1]) == states(found)
        assert (await call(running, AUTHOR, "DELETE", path))[0] == 200
        await elapse(5)
        assert (await call(running, AUTHOR, "GET", path))[0] == 404
        assert await bindings(running) == before


def states(definition: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in definition["status"]["conditions"]}


async def test_a_default_that_was_a_number_and_is_a_truth_is_another_one(clock: Clock) -> None:
    """1 == True in Python: the definition said the one, and new objects got the other."""
    async with serving(clock) as running:
        for default in (1, True):
            free = {"default": default, "x-kubernetes-preserve-unknown-fields": True}
            crd = definition("truths", {"type": "object", "properties": {"spec": free}})
            path = f"{DEFINITIONS}/truths.{GROUP}"
            code, found = await call(running, ADMIN, "GET", path)
            if code == 404:
                assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
            else:
                assert (await call(running, ADMIN, "PUT", path, found | {"spec": crd["spec"]}))[0] == 200
            thing = {"apiVersion": f"{GROUP}/v1", "kind": "Truths", "metadata": {"generateName": "x"}}
            code, made = await call(running, ADMIN, "POST", f"/apis/{GROUP}/v1/truths", thing)
            assert (code, made["spec"] is default) == (201, True)


async def test_a_schema_is_compiled_once_from_its_check_to_the_end_of_its_definition(clock: Clock) -> None:
    """1 MB of schema, checked beside the loop, was compiled on the loop when it was stored, and twice when it was deleted."""
    async with serving(clock) as running:
        before = _compiled.cache_info().misses
        crd = definition("large", {"type": "object", "properties": {"spec": {"type": "object"}}})
        assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
        path = f"{DEFINITIONS}/large.{GROUP}"
        labels = (await call(running, ADMIN, "GET", path))[1]
        labels["metadata"]["labels"] = {"a": "b"}
        assert (await call(running, ADMIN, "PUT", path, labels))[0] == 200
        assert (await call(running, ADMIN, "DELETE", path))[0] == 200
        await elapse(5)
        assert (await call(running, ADMIN, "GET", path))[0] == 404
        assert _compiled.cache_info().misses - before == 1


@pytest.mark.parametrize(
    "what", ["spec.names.shortNames", "spec.names.categories", "spec.versions", "spec.versions[0].additionalPrinterColumns"]
)
async def test_a_definition_has_only_so_many_names_versions_and_columns(clock: Clock, what: str) -> None:
    """Each is one more of everything that is served: some ten thousand kept the loop for 5 s and took 1.6 GB."""
    async with serving(clock) as running:
        crd = definition("many", {"type": "object"})
        for count, wanted in ((MOST_OF_A_DEFINITION + 1, 422), (MOST_OF_A_DEFINITION, 201)):
            names, [version] = [f"n{number}" for number in range(count)], crd["spec"]["versions"][:1]
            column = {"name": "a", "type": "string", "jsonPath": ".a"}
            match what.rpartition(".")[2]:
                case "versions":
                    crd["spec"]["versions"] = [version, *({**version, "name": name, "storage": False} for name in names[1:])]
                case "additionalPrinterColumns":
                    version["additionalPrinterColumns"] = [column] * count
                case member:
                    crd["spec"]["names"][member] = names
            code, answer = await call(running, ADMIN, "POST", DEFINITIONS, crd)
            assert code == wanted
            if wanted == 422:
                assert f"{what}: Too many: {count}: must have at most {count - 1} items" in answer["message"]


async def test_the_paths_of_all_columns_of_a_definition_have_only_so_many_characters(clock: Clock) -> None:
    """100 versions with 100 columns each, of 110 characters, kept the loop for 654 ms and took 131 MB."""
    async with serving(clock) as running:
        for more, wanted in ((1, 422), (0, 201)):
            columns = [{"name": "a", "type": "string", "jsonPath": ".".ljust(MAX_LENGTH // 100, "a")}] * 50
            rest = {**columns[0], "jsonPath": ".".ljust(MAX_LENGTH - 100 * (MAX_LENGTH // 100) + more, "a")}
            crd = definition("many", {"type": "object"}, additionalPrinterColumns=columns)
            other = {"name": "v2", "storage": False, "additionalPrinterColumns": [*columns, rest]}
            crd["spec"]["versions"].append({**crd["spec"]["versions"][0], **other})
            code, answer = await call(running, ADMIN, "POST", DEFINITIONS, crd)
            assert code == wanted
            if wanted == 422:
                text = f"spec.versions: Invalid value: the paths of all columns together may have {MAX_LENGTH} characters"
                assert text in answer["message"]


async def test_a_definition_that_was_being_deleted_when_the_server_stopped_goes_after_its_next_start(clock: Clock) -> None:
    log = MemoryLog()
    objects, held = f"/apis/{GROUP}/v1/pools", {"name": "a", "finalizers": ["example.com/held"]}
    path = f"{DEFINITIONS}/pools.{GROUP}"
    async with running_api(log, clock, token_keys()) as running:
        assert (await call(running, ADMIN, "POST", DEFINITIONS, definition("pools", {"type": "object"})))[0] == 201
        assert (await call(running, ADMIN, "POST", objects, resource("pools", "a") | {"metadata": held}))[0] == 201
        assert (await call(running, ADMIN, "DELETE", path))[0] == 200
        await elapse(5)
    async with running_api(log, clock, token_keys()) as running:
        code, found = await call(running, ADMIN, "GET", f"{objects}/a")
        assert (code, "deletionTimestamp" in found["metadata"]) == (200, True)
        found["metadata"]["finalizers"] = []
        assert (await call(running, ADMIN, "PUT", f"{objects}/a", found))[0] == 200
        await elapse(5)
        assert (await call(running, ADMIN, "GET", path))[0] == 404


async def test_a_new_schema_holds_for_what_was_stored_before(clock: Clock) -> None:
    """A real server shows no field that the schema lost. Ours did until the next write, and counted that as a generation."""
    log = MemoryLog()
    async with running_api(log, clock, token_keys()) as running:
        path, one = f"{DEFINITIONS}/pools.{GROUP}", f"/apis/{GROUP}/v1/pools/a"
        schema: dict[str, Any] = {"type": "object", "properties": {"old": {"type": "integer"}}}
        assert (await call(running, ADMIN, "POST", DEFINITIONS, definition("pools", schema)))[0] == 201
        assert (await call(running, ADMIN, "POST", one[:-2], resource("pools", "a", old=1)))[0] == 201
        crd = (await call(running, ADMIN, "GET", path))[1]
        properties = {"new": {"type": "integer", "default": 2}}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = properties
        assert (await call(running, ADMIN, "PUT", path, crd))[0] == 200
        found = (await call(running, ADMIN, "GET", one))[1]
        assert (found.get("old"), found.get("new")) == (None, 2)
        found["metadata"]["labels"] = {"a": "b"}
    async with running_api(log, clock, token_keys()) as running:
        written = (await call(running, ADMIN, "PUT", one, found))[1]
        assert (written.get("old"), written.get("new"), written["metadata"]["generation"]) == (None, 2, 1)


async def test_a_new_schema_holds_for_many_objects_before_anybody_is_answered_about_them(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turns meanwhile: with 4,000 objects they waited for 97 ms."""
    monkeypatch.setattr(store, "RENEWED_AT_ONCE", 2)
    async with serving(clock) as running:
        path, objects, many = f"{DEFINITIONS}/pools.{GROUP}", f"/apis/{GROUP}/v1/pools", 40
        crd = definition("pools", {"type": "object"})
        assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
        for number in range(many):
            assert (await call(running, ADMIN, "POST", objects, resource("pools", f"n{number}")))[0] == 201
        crd = (await call(running, ADMIN, "GET", path))[1]
        properties = {"new": {"type": "integer", "default": 2}}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = properties
        turns = Turns()
        turns.count(monkeypatch, registry, "renew")
        assert (await call(running, ADMIN, "PUT", path, crd))[0] == 200
        assert turns.calls < many / 2
        last, listed = await asyncio.gather(*(call(running, ADMIN, "GET", one) for one in (f"{objects}/n{many - 1}", objects)))
        assert last[1]["new"] == 2
        assert [one.get("new") for one in listed[1]["items"]] == [2] * many
        assert (turns.calls, turns.most) == (many, 2)


async def test_a_definition_that_waits_for_a_name_is_not_served(clock: Clock) -> None:
    async with serving(clock) as running:
        for plural in ("first", "second"):
            crd = definition(plural, {"type": "object"})
            crd["spec"]["names"]["kind"] = "Same"
            assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
        assert (await call(running, ADMIN, "GET", f"/apis/{GROUP}/v1/first"))[0] == 200
        assert (await call(running, ADMIN, "GET", f"/apis/{GROUP}/v1/second"))[0] == 404


async def test_other_definitions_are_not_read_to_know_their_names(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 12 definitions of 1 MB each, one more or one less kept everybody waiting for 310 ms."""
    read: set[str] = set()
    async with serving(clock) as running:
        for plural in ("first", "second"):
            assert (await call(running, ADMIN, "POST", DEFINITIONS, definition(plural, {"type": "object"})))[0] == 201
        document = Record.document

        def noted(record: Record) -> dict[str, Any]:
            read.add(record.key.name)
            return document(record)

        monkeypatch.setattr(Record, "document", noted)
        assert (await call(running, ADMIN, "POST", DEFINITIONS, definition("third", {"type": "object"})))[0] == 201
        assert (await call(running, ADMIN, "DELETE", f"{DEFINITIONS}/third.{GROUP}"))[0] == 200
        await elapse(5)
        assert (await call(running, ADMIN, "GET", f"{DEFINITIONS}/third.{GROUP}"))[0] == 404
    assert read == {f"third.{GROUP}"}


async def test_names_that_are_free_again_are_offered_to_one_definition_at_a_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(clock) as running:
        for plural in ("first", "second", "third", "fourth"):
            crd = definition(plural, {"type": "object"})
            crd["spec"]["names"]["shortNames"] = ["short"]
            assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
        turns = Turns()
        turns.count(monkeypatch, crd_lifecycle, "status_with_names")
        assert (await call(running, ADMIN, "DELETE", f"{DEFINITIONS}/first.{GROUP}"))[0] == 200
        await elapse(5)
        assert (turns.calls, turns.most) == (3, 1)


async def test_a_name_that_is_free_again_goes_to_one_that_waits_for_it(clock: Clock) -> None:
    """Of two both got it."""
    async with serving(clock) as running:
        for plural in ("first", "second", "third"):
            crd = definition(plural, {"type": "object"})
            crd["spec"]["names"]["shortNames"] = ["short"]
            assert (await call(running, ADMIN, "POST", DEFINITIONS, crd))[0] == 201
        assert (await call(running, ADMIN, "DELETE", f"{DEFINITIONS}/first.{GROUP}"))[0] == 200
        await elapse(5)
        found = [(await call(running, ADMIN, "GET", f"{DEFINITIONS}/{one}.{GROUP}"))[1] for one in ("second", "third")]
        assert sorted(states(one)["NamesAccepted"] for one in found) == ["False", "True"]


async def test_a_built_in_kind_keeps_its_place_and_its_objects_whatever_is_installed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal and the rule of what is served both gone: what is stored still belongs to the built-in kind alone."""
    monkeypatch.setattr(Registry, "is_builtin_group", lambda registry, group: False)
    async with serving(clock) as running:
        await let_define(running)
        before = await bindings(running)
        assert (await call(running, AUTHOR, "POST", DEFINITIONS, taking_over()))[0] == 201
        assert await bindings(running) == before
        assert (await call(running, AUTHOR, "GET", "/api/v1/secrets"))[0] == 403
        await call(running, AUTHOR, "DELETE", f"{DEFINITIONS}/clusterrolebindings.{RBAC}")
        await elapse(5)
        assert await bindings(running) == before


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": []}])
async def test_a_definition_whose_status_somebody_clears_is_told_again_and_served(clock: Clock, status: Any) -> None:
    """One PUT of `/status` with conditions that are null stopped the server, which reads them on commit."""
    async with serving(clock) as running:
        path = f"{DEFINITIONS}/pools.{GROUP}"
        await call(running, ADMIN, "POST", DEFINITIONS, definition("pools", {"type": "object"}))
        _, crd = await call(running, ADMIN, "GET", path)
        code, cleared = await call(running, ADMIN, "PUT", f"{path}/status", {**crd, "status": status})
        assert code == 200
        assert {one["type"]: one["status"] for one in cleared["status"]["conditions"]} == {
            "NamesAccepted": "True",
            "Established": "True",
        }
        assert (await call(running, ADMIN, "GET", f"/apis/{GROUP}/v1/pools"))[0] == 200


async def test_a_definition_that_was_stored_without_conditions_is_changed_like_any_other(clock: Clock) -> None:
    """Databases have such definitions from before."""
    async with serving(clock) as running:
        core, kind = running.core, running.core.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert kind is not None
        bare = {**definition("pools", {"type": "object"}), "status": {"conditions": None}}
        await write_own(core, kind, bare).settle()
        code, _ = await call(running, ADMIN, "PUT", f"{DEFINITIONS}/pools.{GROUP}", bare)
        assert code == 200
        assert (await call(running, ADMIN, "GET", f"/apis/{GROUP}/v1/pools"))[0] == 200


async def deleted_with_objects(
    running: RunningApi, monkeypatch: pytest.MonkeyPatch, refusals: dict[str, list[Refusal]]
) -> Callable[[], list[str]]:
    """A definition that goes with its objects, some of which are refused; what is left of them at any time."""
    delete, things, label = gate.delete, f"/apis/{GROUP}/v1/pools", f"pools.{GROUP}"

    def refused(core: Core, write: Write, options: DeleteOptions) -> tuple[Record, Submitted | None, bool]:
        if refusals.get(write.key.name):
            raise refusals[write.key.name].pop()
        return delete(core, write, options)

    assert (await call(running, ADMIN, "POST", DEFINITIONS, definition("pools", {"type": "object"})))[0] == 201
    for name in ("a", "b", "c"):
        assert (await call(running, ADMIN, "POST", things, resource("pools", name)))[0] == 201
    monkeypatch.setattr(gate, "delete", refused)
    assert (await call(running, ADMIN, "DELETE", f"{DEFINITIONS}/{label}"))[0] == 200
    return lambda: [record.key.name for record in running.store.table(label).records()]


async def test_an_object_that_others_keep_changing_while_it_is_deleted_is_no_defect_and_goes_at_the_next_look(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A large one is deleted beside the loop, and what was changed meanwhile is not. It held back all others, in silence."""
    refusals = [too_many_requests("the object changes faster than it is deleted", 1) for _ in range(3)]
    async with serving(clock, ()) as running:
        left = await deleted_with_objects(running, monkeypatch, {"a": refusals})
        await elapse(0.5)
        assert left() == ["a"]
        await elapse(2 * LOOK_AGAIN_S)
        assert (left(), refusals) == (["a"], [])
        assert [one.message for one in caplog.records if "refused" in one.message] == [
            "an object of a deleted definition is refused to be deleted, trying again"
        ]
        assert not running.core.background.down()
        await elapse(LOOK_AGAIN_S)
        assert (await call(running, ADMIN, "GET", f"{DEFINITIONS}/pools.{GROUP}"))[0] == 404


async def test_an_object_that_is_refused_for_another_reason_holds_back_no_other_and_is_told(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(clock, ()) as running:
        refusal = Refusal(413, "RequestEntityTooLarge", "it takes too long")
        left = await deleted_with_objects(running, monkeypatch, {"a": [refusal]})
        await elapse(0.5)
        assert left() == ["a"]
        assert "takes too long" in str(running.core.background.down())
        await elapse(5)
        assert (await call(running, ADMIN, "GET", f"{DEFINITIONS}/pools.{GROUP}"))[0] == 404
