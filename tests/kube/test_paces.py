"""Which failure waits how long."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import ApplecartError, BadInput, ControlPlaneFault, HostKeyChanged, HostUnreachable, Transient
from applecart.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, ServerFault, Status, TooManyRequests
from applecart.kube.paces import Failure, Paces, failure_of, retry_after_s


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Conflict(Status(), "PATCH"), Failure.CONFLICT),
        (ServerFault(Status(), "GET"), Failure.TRANSIENT),
        (Forbidden(Status(), "GET"), Failure.TRANSIENT),
        (ControlPlaneFault("no Secret"), Failure.TRANSIENT),
        (HostUnreachable("mac-7"), Failure.TRANSIENT),
        (ApplecartError("neither"), Failure.TRANSIENT),
        (HostKeyChanged("mac-7"), Failure.PERMANENT),
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
    waits = [retry_after_s(error, 1, Paces(), random.Random(0)) for error in errors]
    assert waits == sorted(waits)
    assert waits[0] < 0.1
    assert waits[-1] >= 15


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    error = TooManyRequests(Status(), "GET", retry_after_s=40.0)
    assert retry_after_s(error, 1, Paces(), random.Random(0)) > 40.0


@given(
    st.sampled_from([Conflict(Status(), "PATCH"), Transient("down"), BadInput("spec"), RuntimeError("bug")]),
    st.integers(1, 10_000),
    st.integers(),
)
def test_no_wait_is_longer_than_its_pace_allows(error: Exception, failures: int, seed: int) -> None:
    paces = Paces()
    longest_s = getattr(paces, failure_of(error)).longest_s
    assert 0 < retry_after_s(error, failures, paces, random.Random(seed)) <= longest_s
