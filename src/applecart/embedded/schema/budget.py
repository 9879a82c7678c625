"""How much work one validation may be.

Schemas, patterns, rules and objects come from strangers and are held against each other on the event loop, where nothing can be
interrupted. So whoever works says before how much it will be; a step is about a microsecond at worst. Outside of a `budget`
nothing is counted: what was installed is served.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

OF_AN_OBJECT = 1_000_000  # a thousand times what a usual object takes
OF_A_DEFINITION = 3_000_000  # which compiles what its objects only use


class OverBudget(Exception):
    """The work would not end soon enough."""


_left: ContextVar[list[int] | None] = ContextVar("steps left", default=None)


@contextmanager
def budget(steps: int) -> Iterator[list[int]]:
    """All work inside shares these steps; gives what is left of them."""
    left = [steps]
    token = _left.set(left)
    try:
        yield left
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise OverBudget


def is_spent() -> bool:
    """For those to whom the exception did not come, because others' code lay between."""
    left = _left.get()
    return left is not None and left[0] < 0
