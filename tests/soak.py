"""What tests draw, and how much of it: the same small sample in every `make test`, the whole with fresh chance in `make soak`.

A usual run is repeatable: a property test draws the same examples whichever tests ran before it, and a seed is the same number.
`make soak` prints its seed, and `make soak SEED=<it>` repeats it. What a soak finds becomes an `@example`, a row or a test of
its own, so that it is in every run from then on.
"""

from collections.abc import Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

T = TypeVar("T")

USUAL = "usual"
MOST_EXAMPLES = 25  # of a usual run; the `max_examples` of a test are a soak's. Drawing them was a third of all work
SOAK = "soak"

# How long an example takes says something about the machine, not about the code.
EVERYWHERE = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.register_profile(USUAL, EVERYWHERE, derandomize=True)
settings.register_profile(SOAK, EVERYWHERE, max_examples=1000, print_blob=True)
settings.load_profile(USUAL)
# Hypothesis also draws constants of our modules, of those that happen to be loaded: a failing example would pass alone.
setattr(providers, "_get_local_constants", providers.__dict__["Constants"])  # noqa: B010

_soak_seed: int | None = None


def pytest_configure(config: pytest.Config) -> None:
    global _soak_seed
    if config.getoption("--hypothesis-profile") == SOAK:
        _soak_seed = int(config.getoption("--hypothesis-seed") or 0)


def pytest_itemcollected(item: pytest.Item) -> None:
    test = getattr(item, "obj", None)
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if _soak_seed is None and own is not None and own.max_examples > MOST_EXAMPLES:
        setattr(test, "_hypothesis_internal_use_settings", settings(own, max_examples=MOST_EXAMPLES))  # noqa: B010


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _soak_seed is not None:
        terminalreporter.write_line(f"drawn from seed {_soak_seed}: make soak SEED={_soak_seed} draws the same again")


def soaks(usual: T, soak: T) -> T:
    """How many, how long, which: of a usual run and of a soak."""
    return usual if _soak_seed is None else soak


def seeds(usual: int, soak: int) -> range:
    """For `parametrize`: always the same ones, or new ones."""
    return range(usual) if _soak_seed is None else range(_soak_seed, _soak_seed + soak)


def sample(everything: Sequence[T], count: int, offset: int = 0) -> Sequence[T]:
    """About `count` of them, evenly spread, and all of them in a soak. Tests that share a list differ in their offset."""
    step = soaks(max(1, len(everything) // count), 1)
    return everything[offset % step :: step]
