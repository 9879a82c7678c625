"""Differences from a real server that applecart accepts, each with its reason.

The list is short on purpose: a difference belongs here only when matching the real server would harm users or cost more than
anybody gains. A test holds its length.
"""

from dataclasses import dataclass

MOST = 6


@dataclass(frozen=True)
class Accepted:
    """One check whose answers may differ."""

    number: str
    why: str


ACCEPTED: tuple[Accepted, ...] = ()
