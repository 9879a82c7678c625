"""Strategic merge patch: what `kubectl apply`, `edit`, `taint` and every Go client send for built-in kinds.

Maps are merged, lists are replaced unless the shape says that their items are merged; `$patch`, `$retainKeys`,
`$setElementOrder/x` and `$deleteFromPrimitiveList/x` direct the rest. The result shares nothing with either input. A patch that
a real API server fails on with 500 (an item without its merge key) is refused as 422.
"""

from typing import Any

from applecart.embedded.patching.merge import without_nulls
from applecart.embedded.patching.strategic_lists import (
    DIRECTIVE,
    Items,
    bad_order_list,
    bad_patch_type,
    delete_items,
    merge_items,
    order_items,
    unprocessable,
)
from applecart.embedded.patching.values import ABSENT, copied, json_type, refuses_deep_nesting
from applecart.embedded.refusals import bad_request
from applecart.embedded.shape import Shape

RETAIN = "$retainKeys"
ORDER = "$setElementOrder"
DELETE = "$deleteFromPrimitiveList"


@refuses_deep_nesting
def strategic_merge(document: dict[str, Any], patch: Any, shape: Shape) -> dict[str, Any]:
    """The object after the patch."""
    if patch is None:
        return _merged(document, {}, shape)
    if type(patch) is not dict:
        raise bad_request(f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}")
    return _merged(document, patch, shape)


def _merged(original: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    if DIRECTIVE in patch:
        return _directed(patch)
    has_directives = False
    for name in patch:
        if name[:1] == "$":
            has_directives = True
            break
    if has_directives:
        return _merged_with_directives(original, patch, shape)
    return _merged_plainly(original, patch, shape)


def _merged_plainly(original: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    result = {}
    for name, value in original.items():
        if name in patch:
            change = patch[name]
            if change is None:
                continue
            value = _member(value, change, shape, name)
            if value is not ABSENT:
                result[name] = value
        else:
            result[name] = copied(value) if type(value) is dict or type(value) is list else value
    for name, change in patch.items():
        if change is not None and name not in original:
            value = without_directives(without_nulls(change))
            if value is not ABSENT:
                result[name] = value
    return result


def _member(value: Any, change: Any, shape: Shape, name: str) -> Any:
    if type(change) is dict and type(value) is dict:
        return _merged(value, change, shape.child(name))
    if type(change) is list and type(value) is list:
        child = shape.child(name)
        return merge_items(_items(child), value, change) if child.merges else copied(change)
    return without_directives(without_nulls(change))


def _items(shape: Shape) -> Items:
    element = shape.child("")
    return Items(shape.merge_key, lambda original, patch: _merged(original, patch, element))


def _directed(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {name: copied(value) for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    raise bad_patch_type(directive, patch)


def _merged_with_directives(original: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """As `_merged_plainly`, after the directives have had their say; they are no part of what is merged then."""
    patch = dict(patch)
    if RETAIN in patch:
        original = _retained(original, patch, patch.pop(RETAIN))
    deletions = {name: patch.pop(name) for name in list(patch) if name.startswith(DELETE)}
    ordered: dict[str, Any] = {}
    for directive in [name for name in patch if name.startswith(ORDER)]:
        order = patch.pop(directive)
        name = _after(directive, ORDER)
        value = _in_order(original.get(name, ABSENT), patch.pop(name, ABSENT), order, shape.child(name))
        if value is not ABSENT:
            ordered[name] = value
    result = _merged_plainly(original, patch, shape)
    result.update(ordered)
    for directive, items in deletions.items():
        name = _after(directive, DELETE)
        if items is None:
            result.pop(name, None)
        elif type(items) is list and type(result.get(name)) is list:
            result[name] = delete_items(_items(shape.child(name)), result[name], items)
    return result


def _retained(original: dict[str, Any], patch: dict[str, Any], names: Any) -> dict[str, Any]:
    """The object without members that the patch does not list; every member it sets must be listed."""
    if type(names) is not list or any(type(name) is dict or type(name) is list for name in names):
        raise bad_request("invalid patch format of retainKeys")
    for name, value in patch.items():
        if value is not None and name not in names and not name.startswith((DELETE, ORDER)):
            raise bad_request("invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in names}


def _in_order(value: Any, change: Any, order: Any, shape: Shape) -> Any:
    """A list whose items the patch also orders."""
    for one in (order, *(given for given in (value, change) if given is not ABSENT)):
        if type(one) is not list:
            raise unprocessable(f"expected a []interface {{}}, but received a {json_type(one)}")
    if value is ABSENT and change is ABSENT:
        return ABSENT
    if value in (ABSENT, []) and change in (ABSENT, []):
        raise unprocessable("no elements in any of the given slices")
    items = _items(shape)
    items.check_order(change if change is not ABSENT else [], order)
    if change is ABSENT:
        merged = copied(value)
    elif value is ABSENT:
        merged = without_directives(change)
    else:
        merged = merge_items(items, value, change) if shape.merges else copied(change)
    return order_items(items, merged, order, [] if value is ABSENT else value)


def _after(directive: str, prefix: str) -> str:
    """Which member a directive is about."""
    head, slash, name = directive.partition("/")
    if head != prefix or not slash:
        raise bad_order_list() if prefix == ORDER else bad_request("invalid patch format of primitive list")
    return name


def without_directives(value: Any) -> Any:
    """A copy of what a patch brings where there was nothing: maps and items that are mere directives vanish."""
    if type(value) is dict:
        if DIRECTIVE in value:
            return ABSENT
        cleaned = {name: without_directives(one) for name, one in value.items()}
        return {name: one for name, one in cleaned.items() if one is not ABSENT}
    if type(value) is list:
        return [one for one in map(without_directives, value) if one is not ABSENT]
    return value
