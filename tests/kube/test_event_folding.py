"""What is written of a flood of Events."""

from hypothesis import given
from hypothesis import strategies as st

from applecart.kube.event_folding import (
    COMBINED,
    GLOBAL_BURST,
    GLOBAL_REFILL_S,
    OBJECT_BURST,
    OBJECT_REFILL_S,
    REMEMBERED,
    SIMILAR_ALLOWED,
    SIMILAR_WITHIN_S,
    Folding,
    Series,
    Subject,
)


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


def test_an_object_that_keeps_talking_is_heard_once_in_five_minutes() -> None:
    folding = Folding()
    heard = [folding.fold(about(), "again", number) is not None for number in range(100)]
    assert heard == [True] * OBJECT_BURST + [False] * (100 - OBJECT_BURST)
    series = folding.fold(about(), "again", 100 + OBJECT_REFILL_S)
    assert series is not None
    assert series.count == 101  # what was not written was still counted
    assert folding.fold(about(), "again", 101 + OBJECT_REFILL_S) is None
    assert folding.fold(about("mac-8"), "again", 101) is not None


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
