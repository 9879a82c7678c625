"""A RunnerPool answers with the contract's defaults, and a zero somebody wrote stays a zero."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.api.runners import RunnerPool, RunnerPoolSpec
from tests.api.examples import POOL_SPEC, SMALLEST_POOL_SPEC
from tests.api.strategies import structs


def spec_of(**fields: Any) -> RunnerPoolSpec:
    return msgspec.convert({**SMALLEST_POOL_SPEC, **fields}, RunnerPoolSpec)


DEFAULTS = {
    "operating_system": "darwin",
    "cpu_milli": 8000,
    "memory_mb": 14336,
    "max_starting": 4,
    "start_timeout_s": 300,
    "is_autoscaled": False,
    "warm_floor": 1,
    "scale_down_cooldown_s": 300,
    "roll_percent": 5,
}


@pytest.mark.parametrize("blocks", [{}, {"provisioning": {}, "autoscaling": {}, "rollout": {}}])
def test_what_is_left_out_has_the_default_of_the_contract(blocks: dict[str, Any]) -> None:
    spec = spec_of(**blocks)
    assert {name: getattr(spec, name) for name in DEFAULTS} == DEFAULTS


def test_what_is_written_wins_over_the_default() -> None:
    spec = msgspec.convert(POOL_SPEC, RunnerPoolSpec)
    assert {name: getattr(spec, name) for name in DEFAULTS} == {
        "operating_system": "linux",
        "cpu_milli": 6000,
        "memory_mb": 14000,
        "max_starting": 2,
        "start_timeout_s": 0,
        "is_autoscaled": True,
        "warm_floor": 0,
        "scale_down_cooldown_s": 0,
        "roll_percent": 10,
    }


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ("autoscaling", "minWarmPoolFloor"),
        ("autoscaling", "scaleDownCooldownSeconds"),
        ("provisioning", "startTimeoutSeconds"),
    ],
)
def test_an_explicit_zero_survives_a_whole_object_write(block: str, field: str) -> None:
    """A floor of 0 was rewritten to 1 when a controller wrote the whole pool back."""
    spec = spec_of(**{block: {field: 0}})
    assert msgspec.to_builtins(spec)[block] == {field: 0}


def test_a_zero_that_starts_nothing_is_read_as_the_default() -> None:
    """Such a pool predates the lower limit of 1; it would never start a runner."""
    assert spec_of(provisioning={"maxConcurrentPerFleetSelector": 0}).max_starting == 4


def test_a_pool_with_values_that_are_refused_today_can_still_be_read() -> None:
    spec = spec_of(rollout={"maxConcurrentPercent": 0}, os="windows", runnerLabels=[], image="")
    assert (spec.roll_percent, spec.operating_system, spec.runner_labels, spec.image) == (0, "windows", (), "")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(structs(RunnerPool))
def test_every_pool_has_an_answer_to_every_question(pool: RunnerPool) -> None:
    for name, default in DEFAULTS.items():
        assert type(getattr(pool.spec, name)) is type(default)


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=10_000))
def test_counts_that_were_written_are_answered(count: int) -> None:
    spec = spec_of(provisioning={"maxConcurrentPerFleetSelector": count}, autoscaling={"minWarmPoolFloor": count})
    assert (spec.max_starting, spec.warm_floor) == (count, count)
