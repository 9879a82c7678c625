"""Which Events and Leases may go."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.coordination import Lease
from applecart.api.events import Event, EventSeries
from applecart.api.meta import Key, ObjectMeta, OwnerReference, micro_time
from applecart.api.pods import ObjectReference
from applecart.clock import EPOCH
from applecart.embedded.controllers.expiry import plan
from applecart.embedded.controllers.expiry.plan import Dated, LeaseWatch, dated, plan_events

HOUR = timedelta(hours=1)
OWNER = OwnerReference(api_version="v1", kind="Node", name="mac-1", uid="uid-mac-1")


def event(*, created: datetime | None = None, **times: object) -> Event:
    metadata = ObjectMeta(name="e", namespace="default", uid="u", resource_version="7", creation_timestamp=created)
    return Event(metadata=metadata, involved_object=ObjectReference(), **times)  # type: ignore[arg-type]


def aged(age: timedelta, name: str = "e", namespace: str = "default") -> Dated:
    return Dated(EPOCH - age, Key(namespace, name), f"uid-{name}", "1")


def lease(name: str = "mac-1", revision: str = "1", *, is_owned: bool = False, deleted_at: datetime | None = None) -> Lease:
    metadata = ObjectMeta(
        name=name,
        namespace="kube-node-lease",
        uid=f"uid-{name}",
        resource_version=revision,
        owner_references=(OWNER,) if is_owned else (),
        deletion_timestamp=deleted_at,
    )
    return Lease(metadata=metadata)


@pytest.mark.parametrize(
    "told",
    [
        event(created=EPOCH),
        event(created=EPOCH - HOUR, last_timestamp=EPOCH),
        event(created=EPOCH - HOUR, first_timestamp=EPOCH - HOUR, last_timestamp=EPOCH),
        event(created=EPOCH - HOUR, event_time=micro_time(EPOCH)),
        event(created=EPOCH - HOUR, series=EventSeries(count=2, last_observed_time=micro_time(EPOCH))),
        event(created=EPOCH, event_time="yesterday", series=EventSeries(last_observed_time="")),
        event(created=EPOCH, last_timestamp=(EPOCH - HOUR).replace(tzinfo=None)),
    ],
)
def test_an_event_is_as_old_as_its_newest_date(told: Event) -> None:
    assert dated(told) == Dated(EPOCH, Key("default", "e"), "u", "7")


def test_an_event_without_any_date_is_as_old_as_can_be() -> None:
    assert [step.key.name for step in plan_events([dated(event())], EPOCH)] == ["e"]


@pytest.mark.parametrize(
    ("age", "goes"),
    [(timedelta(), False), (HOUR, False), (HOUR + timedelta(seconds=1), True), (-timedelta(days=1), False)],
)
def test_an_event_lives_for_an_hour(age: timedelta, goes: bool) -> None:
    assert bool(plan_events([aged(age)], EPOCH)) is goes


def test_a_namespace_keeps_only_its_newest_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "EVENTS_PER_NAMESPACE", 2)
    events = [aged(timedelta(minutes=age), f"e{age}") for age in (1, 4, 2, 3)]
    quiet = [aged(timedelta(minutes=9), "other", "quiet")]
    assert [step.key.name for step in plan_events([*events, *quiet], EPOCH)] == ["e4", "e3"]


@given(st.lists(st.integers(-7200, 7200), max_size=40, unique=True), st.integers(0, 7200))
def test_a_later_look_never_spares_what_an_earlier_one_expired(ages: list[int], later_s: int) -> None:
    events = [aged(timedelta(seconds=age), f"e{number}") for number, age in enumerate(ages)]
    now = {step.key for step in plan_events(events, EPOCH)}
    later = {step.key for step in plan_events(events, EPOCH + timedelta(seconds=later_s))}
    assert now <= later


def test_a_lease_of_a_lost_host_goes_when_nobody_renewed_it_for_an_hour() -> None:
    watch = LeaseWatch()
    assert watch.plan([lease()], set(), 0) == []
    assert watch.plan([lease()], set(), 3600) == []
    (step,) = watch.plan([lease()], set(), 3601)
    assert (step.key, step.revision) == (Key("kube-node-lease", "mac-1"), "1")
    assert step.because == "Node mac-1 is gone and nobody renewed its Lease for 3601 s"


@pytest.mark.parametrize(
    ("stored", "nodes"),
    [(lease(), {"mac-1"}), (lease(is_owned=True), set()), (lease(deleted_at=EPOCH), set())],
    ids=["its node exists", "it has an owner", "it is going"],
)
def test_a_lease_stays(stored: Lease, nodes: set[str]) -> None:
    watch = LeaseWatch()
    watch.plan([stored], nodes, 0)
    assert watch.plan([stored], nodes, 100_000) == []


def test_a_renewal_begins_the_hour_anew() -> None:
    watch = LeaseWatch()
    watch.plan([lease()], set(), 0)
    watch.plan([lease(revision="2")], set(), 3000)
    assert watch.plan([lease(revision="2")], set(), 6600) == []
    assert len(watch.plan([lease(revision="2")], set(), 6601)) == 1


def test_a_lease_that_went_and_came_back_is_a_new_one() -> None:
    watch = LeaseWatch()
    watch.plan([lease()], set(), 0)
    watch.plan([], set(), 1800)
    assert watch.plan([lease()], set(), 3601) == []


@given(st.lists(st.tuples(st.floats(0, 2000), st.booleans()), max_size=20))
def test_a_lease_renewed_within_the_hour_never_goes(steps: list[tuple[float, bool]]) -> None:
    watch, now_s, revision, since_s = LeaseWatch(), 0.0, 1, 0.0
    watch.plan([lease(revision="1")], set(), now_s)
    for step_s, is_renewed in steps:
        now_s += step_s
        if is_renewed:
            revision, since_s = revision + 1, now_s
        assert bool(watch.plan([lease(revision=str(revision))], set(), now_s)) == (now_s - since_s > 3600)
