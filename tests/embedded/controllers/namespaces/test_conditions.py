"""What a namespace says while it goes, word by word."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.controllers.namespaces.conditions import WELL, Document, Survey, conditions_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def said(survey: Survey, type: str) -> tuple[str, str, str]:
    found = next(one for one in conditions_after(survey, (), NOW) if one["type"] == type)
    return found["status"], found["reason"], found["message"]


def test_an_empty_namespace_says_that_all_is_well() -> None:
    conditions = conditions_after(Survey(), (), NOW)
    assert [one["type"] for one in conditions] == list(WELL)
    assert {one["status"] for one in conditions} == {"False"}
    assert {one["lastTransitionTime"] for one in conditions} == {"2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("survey", "type", "expected"),
    [
        (
            Survey(remaining={("pods", ""): 2, ("leases", "coordination.k8s.io"): 1}),
            "NamespaceContentRemaining",
            (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: leases.coordination.k8s.io has 1 resource instances, "
                "pods. has 2 resource instances",
            ),
        ),
        (
            Survey(remaining={("pods", ""): 2}, finalizers={"b/c": 1, "a/b": 2}),
            "NamespaceFinalizersRemaining",
            (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: a/b in 2 resource instances, "
                "b/c in 1 resource instances",
            ),
        ),
        (
            Survey(failures=("z is wrong", "a is wrong")),
            "NamespaceDeletionContentFailure",
            ("True", "ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: a is wrong, z is wrong"),
        ),
        (
            Survey(unknown=("metrics.k8s.io/v1beta1",)),
            "NamespaceDeletionDiscoveryFailure",
            (
                "True",
                "DiscoveryFailed",
                "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
                "metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1",
            ),
        ),
    ],
    ids=["content", "finalizers", "failures", "discovery"],
)
def test_trouble_is_told(survey: Survey, type: str, expected: tuple[str, str, str]) -> None:
    assert said(survey, type) == expected
    assert not survey.is_clear


def test_a_time_moves_only_with_the_status() -> None:
    first = conditions_after(Survey(remaining={("pods", ""): 2}), (), NOW)
    second = conditions_after(Survey(remaining={("pods", ""): 1}), first, LATER)
    assert {one["lastTransitionTime"] for one in second} == {"2026-01-01T00:00:00Z"}
    third = conditions_after(Survey(), second, LATER)
    moved = [one["type"] for one in third if one["lastTransitionTime"] == "2026-01-02T00:00:00Z"]
    assert moved == ["NamespaceContentRemaining"]


def test_conditions_of_others_stay_as_and_where_they_are() -> None:
    other: Document = {"type": "Mine", "status": "Unknown", "more": 1}
    assert conditions_after(Survey(), [other], NOW)[0] == other


surveys = st.builds(
    Survey,
    unknown=st.lists(st.text(), max_size=2).map(tuple),
    failures=st.lists(st.text(), max_size=2).map(tuple),
    remaining=st.dictionaries(st.tuples(st.text(), st.text()), st.integers(1, 9), max_size=2),
    finalizers=st.dictionaries(st.text(), st.integers(1, 9), max_size=2),
)


@given(surveys)
def test_saying_the_same_again_changes_nothing(survey: Survey) -> None:
    once = conditions_after(survey, (), NOW)
    assert conditions_after(survey, once, LATER) == once


@given(surveys)
def test_only_a_namespace_about_which_all_is_well_is_clear(survey: Survey) -> None:
    troubled = {one["type"] for one in conditions_after(survey, (), NOW) if one["status"] == "True"}
    assert survey.is_clear == (not troubled - {"NamespaceFinalizersRemaining"})
