"""Which failures of a call are worth another attempt, as a table, and when."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput, DeadlineExceeded, NeverSent, Permanent, Unreachable
from applecart.kube.errors import ApiError, Status, error_from_status
from applecart.kube.retry import LONGEST_RETRY_AFTER_S, PACE, retry_wait_s


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
    assert asked_s < waited_s <= asked_s + PACE.longest_s


def test_clients_that_were_asked_for_the_same_wait_spread_out() -> None:
    waits = {wait_s(api_error(429, 1), repeatable=True, seed=seed) for seed in range(50)}
    assert len(waits) == 50


@given(st.integers(1, 1000), st.integers(0, 2**32))
def test_a_wait_without_a_wish_of_the_server_is_the_paces(failures: int, seed: int) -> None:
    expected_s = PACE.wait_s(failures, random.Random(seed))
    for error in (NeverSent("refused"), Unreachable("reset"), api_error(500), api_error(429)):
        assert wait_s(error, repeatable=True, failures=failures, seed=seed) == expected_s


@given(st.integers(400, 599), st.one_of(st.none(), st.integers(0, 120)), st.integers(1, 20))
def test_what_may_not_be_repeated_is_never_tried_again_more_often_than_what_may(
    code: int, asked_s: int | None, failures: int
) -> None:
    error = api_error(code, asked_s)
    if wait_s(error, repeatable=False, failures=failures) is not None:
        assert wait_s(error, repeatable=True, failures=failures) is not None
