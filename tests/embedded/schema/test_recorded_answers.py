"""Every answer that was recorded on a real server is ours too."""

import json
from typing import Any

import pytest

from applecart.embedded.schema.compiled import CompiledSchema
from tests.embedded.schema.definition_cases import BAD_DEFINITIONS, UNCOMPILABLE
from tests.embedded.schema.judged import answer_to, answer_to_definition, recorded, schema_of
from tests.embedded.schema.schema_cases import CREATED, Case
from tests.embedded.schema.update_cases import RATCHETED, UPDATED

RECORDED = recorded()
TABLES = {"creations": CREATED, "updates": UPDATED, "ratchets": RATCHETED}
SCHEMAS = {plural: CompiledSchema(schema_of(cases)) for plural, cases in TABLES.items()}


@pytest.mark.parametrize(
    ("plural", "case"),
    [pytest.param(plural, case, id=f"{plural}-{case.name}") for plural, cases in TABLES.items() for case in cases],
)
def test_an_object_is_stored_or_refused_as_recorded(plural: str, case: Case) -> None:
    assert answer_to(SCHEMAS[plural], plural, case) == RECORDED[plural][case.name]


@pytest.mark.parametrize("name", BAD_DEFINITIONS)
def test_a_bad_definition_is_refused_as_recorded(name: str) -> None:
    assert answer_to_definition(BAD_DEFINITIONS[name]) == RECORDED["definitions"][name]


@pytest.mark.parametrize("name", UNCOMPILABLE)
def test_a_rule_that_does_not_compile_is_refused_with_the_place_in_its_text(name: str) -> None:
    ((reason, text, field),) = answer_to_definition(UNCOMPILABLE[name])["causes"]
    assert reason == "FieldValueInvalid"
    assert "ompilation failed: ERROR: <input>:1:" in text
    assert ".x-kubernetes-validations[0]." in field


def test_every_recorded_answer_belongs_to_a_case() -> None:
    names: dict[str, Any] = {plural: {case.name for case in cases} for plural, cases in TABLES.items()}
    names["definitions"] = set(BAD_DEFINITIONS)
    assert {plural: set(answers) for plural, answers in RECORDED.items()} == names
    assert "applecart.dev" in json.dumps(RECORDED)
