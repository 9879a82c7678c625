"""The texts of refusals, as a real server gave them once.

`refusals.json` holds them by table and case; a case without a text is accepted. The suite against a real server proves that
the texts are right, this one that they stay.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.kinds import kind_cases, pod_cases
from tests.embedded.kinds.comparison import outcome_of_create, outcome_of_update
from tests.embedded.kinds.documents import pod

NAMESPACE = "somewhere"
RECORDED: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "refusals.json").read_text())


def outcomes() -> dict[str, dict[str, dict[str, Any]]]:
    reports = {label: (pod(), new) for label, new in pod_cases.REPORTED.items()}
    creates = {"pods created": pod_cases.CREATED, "kinds created": kind_cases.CREATED}
    updates = {"pods updated": pod_cases.UPDATED, "kinds updated": kind_cases.UPDATED}
    statuses = {"pods reported": reports, "kinds reported": kind_cases.REPORTED}
    return {
        **{table: _created(cases) for table, cases in creates.items()},
        **{table: _updated(cases, "") for table, cases in updates.items()},
        **{table: _updated(cases, "status") for table, cases in statuses.items()},
    }


def _created(cases: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {label: outcome_of_create(document, NAMESPACE) for label, document in cases.items()}


def _updated(cases: dict[str, tuple[dict[str, Any], dict[str, Any]]], subresource: str) -> dict[str, dict[str, Any]]:
    return {label: outcome_of_update(new, old, NAMESPACE, subresource) for label, (old, new) in cases.items()}


OUTCOMES = outcomes()


@pytest.mark.parametrize("table", OUTCOMES)
def test_documents_are_refused_in_the_words_of_a_real_server(table: str) -> None:
    said = {label: outcome["message"] for label, outcome in OUTCOMES[table].items() if "message" in outcome}
    assert said == RECORDED[table]


def test_the_tables_hold_enough_of_both() -> None:
    cases = [outcome for table in OUTCOMES.values() for outcome in table.values()]
    refused = sum("message" in outcome for outcome in cases)
    assert refused > 120
    assert len(cases) - refused > 80
