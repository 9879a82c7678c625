"""What a Pod's row says."""

from datetime import UTC, datetime
from typing import Any

import pytest

from applecart.embedded.tables.pods import PODS
from tests.embedded.tables.pod_states import DELETED, EARLIER, LATER, RUNNING, STATES, container, ended, spec, status

NOW = datetime(2026, 1, 2, 3, 10, 5, tzinfo=UTC)  # five minutes after LATER, six after EARLIER
CREATED = "2026-01-02T03:00:05Z"


def row(wanted: dict[str, Any], found: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    obj = {"metadata": {"name": "p", "creationTimestamp": CREATED, **metadata}, "spec": wanted, "status": found}
    return dict(zip([column.name for column in PODS.columns], PODS.cells(obj, NOW), strict=True))


@pytest.mark.parametrize("name", STATES)
def test_a_state_has_its_word_its_readiness_and_its_restarts(name: str) -> None:
    wanted, found, word, ready, restarts = STATES[name]
    cells = row(wanted, found)
    assert (cells["Status"], cells["Ready"], cells["Restarts"].split(" ")[0]) == (word, ready, restarts)
    assert cells["Age"] == "10m"


@pytest.mark.parametrize("name", DELETED)
def test_a_deletion_hides_everything_but_an_end(name: str) -> None:
    found, word = DELETED[name]
    assert row(spec(), found, deletionTimestamp=CREATED)["Status"] == word


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (ended(1, finished_at=LATER), ended(1, finished_at=EARLIER), "2 (5m ago)"),
        (ended(1, finished_at=EARLIER), {}, "2 (6m ago)"),
        ({}, {}, "2"),
    ],
)
def test_restarts_say_how_long_ago_the_last_one_was(first: Any, second: Any, text: str) -> None:
    containers = (container(f"c{n}", RUNNING, restarts=1, lastState=last) for n, last in enumerate((first, second)))
    assert row(spec(2), status("Running", *containers))["Restarts"] == text


def test_wide_columns_say_none_where_there_is_nothing() -> None:
    cells = row(spec(), status("Pending"))
    assert [cells[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == ["<none>"] * 4


def test_wide_columns_show_the_first_address_the_node_and_the_gates_that_hold() -> None:
    wanted, found, *_ = STATES["with-addresses"]
    assert (row(wanted, found)["IP"], row(wanted, found)["Node"]) == ("10.0.0.1", "mac-1")
    assert row(*STATES["nominated"][:2])["Nominated Node"] == "mac-2"
    assert row(*STATES["with-readiness-gates"][:2])["Readiness Gates"] == "1/2"


@pytest.mark.parametrize(
    ("phase", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed"), ("Running", None), (None, None), (5, None)]
)
def test_the_row_of_a_pod_that_ended_says_so(phase: Any, reason: str | None) -> None:
    found = PODS.conditions({"metadata": {"name": "p"}, "status": {"phase": phase}})
    assert [one["reason"] for one in found or []] == ([reason] if reason else [])


def test_a_pod_of_nothing_but_a_name_has_a_row() -> None:
    assert PODS.cells({"metadata": {"name": "p"}}, NOW)[:5] == ["p", "0/0", "", "0", "<unknown>"]
