"""Events reach the API folded, limited and free of secrets, and never disturb whoever records them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart import observe
from applecart.api.core import ConfigMap
from applecart.api.events import NORMAL, WARNING, Event
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.api.nodes import Node
from applecart.clock import EPOCH, Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Unreachable
from applecart.kube.client import Client
from applecart.kube.events import (
    COMBINED,
    GLOBAL_BURST,
    GLOBAL_REFILL_S,
    LONGEST_MESSAGE_CHARS,
    OBJECT_BURST,
    OBJECT_REFILL_S,
    QUEUE_LENGTH,
    REMEMBERED,
    SIMILAR_ALLOWED,
    SIMILAR_WITHIN_S,
    Folding,
    Recorder,
    Series,
    Subject,
    event_name,
)
from applecart.kube.transport import Request
from applecart.secrets import Secret
from tests.kube.backends import Backend
from tests.kube.faults import FaultyTransport, Hung, Late, Lost, Refused, Says, always, in_turn
from tests.kube.stuck import Between
from tests.virtual_time import elapse

POD = ConfigMap(metadata=ObjectMeta(name="runner-1", namespace="ci", uid="uid-1", resource_version="12"))
NODE = Node(metadata=ObjectMeta(name="mac-7", uid="uid-7"))


def about(name: str = "mac-7", reason: str = "BootstrapFailed") -> Subject:
    return Subject(f"uid-{name}", "Node", "", name, "Warning", reason)


def test_the_same_sentence_raises_the_count_of_one_series() -> None:
    folding = Folding()
    first = folding.fold(about(), "no route", 0)
    again = folding.fold(about(), "no route", 10)
    assert first is again
    assert first is not None
    assert (first.count, first.message) == (2, "no route")


def test_another_object_reason_or_sentence_is_another_series() -> None:
    folding = Folding()
    written = [
        folding.fold(about(), "no route", 0),
        folding.fold(about("mac-8"), "no route", 0),
        folding.fold(about(reason="Released"), "no route", 0),
        folding.fold(about(), "refused", 0),
    ]
    assert len({id(series) for series in written}) == 4


def test_beyond_ten_similar_sentences_in_ten_minutes_the_rest_is_one_series() -> None:
    folding = Folding()
    written = [folding.fold(about(), f"attempt {number} failed", number) for number in range(15)]
    single, combined = written[:SIMILAR_ALLOWED], written[SIMILAR_ALLOWED:]
    assert len({id(series) for series in single}) == SIMILAR_ALLOWED
    assert len({id(series) for series in combined}) == 1
    assert combined[0] is not None
    assert (combined[0].count, combined[0].message) == (5, f"{COMBINED}attempt 14 failed")


def test_a_known_sentence_stays_its_own_series_when_others_are_combined() -> None:
    folding = Folding()
    first = folding.fold(about(), "attempt 0 failed", 0)
    for number in range(1, 15):
        folding.fold(about(), f"attempt {number} failed", number)
    assert folding.fold(about(), "attempt 0 failed", 20) is first


def test_after_ten_quiet_minutes_sentences_stand_alone_again() -> None:
    folding = Folding()
    for number in range(15):
        folding.fold(about(), f"attempt {number} failed", number)
    later = folding.fold(about(), "attempt 15 failed", 15 + SIMILAR_WITHIN_S)
    assert later is not None
    assert later.message == "attempt 15 failed"


def test_an_object_that_is_never_quiet_for_ten_minutes_stays_combined() -> None:
    folding = Folding()
    for number in range(SIMILAR_ALLOWED):
        folding.fold(about(), f"sentence {number}", 0.0)
    for number, at_s in enumerate((400.0, 800.0, 1200.0)):
        series = folding.fold(about(), f"later {number}", at_s)
        assert series is not None
        assert series.message == f"{COMBINED}later {number}"


def test_an_object_that_keeps_talking_is_heard_once_in_five_minutes() -> None:
    folding = Folding()
    heard = [folding.fold(about(), "again", number) is not None for number in range(100)]
    assert heard == [True] * OBJECT_BURST + [False] * (100 - OBJECT_BURST)
    series = folding.fold(about(), "again", 100 + OBJECT_REFILL_S)
    assert series is not None
    assert series.count == 101  # what was not written was still counted
    assert folding.fold(about(), "again", 101 + OBJECT_REFILL_S) is None
    assert folding.fold(about("mac-8"), "again", 101) is not None


def test_an_object_that_was_quiet_for_a_day_may_not_say_more_at_once_than_a_new_one() -> None:
    folding = Folding()
    folding.fold(about(), "again", 0.0)
    day_s = 24 * 3600.0
    assert sum(folding.fold(about(), "again", day_s) is not None for _ in range(10 * OBJECT_BURST)) == OBJECT_BURST


def test_a_whole_fleet_that_talks_at_once_is_limited_too() -> None:
    folding = Folding()
    heard = [folding.fold(about(f"mac-{number}"), "down", 0.0) is not None for number in range(1000)]
    assert sum(heard) == GLOBAL_BURST
    assert folding.fold(about("mac-1000"), "down", GLOBAL_REFILL_S + 0.001) is not None


def test_memory_does_not_grow_with_the_number_of_objects() -> None:
    folding = Folding()
    for number in range(2 * REMEMBERED):
        folding.fold(about(f"pod-{number}"), "gone", float(number))
    assert len(folding._series) <= REMEMBERED
    assert len(folding._similar) <= REMEMBERED
    assert len(folding._buckets) <= REMEMBERED


def test_what_is_said_again_and_again_is_not_forgotten_for_what_was_said_once() -> None:
    folding = Folding(remembered=2)
    for number in range(3):
        folding.fold(about(), "no route", number)
        folding.fold(about(f"host-{number}"), "down", number)
    series = folding.fold(about(), "no route", 3)
    assert series is not None
    assert series.count == 4


MESSAGES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 14), st.floats(0, 400)), max_size=60)


@given(MESSAGES)
def test_nothing_that_was_said_is_missing_from_the_counts(said: list[tuple[str, int, float]]) -> None:
    folding = Folding()
    now_s = 0.0
    series: dict[int, Series] = {}
    for name, number, rest_s in said:
        now_s += rest_s
        written = folding.fold(about(name), f"message {number}", now_s)
        if written is not None:
            series[id(written)] = written
    counted = sum(each.count for each in folding._series.values())
    assert counted == len(said)
    assert set(series) <= {id(each) for each in folding._series.values()}


@given(st.lists(st.floats(0, 1000), max_size=200))
def test_no_object_is_written_about_more_often_than_its_bucket_allows(rests_s: list[float]) -> None:
    folding = Folding()
    now_s, written = 0.0, 0
    for rest_s in rests_s:
        now_s += rest_s
        written += folding.fold(about(), "again", now_s) is not None
    assert written <= OBJECT_BURST + now_s / OBJECT_REFILL_S + 1


class Desk:
    """A recorder on an API in memory, behind a wire that can fail."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.wire = FaultyTransport(running.transport())
        self.client = Client(self.wire, clock)
        self.outcomes: list[str] = []
        self.recorder = Recorder(self.client, "tart-kubelet", clock, host="mac-7", observer=self)

    def recorded(self, outcome: str) -> None:
        self.outcomes.append(outcome)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["Desk"]:
        task = asyncio.create_task(self.recorder.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def events(self, namespace: str = "ci") -> list[Event]:
        await self.recorder.flushed()
        return await self.client.list(Event, namespace)


@pytest.fixture
async def desk(running: RunningApi, clock: Clock) -> AsyncIterator[Desk]:
    async with Desk(running, clock).writing() as desk:
        yield desk


async def test_an_event_says_what_happened_to_which_object_and_who_says_so(desk: Desk) -> None:
    desk.recorder.event(POD, WARNING, "BootFailed", "the VM did not start")
    (event,) = await desk.events()
    about = event.involved_object
    assert (about.api_version, about.kind, about.namespace, about.name) == ("v1", "ConfigMap", "ci", "runner-1")
    assert (about.uid, about.resource_version) == ("uid-1", "12")
    assert (event.type, event.reason, event.message, event.count) == (WARNING, "BootFailed", "the VM did not start", 1)
    assert (event.first_timestamp, event.last_timestamp) == (EPOCH, EPOCH)
    assert event.source is not None
    assert (event.source.component, event.source.host) == ("tart-kubelet", "mac-7")
    assert (event.reporting_component, event.reporting_instance) == ("tart-kubelet", "mac-7")
    stem, _, suffix = event.name.rpartition(".")
    assert (stem, len(suffix)) == ("runner-1", 16)


async def test_an_event_about_a_cluster_scoped_object_stands_in_the_default_namespace(desk: Desk) -> None:
    desk.recorder.event(NODE, NORMAL, "Registered", "")
    (event,) = await desk.events("default")
    assert (event.namespace, event.involved_object.namespace) == ("default", "")


async def test_a_repeated_event_is_counted_up(desk: Desk) -> None:
    for _ in range(3):
        desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
        await elapse(60)
    (event,) = await desk.events()
    assert event.count == 3
    assert event.first_timestamp == EPOCH
    assert event.last_timestamp == EPOCH + timedelta(minutes=2)


async def test_many_similar_events_end_in_one_that_says_so(desk: Desk) -> None:
    for number in range(14):
        desk.recorder.event(POD, WARNING, "BootFailed", f"attempt {number}")
    events = await desk.events()
    combined = [event for event in events if event.message.startswith(COMBINED)]
    assert len(events) == 11
    assert [(event.message, event.count) for event in combined] == [(f"{COMBINED}attempt 13", 4)]


async def test_an_event_that_the_api_has_forgotten_is_made_again_and_counts_on(desk: Desk) -> None:
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    (event,) = await desk.events()
    await desk.client.delete(Event, event.key)
    await elapse(7200)
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    (reborn,) = await desk.events()
    assert reborn.uid != event.uid
    assert (reborn.count, reborn.first_timestamp) == (2, EPOCH)


async def test_an_object_that_keeps_talking_is_limited(desk: Desk) -> None:
    for number in range(40):
        desk.recorder.event(POD, NORMAL, f"Reason{number}", "x")
    assert len(await desk.events()) == OBJECT_BURST
    assert desk.outcomes.count("limited") == 40 - OBJECT_BURST


async def test_recording_never_waits_and_what_does_not_fit_is_dropped_and_counted(running: RunningApi, clock: Clock) -> None:
    desk = Desk(running, clock)  # nobody writes
    for number in range(QUEUE_LENGTH + 5):
        desk.recorder.event(POD, NORMAL, "Pulling", f"image {number}")
    assert desk.recorder.dropped == 5
    assert desk.outcomes == ["dropped"] * 5


async def test_events_of_an_outage_are_written_when_it_ends(desk: Desk) -> None:
    desk.wire.plan = always(Refused())
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    desk.recorder.event(NODE, NORMAL, "Registered", "")
    await elapse(60)
    desk.wire.heal()
    assert len(await desk.events()) == 1
    assert desk.recorder.dropped == 0


async def test_what_is_left_when_the_recorder_is_stopped_is_written_by_its_next_run(running: RunningApi, clock: Clock) -> None:
    """Nobody woke it until something else was said."""
    desk = Desk(running, clock)
    desk.wire.plan = always(Refused())
    async with desk.writing():
        for number in range(3):
            desk.recorder.event(POD, NORMAL, "Pulling", f"image {number}")
        await elapse(1)
    desk.wire.heal()
    async with desk.writing(), asyncio.timeout(60):
        assert sorted((event.message, event.count) for event in await desk.events()) == [
            (f"image {number}", 1) for number in range(3)
        ]


async def test_an_event_on_its_way_at_a_stop_is_written_once(running: RunningApi, clock: Clock) -> None:
    """Each attempt drew a name of its own."""
    desk = Desk(running, clock)
    desk.wire.plan = in_turn([Late(5)])
    async with desk.writing():
        desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
        await elapse(1)
    async with desk.writing():
        assert [(event.message, event.count) for event in await desk.events()] == [("image 1", 1)]


async def test_an_event_that_arrives_when_it_was_given_up_is_written_once(running: RunningApi, clock: Clock) -> None:
    desk = Desk(running, clock)
    sent: list[Request] = []

    async def arrives_late(request: Request) -> None:
        if request.method == "POST":
            sent.append(request)
            if len(sent) == 1:
                raise Unreachable("connection reset")
            await running.transport().send(sent[0])

    desk.recorder = Recorder(Client(Between(desk.wire, arrives_late), clock), "tart-kubelet", clock, observer=desk)
    async with desk.writing():
        desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
        assert [(event.message, event.count) for event in await desk.events()] == [("image 1", 1)]
    assert (len(sent), desk.outcomes) == (2, ["written"])


async def test_on_a_standby_no_event_waits(running: RunningApi, clock: Clock) -> None:
    """As in its queues. The page of every standby told of one until it led."""
    desk = Desk(running, clock)
    async with desk.writing():
        await elapse(1)
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    await elapse(1)
    assert desk.recorder.waiting_count == 0
    async with desk.writing():
        assert len(await desk.events()) == 1


async def test_an_event_that_is_being_written_waits(desk: Desk) -> None:
    """Two minutes with an API that hangs, and the page said that nothing waits."""
    desk.wire.plan = always(Hung())
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    await elapse(60)
    assert desk.recorder.waiting_count == 1
    desk.wire.heal()
    await desk.events()
    assert desk.recorder.waiting_count == 0


async def test_an_outage_too_long_costs_events_and_nothing_else(desk: Desk) -> None:
    desk.wire.plan = always(Refused())
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    await elapse(3600)
    assert desk.recorder.dropped == 1
    desk.wire.heal()
    desk.recorder.event(POD, NORMAL, "Pulled", "image 1")
    assert [event.reason for event in await desk.events()] == ["Pulled"]


async def test_an_event_the_api_refuses_is_dropped_at_once_and_the_next_is_written(desk: Desk) -> None:
    desk.wire.plan = in_turn([Says(422)])
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    desk.recorder.event(POD, NORMAL, "Pulled", "image 1")
    assert [event.reason for event in await desk.events()] == ["Pulled"]
    assert desk.outcomes == ["dropped", "written"]


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), asyncio.CancelledError()], ids=repr)
async def test_a_bug_below_costs_one_event_which_is_counted(desk: Desk, fault: BaseException) -> None:
    """A cancellation that nobody asked for ended the recorder, and after each restart again by the same Event."""

    def breaks(_: Request) -> None:
        raise fault

    desk.wire.plan = breaks
    desk.recorder.event(POD, "Normal", "Lost", "this one")
    await desk.recorder.flushed()
    desk.wire.heal()
    desk.recorder.event(POD, "Normal", "Next", "that one")
    await desk.recorder.flushed()
    assert desk.recorder.dropped == 1
    assert [event.reason for event in await desk.events()] == ["Next"]


