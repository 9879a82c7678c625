"""Two views of one event: nothing is lost between them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.kinds.event import EventStrategy, NewEventStrategy, as_core_event, as_events_event
from tests.embedded.kinds.documents import created, decoded
from tests.embedded.kinds.kind_cases import event, new_event, old_event

REFERENCE = st.fixed_dictionaries({}, optional={"kind": st.text(), "name": st.text(), "uid": st.text()})
STAMPS = st.sampled_from([None, "2026-01-01T00:00:00Z"])
CORE_EVENTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Event"),
        "metadata": st.just({"name": "a"}),
        "involvedObject": REFERENCE,
        "source": st.fixed_dictionaries({}, optional={"component": st.text(min_size=1), "host": st.text(min_size=1)}),
        "firstTimestamp": STAMPS,
        "lastTimestamp": STAMPS,
        "eventTime": STAMPS,
        "reportingComponent": st.text(),
        "reportingInstance": st.text(),
    },
    optional={
        "message": st.text(min_size=1),
        "count": st.integers(1),
        "reason": st.text(min_size=1),
        "related": REFERENCE,
        "series": st.just({"count": 2}),
    },
)


@given(CORE_EVENTS)
def test_there_and_back_again_is_the_same_event(core: dict[str, Any]) -> None:
    assert as_core_event(as_events_event(core)) == core


def test_the_newer_view_has_its_own_names() -> None:
    core = created(event(reason="R", message="m", count=3, source={"component": "c"}), "default")
    newer = as_events_event(core)
    assert (newer["regarding"], newer["note"], newer["deprecatedCount"]) == ({"kind": "Node", "name": "n"}, "m", 3)
    assert newer["apiVersion"] == "events.k8s.io/v1"
    assert "reportingController" not in newer


def test_the_stored_event_shows_what_older_readers_expect() -> None:
    core = as_core_event(created(new_event(), "ns"))
    assert (core["apiVersion"], core["message"], core["reportingComponent"]) == ("v1", "it runs", "applecart.dev/kubelet")
    assert (core["source"], core["firstTimestamp"]) == ({}, None)


def test_both_views_answer_selectors_about_the_same_object() -> None:
    core = decoded(old_event())
    old, new = EventStrategy().fields(core), NewEventStrategy().fields(as_events_event(core))
    assert old.keys() == EventStrategy().field_names
    assert new.keys() == NewEventStrategy().field_names
    assert old["involvedObject.name"] == new["regarding.name"] == "p"
    assert old["source"] == old["reportingComponent"] == new["reportingController"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}, []),
        ({"series": {"count": 1}}, ["series.count", "series.lastObservedTime"]),
        ({"note": "other"}, ["message"]),
        ({"regarding": {}}, ["involvedObject.namespace", "involvedObject"]),
        ({"reportingController": "other"}, ["reportingController"]),
        ({"eventTime": "2027-01-01T00:00:00.000000Z"}, ["eventTime"]),
    ],
)
def test_an_event_of_the_newer_view_may_only_grow_a_series(changes: dict[str, Any], said: list[str]) -> None:
    old = created(new_event(), "ns")
    errors = NewEventStrategy().validate_update({**old, **changes}, old)
    assert [error.field for error in errors] == said
