"""How the embedded server answers a case, in the form in which a real server's answers were recorded."""

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from applecart.embedded.field_errors import FieldError
from applecart.embedded.refusals import Refusal
from applecart.embedded.schema.compiled import CompiledSchema
from applecart.embedded.schema.crd_strategy import (
    CrdStrategy,
    TakenNames,
    default_definition,
    definition_errors,
    stored_versions,
)
from applecart.embedded.schema.custom_kind import CustomStrategy, custom_kinds
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.types import type_of
from tests.embedded.schema.definition_documents import resource
from tests.embedded.schema.schema_cases import ABSENT, Case

RECORDED = Path(__file__).parent / "recorded_answers.json"  # of the default minor; the contract tests compare it again
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
Answer = dict[str, Any]


def recorded() -> dict[str, dict[str, Answer]]:
    answers: dict[str, dict[str, Answer]] = json.loads(RECORDED.read_text())
    return answers


def schema_of(cases: tuple[Case, ...]) -> dict[str, Any]:
    """One schema for many cases: each is a property of the spec."""
    spec = {"type": "object", "properties": {case.name: case.schema for case in cases}}
    return {"type": "object", "properties": {"spec": spec}}


def answer_to(schema: CompiledSchema, plural: str, case: Case) -> Answer:
    """What is stored, or what is wrong."""
    document = resource(plural, case.name, spec={case.name: deepcopy(case.value)})
    schema.prune(document)
    schema.default(document)
    old = None
    if case.old is not ABSENT:
        old = resource(plural, case.name, spec={case.name: deepcopy(case.old)})
        schema.default(old)
    errors = [error for error in schema.validate(document, old) if not error.is_forgiven]
    return {"causes": causes_as_sent(errors)} if errors else {"spec": document["spec"]}


def answer_to_definition(crd: dict[str, Any]) -> Answer:
    crd = as_received(crd)
    default_definition(crd)
    crd["status"] = {"storedVersions": stored_versions(crd)}
    errors = definition_errors(crd)
    return {"causes": causes_as_sent(errors)} if errors else {"spec": crd["spec"]}


def as_received(crd: dict[str, Any]) -> dict[str, Any]:
    """A definition as the server hands it on: decoded by its type."""
    type = type_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert type is not None
    return conform(crd, type).document


def causes_as_sent(errors: list[FieldError]) -> list[list[str]]:
    """Errors as causes, sorted: a real server's order is not fixed."""
    return sorted([error.reason, error.body, error.field] for error in errors)


def rules_of(crd: dict[str, Any]) -> CustomStrategy:
    """The rules of a definition's first version."""
    rules = custom_kinds(crd)[0].strategy
    assert isinstance(rules, CustomStrategy)
    return rules


def crd_strategy() -> CrdStrategy:
    return CrdStrategy(lambda crd: TakenNames(), lambda: NOW)


def established(crd: dict[str, Any]) -> dict[str, Any]:
    """A definition as it is stored when it is created."""
    crd, rules = as_received(crd), crd_strategy()
    rules.default(crd)
    rules.prepare_create(crd)
    assert rules.validate(crd) == []
    return crd


def refusal_of(call: Callable[[], Any]) -> int:
    """The code with which a call was refused; 0 when it was not. Any other exception is a defect."""
    try:
        call()
    except Refusal as refusal:
        return refusal.code
    return 0
