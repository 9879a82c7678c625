"""An eviction is a deletion of the Pod it names."""

from datetime import UTC, datetime
from typing import Any

import pytest

from applecart.embedded.kinds.disruption import check_preconditions, delete_options, mark_evicted
from applecart.embedded.refusals import Refusal
from tests.embedded.kinds.documents import pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def eviction(**members: Any) -> dict[str, Any]:
    return {"metadata": {"name": "runner"}, **members}


def test_an_eviction_without_options_deletes_as_usual() -> None:
    assert delete_options("runner", eviction(), []) == {}


def test_options_are_those_of_the_deletion() -> None:
    asked = {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}}
    assert delete_options("runner", eviction(deleteOptions=asked), []) == asked


@pytest.mark.parametrize(("inside", "outside"), [([], ["All"]), (["All"], []), (["All"], ["All"])])
def test_a_dry_run_may_be_asked_for_on_either_side(inside: list[str], outside: list[str]) -> None:
    assert delete_options("runner", eviction(deleteOptions={"dryRun": inside}), outside) == {"dryRun": ["All"]}


def test_two_different_dry_runs_are_refused() -> None:
    with pytest.raises(Refusal, match=r"Non-matching dry-run options in request and content: \[All\] and \[Some\]"):
        delete_options("runner", eviction(deleteOptions={"dryRun": ["Some"]}), ["All"])


def test_an_eviction_of_another_pod_is_refused() -> None:
    with pytest.raises(Refusal, match="name in URL does not match name in Eviction object"):
        delete_options("other", eviction(), [])


def test_an_evicted_pod_says_why_it_goes() -> None:
    before = pod()
    (condition,) = mark_evicted(before, NOW)["status"]["conditions"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    assert "status" not in before


def test_an_eviction_of_an_earlier_pod_is_a_conflict() -> None:
    obj = pod(meta={"uid": "u2", "resourceVersion": "7"})
    check_preconditions(obj, {"preconditions": {"uid": "u2", "resourceVersion": "7"}})
    with pytest.raises(Refusal) as caught:
        check_preconditions(obj, {"preconditions": {"uid": "u1"}})
    assert caught.value.message == (
        'Operation cannot be fulfilled on Pod "runner": the UID in the precondition (u1) does not match the UID in record '
        "(u2). The object might have been deleted and then recreated"
    )
