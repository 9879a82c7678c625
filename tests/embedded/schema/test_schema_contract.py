"""Schemas and definitions on a real server: its answers are the recorded ones, and ours are the same."""

import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from applecart.embedded.schema.compiled import CompiledSchema
from applecart.embedded.schema.scale import read_scale, write_scale
from tests.embedded.schema.definition_cases import BAD_DEFINITIONS, UNCOMPILABLE
from tests.embedded.schema.definition_documents import SCALED, definition, resource
from tests.embedded.schema.judged import (
    Answer,
    answer_to,
    answer_to_definition,
    causes_as_sent,
    established,
    recorded,
    rules_of,
    schema_of,
)
from tests.embedded.schema.older_minor import agree, known_cases
from tests.embedded.schema.real_definitions import DEFINITIONS, LOOK_EVERY_S, TIMEOUT_S, RealDefinitions, answer_of
from tests.embedded.schema.schema_cases import ANY, CREATED, Case
from tests.embedded.schema.update_cases import RATCHETED, UPDATED
from tests.kubernetes.cluster import FullCluster

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]


@pytest.fixture
def real(real_cluster: FullCluster) -> RealDefinitions:
    return RealDefinitions(real_cluster.url, real_cluster.admin.certificate, real_cluster.admin.key)


def differences(
    cases: tuple[Case, ...], plural: str, send: Callable[[dict[str, Any], Case], Answer], kube: str
) -> dict[str, tuple[Answer, Answer]]:
    """Cases on which the real server, our answer and the record are not one; empty is what we want."""
    schema = CompiledSchema(schema_of(cases))
    answers = recorded()[plural]
    found = {}
    for case in cases:
        theirs = send(resource(plural, case.name, spec={case.name: case.value}), case)
        ours = answer_to(schema, plural, case)
        if not agree(kube, case.name, ours, theirs) or ours != answers[case.name]:
            found[case.name] = (ours, theirs)
    return found


def test_new_objects_are_stored_or_refused_as_on_a_real_server(real: RealDefinitions, kube: str) -> None:
    cases = known_cases(kube, CREATED)
    real.install(definition("creations", schema_of(cases)))
    found = differences(cases, "creations", lambda obj, _: answer_of(*real.create("creations", obj)), kube)
    assert not found, ", ".join(sorted(found))


def test_unknown_fields_are_named_as_on_a_real_server(real: RealDefinitions, kube: str) -> None:
    cases = known_cases(kube, CREATED)
    real.install(definition("creations", schema_of(cases)))
    schema = CompiledSchema(schema_of(cases))
    for case in cases:
        obj = resource("creations", case.name, spec={case.name: case.value}, extra={"x": 1})
        _, answer = real.create("creations", obj, "&fieldValidation=Strict")
        paths = ", ".join(f'unknown field "{path}"' for path in schema.prune(deepcopy(obj)))
        assert answer["message"].endswith(f"strict decoding error: {paths}"), case.name


def test_changed_objects_are_held_against_what_they_were(real: RealDefinitions, kube: str) -> None:
    real.install(definition("updates", schema_of(UPDATED)))
    for case in UPDATED:
        code, answer = real.create("updates", resource("updates", case.name, spec={case.name: case.old}), is_dry=False)
        assert code == 201, answer
    found = differences(UPDATED, "updates", lambda obj, _: answer_of(*real.replace("updates", obj)), kube)
    assert not found, ", ".join(sorted(found))


def test_what_a_stricter_schema_finds_unchanged_is_tolerated(real: RealDefinitions, kube: str) -> None:
    loose = {"type": "object", "properties": {"spec": {"type": "object", **ANY}}}
    real.install(definition("ratchets", loose))
    for case in RATCHETED:
        code, answer = real.create("ratchets", resource("ratchets", case.name, spec={case.name: case.old}), is_dry=False)
        assert code == 201, answer
    real.install(definition("ratchets", schema_of(RATCHETED)))
    deadline = time.monotonic() + TIMEOUT_S
    probe = resource("ratchets", "probe", spec={"same-text": "A1"})
    while real.create("ratchets", probe)[0] != 422:  # the new schema is served a moment after it is stored
        assert time.monotonic() < deadline, "the stricter schema never came into force"
        time.sleep(LOOK_EVERY_S)
    found = differences(RATCHETED, "ratchets", lambda obj, _: answer_of(*real.replace("ratchets", obj)), kube)
    assert not found, ", ".join(sorted(found))