async def test_a_lost_answer_neither_doubles_an_event_nor_loses_one(desk: Desk) -> None:
    desk.wire.plan = in_turn([Lost(), Lost()])
    desk.recorder.event(POD, NORMAL, "Pulling", "image 1")
    assert [(event.message, event.count) for event in await desk.events()] == [("image 1", 1)]
    assert desk.outcomes == ["written"]


async def test_a_secret_is_masked_before_the_text_goes_anywhere(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registration token once stood in a script's text and came out in an Event."""
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(observe, "sinks", [*observe.sinks, lambda kind, text: heard.append((kind, text))])
    token = Secret("correct-horse-battery")
    filler = "x" * (LONGEST_MESSAGE_CHARS - 30)  # cut first, half the token would stay
    desk.recorder.event(POD, WARNING, "BootFailed", f"{filler} token {token.reveal()} refused")
    (event,) = await desk.events()
    assert event.message == f"{filler} token *** refused"
    assert heard == [("event", f"BootFailed: {event.message}")]


async def test_a_long_message_is_cut_to_what_the_api_takes(desk: Desk) -> None:
    for number in range(12):
        desk.recorder.event(POD, WARNING, "BootFailed", f"{number} " + "x" * 5000)
    events = await desk.events()
    assert {len(event.message) for event in events} == {LONGEST_MESSAGE_CHARS}


NAMES = st.one_of(st.text(max_size=300), st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,300}[a-z0-9])?", fullmatch=True))


@given(NAMES, st.integers(0, 2**64 - 1))
def test_the_name_of_an_event_is_one_the_api_takes(object_name: str, number: int) -> None:
    name = event_name(object_name, number)
    assert len(name) <= 253
    assert name[0].isalnum()
    assert all(character in "abcdefghijklmnopqrstuvwxyz0123456789-." for character in name)
    assert name.rpartition(".")[2] == f"{number:016x}"


# On every API


async def test_every_api_takes_our_events_and_their_counts(api: Backend, clock: Clock) -> None:
    recorder = Recorder(api.client, "tart-kubelet", clock, host="mac-7")
    task = asyncio.create_task(recorder.run())
    metadata = ObjectMeta(name="runner-1", namespace=api.namespace)
    obj: Object = await api.client.create(ConfigMap(metadata=metadata))
    for _ in range(3):
        recorder.event(obj, WARNING, "BootFailed", "the VM did not start")
        await recorder.flushed()
    (event,) = await api.client.list(Event, api.namespace)
    assert (event.count, event.message, event.involved_object.uid) == (3, "the VM did not start", obj.uid)
    assert (await api.client.get(Event, Key(api.namespace, event.name))).reporting_component == "tart-kubelet"
    task.cancel()
    await asyncio.wait({task})
