"""The arithmetic of waiting."""

import random

from hypothesis import given
from hypothesis import strategies as st

from applecart.kube.backoff import Pace

PACE = Pace(first_s=0.5, longest_s=30.0)
seeds = st.integers(0, 2**32)
failure_counts = st.integers(1, 10_000)


@given(failure_counts, seeds)
def test_a_wait_is_between_half_and_the_whole_of_its_step(failures: int, seed: int) -> None:
    step_s = min(0.5 * 2 ** min(failures - 1, 20), 30.0)
    assert step_s / 2 <= PACE.wait_s(failures, random.Random(seed)) <= step_s


@given(failure_counts, seeds)
def test_the_longest_possible_wait_never_shrinks_with_more_failures(failures: int, seed: int) -> None:
    """Compared with the same luck, one failure more never waits less."""
    assert PACE.wait_s(failures + 1, random.Random(seed)) >= PACE.wait_s(failures, random.Random(seed))


@given(st.integers(-5, 0), seeds)
def test_no_failure_yet_waits_as_after_the_first(failures: int, seed: int) -> None:
    assert PACE.wait_s(failures, random.Random(seed)) == PACE.wait_s(1, random.Random(seed))


def test_clients_that_failed_together_do_not_come_back_together() -> None:
    waits = {PACE.wait_s(3, random.Random(seed)) for seed in range(100)}
    assert len(waits) == 100


@given(st.floats(0, 10), st.floats(0, 100), failure_counts, seeds)
def test_a_wait_is_never_negative_or_beyond_the_cap(first_s: float, longest_s: float, failures: int, seed: int) -> None:
    assert 0 <= Pace(first_s, longest_s).wait_s(failures, random.Random(seed)) <= longest_s
