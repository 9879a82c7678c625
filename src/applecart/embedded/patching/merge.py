"""JSON merge patch (RFC 7386): members of the patch replace members of the object, null removes them.

Lists are replaced whole. As on a real API server, a null inside a value that is new to the object never becomes part of it.
The result shares nothing with the patch; the object is used up.
"""

from typing import Any

from applecart.embedded.field_errors import json_type
from applecart.embedded.patching.values import copied, refuses_deep_nesting
from applecart.embedded.refusals import bad_request


@refuses_deep_nesting
def merge(target: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The object after the patch."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if type(patch) is not dict:
        text = (
            f"error decoding patch: json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        )
        raise bad_request(text)
    return _merged(target, patch)


def _merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = {}
    for name, value in target.items():
        if name not in patch:
            result[name] = value
            continue
        change = patch[name]
        if change is None:
            continue
        if type(value) is not dict:
            result[name] = without_nulls(change)
        elif type(change) is dict:
            result[name] = _merged(value, change)
        else:
            result[name] = copied(change)
    for name, change in patch.items():
        if change is not None and name not in target:
            result[name] = without_nulls(change)
    return result


def without_nulls(value: Any) -> Any:
    """A copy without null members at any depth; null items of lists stay, their position means something."""
    if type(value) is dict:
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if type(value) is list:
        return [without_nulls(one) for one in value]
    return value
