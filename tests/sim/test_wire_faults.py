"""Which fault strikes, and what it does to the bytes of an answer."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from applecart.sim.wire_faults import (
    STATUSES,
    Answer,
    AnswerFault,
    Cut,
    Delay,
    Duplicate,
    HalfClose,
    LoseAnswer,
    Passage,
    RandomPlan,
    RequestLine,
    Stall,
    draw_fault,
    in_turn,
)

LINE = RequestLine(1, "GET", "/api/v1/pods?limit=500")
answers = st.binary(max_size=300)
cuts_in_answers = st.lists(st.integers(0, 300), max_size=10)


def chunks(answer: bytes, cuts: list[int]) -> list[bytes]:
    """The answer as a network might deliver it."""
    places = sorted({0, len(answer), *(min(cut, len(answer)) for cut in cuts)})
    return [answer[start:end] for start, end in pairwise(places)]


def passed(answer: bytes, cuts: list[int], fault: AnswerFault | None) -> tuple[bytes, Passage]:
    passage = Passage(fault)
    out = b""
    for chunk in chunks(answer, cuts):
        out += passage.let_through(chunk)
        if passage.struck and not isinstance(fault, Duplicate):
            break
    return out, passage


@given(answers, cuts_in_answers)
def test_without_a_fault_everything_goes_on(answer: bytes, cuts: list[int]) -> None:
    assert passed(answer, cuts, None)[0] == answer


@given(answers, cuts_in_answers, st.integers(0, 400), st.sampled_from([Cut, HalfClose, Stall]))
def test_exactly_the_bytes_before_the_place_go_on_however_they_arrive(
    answer: bytes, cuts: list[int], after_bytes: int, kind: type[AnswerFault]
) -> None:
    out, passage = passed(answer, cuts, kind(after_bytes))
    assert out == answer[:after_bytes]
    assert passage.struck is (after_bytes <= len(answer) and bool(answer))


@given(answers, cuts_in_answers, st.integers(0, 400))
def test_what_was_held_back_follows_what_went_on(answer: bytes, cuts: list[int], after_bytes: int) -> None:
    out, passage = passed(answer, cuts, Stall(after_bytes))
    assert answer.startswith(out + passage.held_back)


@given(answers, cuts_in_answers, st.integers(0, 400), st.integers(1, 50))
def test_a_duplicate_repeats_the_last_bytes_once_and_loses_none(
    answer: bytes, cuts: list[int], after_bytes: int, count_bytes: int
) -> None:
    out, _ = passed(answer, cuts, Duplicate(after_bytes, count_bytes))
    if after_bytes <= len(answer):
        before, after = answer[:after_bytes], answer[after_bytes:]
        assert out == before + before[-count_bytes:] + after
    else:
        assert out == answer


@given(answers, cuts_in_answers, st.integers(0, 400))
def test_a_forgiven_fault_does_not_strike(answer: bytes, cuts: list[int], after_bytes: int) -> None:
    passage = Passage(Cut(after_bytes))
    passage.forgive()
    assert b"".join(passage.let_through(chunk) for chunk in chunks(answer, cuts)) == answer
    assert not passage.struck


@given(st.integers())
def test_the_same_seed_meets_the_same_faults(seed: int) -> None:
    one, other = RandomPlan(seed), RandomPlan(seed)
    assert [one(LINE) for _ in range(50)] == [other(LINE) for _ in range(50)]


def test_a_random_plan_draws_every_kind_and_leaves_some_requests_alone() -> None:
    plan = RandomPlan(0, share=0.7)
    drawn = [plan(LINE) for _ in range(500)]
    assert {type(fault) for fault in drawn} == {type(None), Answer, LoseAnswer, Cut, HalfClose, Stall, Duplicate}
    assert {fault.status for fault in drawn if isinstance(fault, Answer)} == set(STATUSES)


def test_a_share_of_nothing_strikes_nobody_and_of_everything_everybody() -> None:
    assert not any(RandomPlan(0, share=0.0)(LINE) for _ in range(100))
    always = RandomPlan(0, share=1.0)
    assert all(always(LINE) for _ in range(100))


def test_a_plan_may_be_limited_to_some_kinds() -> None:
    assert {type(draw_fault(random.Random(seed), (Delay, Cut))) for seed in range(20)} == {Delay, Cut}


def test_faults_in_turn_end_with_peace() -> None:
    plan = in_turn([Cut(), None, Delay()])
    assert [plan(LINE) for _ in range(5)] == [Cut(), None, Delay(), None, None]


def test_a_request_reads_as_a_person_looks_for_it() -> None:
    assert str(LINE) == "#1 GET /api/v1/pods"
    assert str(RequestLine(2, "GET", "/api/v1/pods?watch=true&resourceVersion=7")) == "#2 WATCH /api/v1/pods"