def test_bad_definitions_are_refused_for_the_same_reasons(real: RealDefinitions, kube: str) -> None:
    found = {}
    for name, crd in BAD_DEFINITIONS.items():
        theirs = answer_of(*real.send("POST", f"{DEFINITIONS}?dryRun=All", crd))
        ours = answer_to_definition(crd)
        if not agree(kube, name, ours, theirs) or ours != recorded()["definitions"][name]:
            found[name] = (ours, theirs)
    assert not found


def test_rules_that_do_not_compile_are_refused_at_the_same_place(real: RealDefinitions) -> None:
    for crd in UNCOMPILABLE.values():
        theirs = answer_of(*real.send("POST", f"{DEFINITIONS}?dryRun=All", crd))["causes"]
        ours = answer_to_definition(crd)["causes"]
        assert [(reason, field) for reason, _, field in ours] == [(reason, field) for reason, _, field in theirs]
        assert all("ompilation failed: ERROR: <input>:1:" in text for _, text, _ in [*ours, *theirs])


def test_an_established_definition_says_the_same_about_itself(real: RealDefinitions) -> None:
    crd = definition("selfies", {"type": "object"})
    crd["spec"]["names"] |= {"shortNames": ["sf"], "categories": ["all"]}
    theirs, ours = real.install(crd), established(crd)
    for condition in (*theirs["status"]["conditions"], *ours["status"]["conditions"]):
        condition.pop("lastTransitionTime")
        condition.pop("observedGeneration", None)
    theirs["status"].pop("observedGeneration", None)
    assert ours["status"] == theirs["status"]
    assert ours["spec"] == theirs["spec"]


def test_scale_reads_and_writes_as_on_a_real_server(real: RealDefinitions) -> None:
    real.install(SCALED)
    rules = rules_of(SCALED)
    assert rules.scale is not None
    _, stored = real.create("scales", resource("scales", "one", spec={"replicas": 2}), is_dry=False)
    path = stored["apiVersion"]
    _, scale = real.send("GET", f"/apis/{path}/scales/one/scale")
    assert read_scale(stored, rules.scale) == scale
    for replicas in (-1, 0, 7, 99):
        scale["spec"] = {"replicas": replicas}
        theirs = answer_of(*real.send("PUT", f"/apis/{path}/scales/one/scale?dryRun=All", scale))
        changed = resource("scales", "one", spec={"replicas": 2})
        write_scale(changed, scale, rules.scale)
        errors = [error for error in rules.validate_with([], changed, stored) if not error.is_forgiven]
        if errors:
            assert [[one.reason, one.body, one.field] for one in errors] == theirs["causes"][::-1]
        else:
            assert theirs == {"spec": read_scale(changed, rules.scale)["spec"]}


@pytest.mark.parametrize(
    "status", [{"phase": "abcd"}, {"phase": "no"}, {"replicas": -1}, {"replicas": "x"}, {"selector": 5}, [1], "x"]
)
def test_a_bad_status_is_refused_for_the_same_reasons(real: RealDefinitions, kube: str, status: Any) -> None:
    real.install(SCALED)
    real.create("scales", resource("scales", "two", spec={"replicas": 2}), is_dry=False)
    changed = resource("scales", "two", spec={"replicas": 2}, status=status)
    theirs = answer_of(*real.replace("scales", changed, "/status"))
    old = resource("scales", "two", spec={"replicas": 2})
    ours = {"causes": causes_as_sent(rules_of(SCALED).validate_status(changed, old))}
    assert agree(kube, "status", ours, theirs), (ours, theirs)
