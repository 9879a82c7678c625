"""The arithmetic of waiting: how long, after which failure, and which failed calls are worth another attempt, as a table."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import (
    ApplecartError,
    BadInput,
    ControlPlaneFault,
    DeadlineExceeded,
    NeverSent,
    Permanent,
    Transient,
    Unreachable,
)
from applecart.kube.backoff import (
    LONGEST_RETRY_AFTER_S,
    OF_CALLS,
    Backoff,
    Failure,
    FailureBackoffs,
    failure_of,
    requeue_after_s,
    retry_wait_s,
)
from applecart.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    Status,
    TooManyRequests,
    error_from_status,
)

SOME = Backoff(first_s=0.5, longest_s=30.0)
seeds = st.integers(0, 2**32)
failure_counts = st.integers(1, 10_000)


@given(failure_counts, seeds)
def test_a_wait_is_between_half_and_the_whole_of_its_step(failures: int, seed: int) -> None:
    step_s = min(0.5 * 2 ** min(failures - 1, 20), 30.0)
    assert step_s / 2 <= SOME.wait_s(failures, random.Random(seed)) <= step_s


@given(failure_counts, seeds)
def test_the_longest_possible_wait_never_shrinks_with_more_failures(failures: int, seed: int) -> None:
    """Compared with the same luck, one failure more never waits less."""
    assert SOME.wait_s(failures + 1, random.Random(seed)) >= SOME.wait_s(failures, random.Random(seed))


@given(st.integers(-5, 0), seeds)
def test_no_failure_yet_waits_as_after_the_first(failures: int, seed: int) -> None:
    assert SOME.wait_s(failures, random.Random(seed)) == SOME.wait_s(1, random.Random(seed))


def test_clients_that_failed_together_do_not_come_back_together() -> None:
    waits = {SOME.wait_s(3, random.Random(seed)) for seed in range(100)}
    assert len(waits) == 100


@given(st.floats(0, 10), st.floats(0, 100), failure_counts, seeds)
def test_a_wait_is_never_negative_or_beyond_the_cap(first_s: float, longest_s: float, failures: int, seed: int) -> None:
    assert 0 <= Backoff(first_s, longest_s).wait_s(failures, random.Random(seed)) <= longest_s


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Conflict(Status(), "PATCH"), Failure.CONFLICT),
        (ServerFault(Status(), "GET"), Failure.TRANSIENT),
        (Forbidden(Status(), "GET"), Failure.TRANSIENT),
        (ControlPlaneFault("no Secret"), Failure.TRANSIENT),
        (Unreachable("mac-7"), Failure.TRANSIENT),
        (ApplecartError("neither"), Failure.TRANSIENT),
        (Permanent("mac-7"), Failure.PERMANENT),
        (BadInput("spec.os"), Failure.PERMANENT),
        (Invalid(Status(), "POST"), Failure.PERMANENT),
        (NotFound(Status(), "GET"), Failure.PERMANENT),
        (AlreadyExists(Status(), "POST"), Failure.PERMANENT),
        (KeyError("spec"), Failure.UNEXPECTED),
        (TimeoutError(), Failure.UNEXPECTED),
    ],
)
def test_every_error_has_one_kind_of_failure(error: Exception, failure: Failure) -> None:
    assert failure_of(error) is failure


def test_a_conflict_returns_sooner_than_a_transient_failure_and_that_sooner_than_a_permanent_one() -> None:
    errors = [Conflict(Status(), "PATCH"), Transient("down"), BadInput("spec")]
    waits = [requeue_after_s(error, 1, FailureBackoffs(), random.Random(0)) for error in errors]
    assert waits == sorted(waits)
    assert waits[0] < 0.1
    assert waits[-1] >= 15


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    error = TooManyRequests(Status(), "GET", retry_after_s=40.0)
    assert requeue_after_s(error, 1, FailureBackoffs(), random.Random(0)) > 40.0


def test_a_server_that_asks_for_a_day_is_asked_again_soon() -> None:
    error = TooManyRequests(Status(), "GET", retry_after_s=86_400.0)
    wait_s = requeue_after_s(error, 1, FailureBackoffs(), random.Random(0))
    assert LONGEST_RETRY_AFTER_S < wait_s < LONGEST_RETRY_AFTER_S + 1


@given(
    st.sampled_from([Conflict(Status(), "PATCH"), Transient("down"), BadInput("spec"), RuntimeError("bug")]),
    st.integers(1, 10_000),
    st.integers(),
)
def test_no_wait_is_longer_than_its_backoff_allows(error: Exception, failures: int, seed: int) -> None:
    backoffs = FailureBackoffs()
    longest_s = getattr(backoffs, failure_of(error)).longest_s
    assert 0 < requeue_after_s(error, failures, backoffs, random.Random(seed)) <= longest_s


def api_error(code: int, retry_after_s: float | None = None) -> ApiError:
    return error_from_status(Status(code=code), "GET /api/v1/pods", retry_after_s)


def wait_s(error: Exception, *, repeatable: bool, failures: int = 1, seed: int = 0) -> float | None:
    return retry_wait_s(error, failures, repeatable=repeatable, chance=random.Random(seed))


@pytest.mark.parametrize(
    ("error", "when_repeatable", "when_not"),
    [
        # It surely did nothing, so anything may be sent again.
        (NeverSent("refused"), True, True),
        (api_error(429), True, True),
        (api_error(429, 3), True, True),
        (api_error(503, 1), True, True),
        # It may have happened: only what may happen twice is sent again.
        (Unreachable("reset"), True, False),
        (DeadlineExceeded("too slow"), True, False),
        (api_error(500), True, False),
        (api_error(503), True, False),
        (api_error(504), True, False),
        # The answer will be the same.
        (api_error(400), False, False),
        (api_error(401), False, False),
        (api_error(403), False, False),
        (api_error(404), False, False),
        (api_error(405), False, False),
        (api_error(409), False, False),
        (api_error(410), False, False),
        (api_error(413), False, False),
        (api_error(415), False, False),
        (api_error(422), False, False),
        (Permanent("no"), False, False),
        (BadInput("no"), False, False),
        # A server that wants to be left alone for so long is down for the length of a call.
        (api_error(429, LONGEST_RETRY_AFTER_S + 1), False, False),
        (api_error(503, LONGEST_RETRY_AFTER_S + 1), False, False),
    ],
    ids=lambda value: f"{type(value).__name__}-{value}"[:60] if isinstance(value, Exception) else None,
)
def test_what_is_tried_again(error: Exception, when_repeatable: bool, when_not: bool) -> None:
    assert (wait_s(error, repeatable=True) is not None) is when_repeatable
    assert (wait_s(error, repeatable=False) is not None) is when_not


@given(st.integers(0, int(LONGEST_RETRY_AFTER_S)), st.integers(1, 50), st.integers(0, 2**32), st.sampled_from([429, 500, 503]))
def test_nobody_comes_back_before_the_server_asked_for(asked_s: int, failures: int, seed: int, code: int) -> None:
    waited_s = wait_s(api_error(code, asked_s), repeatable=False, failures=failures, seed=seed)
    assert waited_s is not None
    assert asked_s < waited_s <= asked_s + OF_CALLS.longest_s


def test_clients_that_were_asked_for_the_same_wait_spread_out() -> None:
    waits = {wait_s(api_error(429, 1), repeatable=True, seed=seed) for seed in range(50)}
    assert len(waits) == 50


@given(st.integers(1, 1000), st.integers(0, 2**32))
def test_a_wait_without_a_wish_of_the_server_is_the_backoffs(failures: int, seed: int) -> None:
    expected_s = OF_CALLS.wait_s(failures, random.Random(seed))
    for error in (NeverSent("refused"), Unreachable("reset"), api_error(500), api_error(429)):
        assert wait_s(error, repeatable=True, failures=failures, seed=seed) == expected_s


@given(st.integers(400, 599), st.one_of(st.none(), st.integers(0, 120)), st.integers(1, 20))
def test_what_may_not_be_repeated_is_never_tried_again_more_often_than_what_may(
    code: int, asked_s: int | None, failures: int
) -> None:
    error = api_error(code, asked_s)
    if wait_s(error, repeatable=False, failures=failures) is not None:
        assert wait_s(error, repeatable=True, failures=failures) is not None
