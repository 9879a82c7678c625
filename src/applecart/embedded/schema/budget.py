"""How much work one validation may be.

Schemas, patterns, rules and objects come from strangers and are held against each other where nothing can be interrupted. So
whoever works says before how much it will be; a step is about a microsecond at worst. Outside of a `budget` nothing is counted:
what was installed is served. On the event loop there is less time; what needs more is done again where there is.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

OF_AN_OBJECT = 1_000_000  # a thousand times what a usual object takes
OF_THE_LOOP = 20_000  # of one request
OF_A_DEFINITION = 3_000_000  # which compiles what its objects only use


class OverBudget(Exception):
    """The work would not end soon enough."""


class TooMuchForTheLoop(BaseException):
    """To be done elsewhere. No Exception: others' code lies between, and nobody there may answer it."""


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


_left_here: ContextVar[list[int] | None] = ContextVar("steps left on the loop", default=None)


class on_the_loop:  # a context manager of each request, cheaper than one made of a generator
    """What is done inside keeps the event loop."""

    def __enter__(self) -> None:
        self._token = _left_here.set([OF_THE_LOOP])

    def __exit__(self, *_: object) -> None:
        _left_here.reset(self._token)


def nothing_is_done_again() -> None:
    """From now on: what is to be stored would be stored twice. The rest is done here, however much it is."""
    _left_here.set(None)


def leave_the_loop_for(module: str, name: str) -> None:
    """Before what takes long once, however small the request is: an import that has not come as far as this name."""
    here = _left_here.get()
    if here is not None and not hasattr(sys.modules.get(module), name):
        here[0] = -1
        raise TooMuchForTheLoop


def spend(steps: int) -> None:
    here = _left_here.get()
    if here is not None:
        here[0] -= steps
        _refuse_spent(here)
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise OverBudget


def is_spent() -> bool:
    """For those to whom the exception did not come, because others' code lay between."""
    if (here := _left_here.get()) is not None:
        _refuse_spent(here)
    left = _left.get()
    return left is not None and left[0] < 0


def _refuse_spent(here: list[int]) -> None:
    if here[0] < 0:
        raise TooMuchForTheLoop
