"""Reading an Accept header: its clauses, best first.

The order is that of the library the real server uses: a clause goes before another when it has a higher quality *or* names a
type where the other has a wildcard. Clauses that make no sense are left out; no header is ever an error here.
"""

import re
from functools import lru_cache
from typing import NamedTuple

MAX_HEADER = 8_192  # characters that are looked at; the longest that clients send has some hundred
SORTED_AS_UPSTREAM = 12  # clauses: up to here the other library inserts one by one, and the order depends on it
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class Clause(NamedTuple):
    """One alternative that a client takes."""

    type: str
    subtype: str
    parameters: dict[str, str]
    quality: float = 1.0

    def takes(self, media_type: str) -> bool:
        wanted = (self.type, self.subtype)
        kind, _, subtype = media_type.partition("/")
        return wanted in ((kind, subtype), (kind, "*"), ("*", "*"))


@lru_cache(maxsize=256)  # clients send the same few headers with every request
def read_accept(header: str) -> tuple[Clause, ...]:
    clauses = [clause for part in header[:MAX_HEADER].split(",") if part and (clause := _clause(part.strip(" ")))]
    if len(clauses) > SORTED_AS_UPSTREAM:
        return tuple(sorted(clauses, key=lambda one: (-one.quality, one.type == "*", one.subtype == "*")))
    for at in range(1, len(clauses)):
        while at > 0 and _goes_before(clauses[at], clauses[at - 1]):
            clauses[at], clauses[at - 1] = clauses[at - 1], clauses[at]
            at -= 1
    return tuple(clauses)


def _goes_before(one: Clause, other: Clause) -> bool:
    return (
        one.quality > other.quality or (one.type != "*" and other.type == "*") or (one.subtype != "*" and other.subtype == "*")
    )


def _clause(text: str) -> Clause | None:
    media_type, *parameters = text.split(";")
    kind, slash, subtype = media_type.partition("/")
    kind, subtype = kind.strip(" "), subtype.strip(" ")
    if not subtype:
        if kind != "*" or (slash and media_type.partition("/")[2]):
            return None
        subtype = "*"
    if "/" in subtype:
        return None
    found: dict[str, str] = {}
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if not value or "=" in value:
            continue
        if name.strip(" ") == "q":
            quality = float(value) if _NUMBER.fullmatch(value) else 0.0
        else:
            found[name.strip(" ")] = value.strip(" ")
    return Clause(kind, subtype, found, quality)
