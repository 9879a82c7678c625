"""Who is next, who waits, who is woken."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from applecart.api.meta import Key
from applecart.embedded.controllers.scheduler.pod_shape import Wants, wants_of
from applecart.embedded.controllers.scheduler.queue import LONGEST_WAIT_S, Pending, PendingPod
from tests.embedded.controllers.scheduler.objects import pod


def wants(name: str, *, priority: int = 0, age_s: float = 0.0, cpu: str = "1") -> Wants:
    return wants_of(pod(name, priority=priority, age_s=age_s, requests={"cpu": cpu}))


def pending(*all_wants: Wants) -> Pending:
    queue = Pending()
    for each in all_wants:
        queue.put(each)
    return queue


def out(queue: Pending, now_s: float = 0.0) -> PendingPod:
    entry = queue.next(now_s)
    assert entry is not None
    return entry


def drained(queue: Pending, now_s: float = 0.0) -> list[str]:
    names = []
    while (entry := queue.next(now_s)) is not None:
        names.append(entry.wants.key.name)
    return names


def park_all(queue: Pending, now_s: float = 0.0) -> None:
    for entry in [out(queue, now_s) for _ in range(len(queue))]:
        queue.waits(entry, now_s)


def room_for_all(queue: Pending) -> None:
    for shape in queue.waiting_shapes():
        queue.room_appeared(shape)


def test_priority_then_age_then_name() -> None:
    queue = pending(
        wants("young"),
        wants("old", age_s=60),
        wants("old-twin", age_s=60),
        wants("urgent", priority=10),
        wants("low", priority=-5),
    )
    assert drained(queue) == ["urgent", "old", "old-twin", "young", "low"]


def test_a_pod_that_says_the_same_again_is_not_tried_again() -> None:
    queue = pending(wants("a"))
    queue.waits(out(queue), 0.0)
    queue.put(wants("a"))
    assert drained(queue) == []


def test_a_pod_that_asks_for_something_else_is_tried_at_once() -> None:
    queue = pending(wants("a"))
    queue.waits(out(queue), 0.0)
    queue.put(wants("a", cpu="2"))
    assert drained(queue) == ["a"]


def test_room_wakes_the_first_of_each_shape_that_fits() -> None:
    small, large = wants("small-1"), wants("large", cpu="4")
    queue = pending(small, wants("small-2", priority=1), large)
    park_all(queue)
    queue.room_appeared(small.shape)
    assert drained(queue) == ["small-2"]


def test_each_that_leaves_wakes_the_next_of_its_shape() -> None:
    queue = pending(wants("a", age_s=2), wants("b", age_s=1), wants("c"))
    park_all(queue)
    room_for_all(queue)
    queue.done(out(queue))
    queue.drop(Key("test", "b"))  # bound or gone while it was on its way
    assert drained(queue) == ["c"]


def test_one_that_fits_nowhere_wakes_nobody() -> None:
    queue = pending(wants("a", age_s=2), wants("b"))
    park_all(queue)
    room_for_all(queue)
    queue.waits(out(queue), 0.0)
    assert drained(queue) == []


def test_a_failure_backs_off_from_one_second_to_ten_and_room_does_not_help() -> None:
    queue = pending(wants("a"))
    now_s, waits_s = 0.0, []
    for _ in range(6):
        queue.failed(out(queue, now_s), now_s)
        room_for_all(queue)
        assert queue.next(now_s) is None
        wait_s = queue.due_in_s(now_s)
        assert wait_s is not None
        waits_s.append(wait_s)
        now_s += wait_s
    assert waits_s == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_failure_lets_the_next_of_its_shape_try() -> None:
    queue = pending(wants("a", age_s=2), wants("b"))
    park_all(queue)
    room_for_all(queue)
    queue.failed(out(queue), 0.0)
    assert drained(queue) == ["b"]


def test_who_waits_is_looked_at_again_even_if_no_event_ever_comes() -> None:
    queue = pending(wants("a"))
    park_all(queue)
    assert queue.due_in_s(0.0) == LONGEST_WAIT_S
    assert drained(queue, LONGEST_WAIT_S) == ["a"]


def test_nodes_that_changed_make_everybody_look_again_after_their_backoff_however_often() -> None:
    queue = pending(wants("a"), wants("b"))
    park_all(queue)
    for at_s in (0.0, 0.5, 0.9):
        queue.nodes_changed(at_s)
    assert drained(queue, 0.9) == []
    assert drained(queue, 1.0) == ["a", "b"]


def test_an_explanation_that_could_not_be_written_is_tried_again_soon() -> None:
    queue = pending(wants("a"))
    entry = out(queue)
    queue.waits(entry, 0.0)
    queue.failed(entry, 0.0)
    assert queue.due_in_s(0.0) == 1.0


def test_an_attempt_that_was_overtaken_changes_nothing() -> None:
    queue = pending(wants("a"))
    stale = out(queue)
    queue.put(wants("a", cpu="2"))
    for end in (queue.done, lambda entry: queue.waits(entry, 0.0), lambda entry: queue.failed(entry, 0.0)):
        end(stale)
    assert drained(queue) == ["a"]


def test_the_same_event_is_told_again_only_after_a_while() -> None:
    entry = PendingPod(wants("a"))
    assert entry.is_worth_telling("no room", 10.0)
    assert not entry.is_worth_telling("no room", 11.0)
    assert entry.is_worth_telling("no nodes", 12.0)
    assert entry.is_worth_telling("no nodes", 12.0 + LONGEST_WAIT_S)


class QueueModel(RuleBasedStateMachine):
    """Whatever happens in whatever order: nobody is lost and nobody stays for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Pending()
        self.now_s = 0.0
        self.known: set[str] = set()

    @rule(name=st.sampled_from("abcdef"), priority=st.integers(0, 2), cpu=st.sampled_from(["1", "2"]))
    def put(self, name: str, priority: int, cpu: str) -> None:
        self.queue.put(wants(name, priority=priority, cpu=cpu))
        self.known.add(name)

    @rule(name=st.sampled_from("abcdef"))
    def drop(self, name: str) -> None:
        self.queue.drop(Key("test", name))
        self.known.discard(name)

    @rule(seconds=st.sampled_from([0.5, 5.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(end=st.sampled_from(["done", "waits", "failed"]))
    def try_one(self, end: str) -> None:
        entry = self.queue.next(self.now_s)
        if entry is None:
            return
        name = entry.wants.key.name
        assert name in self.known
        if end == "done":
            self.queue.done(entry)
            self.known.discard(name)
        elif end == "waits":
            self.queue.waits(entry, self.now_s)
        else:
            self.queue.failed(entry, self.now_s)

    @rule(cpu=st.sampled_from([1000, 2000]))
    def room(self, cpu: int) -> None:
        for shape in self.queue.waiting_shapes():
            if dict(shape.amounts)["cpu"] <= cpu:
                self.queue.room_appeared(shape)

    @rule()
    def nodes_changed(self) -> None:
        self.queue.nodes_changed(self.now_s)

    @invariant()
    def nobody_is_lost(self) -> None:
        assert len(self.queue) == len(self.known)

    def teardown(self) -> None:
        seen = drained(self.queue, self.now_s + 10_000)
        assert sorted(seen) == sorted(self.known)


QueueModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueueModel = QueueModel.TestCase
