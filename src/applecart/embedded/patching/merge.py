"""JSON merge patch (RFC 7386): members of the patch replace members of the object, null removes them.

Lists are replaced whole. As on a real API server, a null inside a value that is new to the object never becomes part of it.
The result shares nothing with the patch; the object is used up.
"""

from collections.abc import Callable
from typing import Any

from applecart.embedded.patching.values import ABSENT, copied, refuses_deep_nesting

Member = Callable[[str, Any, Any], Any]  # of a name, the object's value and the patch's; ABSENT where there is none


@refuses_deep_nesting
def merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object after the patch."""
    return merged_members(target, patch, _member)


def merged_members(target: dict[str, Any], patch: dict[str, Any], member: Member) -> dict[str, Any]:
    """An object's members and then those that are new to it. `member` says what becomes of one that the patch sets."""
    result = {}
    for name, value in target.items():
        if name in patch:
            change = patch[name]
            if change is None:
                continue
            value = member(name, value, change)
        if value is not ABSENT:
            result[name] = value
    for name, change in patch.items():
        if change is not None and name not in target:
            value = member(name, ABSENT, change)
            if value is not ABSENT:
                result[name] = value
    return result


def _member(name: str, value: Any, change: Any) -> Any:
    if type(value) is not dict:
        return without_nulls(change)
    return merged_members(value, change, _member) if type(change) is dict else copied(change)


def without_nulls(value: Any) -> Any:
    """A copy without null members at any depth; null items of lists stay, their position means something."""
    if type(value) is dict:
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if type(value) is list:
        return [without_nulls(one) for one in value]
    return value
