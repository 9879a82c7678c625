"""What a benchmark row is, and when its bar holds.

Absolute figures of a shared machine mean little, so a row compares ours with a peer on the same input, measured alternately in
one run. This file decides; it measures nothing.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

import msgspec


class Bar(msgspec.Struct, frozen=True):
    """The ratio ours / peer that must hold."""

    side: Literal["at least", "at most"]
    ratio: float

    def holds(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.side == "at least" else ratio <= self.ratio

    def __str__(self) -> str:
        return f"{'>=' if self.side == 'at least' else '<='} {self.ratio:g}"


class Row(msgspec.Struct, frozen=True):
    """One line of the table: the medians of both sides and what their ratio must be."""

    name: str
    bar: Bar
    ours: tuple[float, ...]
    peer: tuple[float, ...]

    def line(self) -> "Line":
        ours, peer = median(self.ours), median(self.peer)
        ratio = ours / peer if peer else float("inf")
        return Line(
            row=self.name,
            ours=significant(ours),
            peer=significant(peer),
            ratio=round(ratio, 2),
            bar=str(self.bar),
            holds=self.bar.holds(ratio),
            repetitions=len(self.ours),
        )


class Line(msgspec.Struct, frozen=True):
    """A judged row, as it is printed and written."""

    row: str
    ours: float
    peer: float
    ratio: float
    bar: str
    holds: bool
    repetitions: int


class Group(msgspec.Struct, frozen=True):
    """Rows that one measurement yields together."""

    names: tuple[str, ...]
    measure: Callable[[Callable[[str], None]], Sequence[Row]]  # takes where to say how far it is


def significant(value: float, digits: int = 4) -> float:
    """Rounded to what a noisy machine can tell."""
    return float(f"{value:.{digits}g}")
