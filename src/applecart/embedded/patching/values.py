"""JSON values as the patches handle them: copied, compared, never shared.

A patched object goes on to be changed in place, and a patch may be used again: what a patch brings is therefore copied. The
object that is patched is not, for it was read for the purpose; nobody looks at it afterwards. Nesting that Python cannot follow
is the caller's fault and is refused, not a defect.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import msgspec

from applecart.embedded.refusals import bad_request

P = ParamSpec("P")
R = TypeVar("R")


class Absent:
    """A member that is not there, which is not the same as one that is null."""


ABSENT: Final = Absent()


def copied(value: Any) -> Any:
    """A copy that shares no container with the original."""
    kind = type(value)
    if kind is dict:
        return {name: copied(one) if type(one) is dict or type(one) is list else one for name, one in value.items()}
    if kind is list:
        return [copied(one) if type(one) is dict or type(one) is list else one for one in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: numbers by value, but `true` is no number."""
    if type(one) is dict and type(other) is dict:
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and (type(one) is bool) == (type(other) is bool)


def unchanged(one: Any, other: Any) -> bool:
    """`same` for what is likely to be so and may be large: values that give the same text need not be walked."""
    return bool(one == other) and (are_same_text(one, other) or same(one, other))


def are_same_text(one: Any, other: Any) -> bool:
    try:
        return msgspec.json.encode(one) == msgspec.json.encode(other)
    except (OverflowError, ValueError):  # numbers that JSON has and the encoder has not
        return False


def refuses_deep_nesting(work: Callable[P, R]) -> Callable[P, R]:
    """Answers a document that is nested beyond what can be walked instead of failing."""

    @wraps(work)
    def guarded(*args: P.args, **named: P.kwargs) -> R:
        try:
            return work(*args, **named)
        except RecursionError:
            raise bad_request("the document is nested too deeply") from None

    return guarded
