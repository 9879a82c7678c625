"""Strategic merge patch: what `kubectl apply`, `edit`, `taint` and every Go client send for built-in kinds.

Maps are merged, lists are replaced unless the shape says that their items are merged: by a key for maps, by value for
primitives. `$patch`, `$retainKeys`, `$setElementOrder/x` and `$deleteFromPrimitiveList/x` direct the rest.

The order of a list is part of the contract, because clients compare lists: items of the patch keep the patch's order, items
only the object has keep theirs, and both are woven together by the object's order. Keys need not be unique (a port may be open
for two protocols): the first item with a key is merged, all of them are deleted. The result shares nothing with the patch; the
object is used up. A patch that a real API server fails on with 500 (an item without its merge key) is refused as 422. Refusals
never show an item: it may be secret.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from applecart.embedded.field_errors import go_value, json_type
from applecart.embedded.patching.merge import merged_members, without_nulls
from applecart.embedded.patching.values import ABSENT, copied, refuses_deep_nesting
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.shape import Shape

DIRECTIVE = "$patch"
SORTED_BY_INSERTION = 20  # items; beyond it the real server's sort is another one

Identity = tuple[type, Any]


@dataclass(frozen=True, slots=True)
class Items:
    """How items of one list are told apart and merged. `key` is "" for primitives."""

    key: str
    merged: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]

    def identity(self, item: Any) -> Identity:
        """What two items must share to be the same one; the type too, for 1 is not true."""
        if type(item) is dict:
            if not self.key:
                raise unprocessable("cannot merge lists without merge key for struct")
            if self.key not in item:
                raise unprocessable(f"map: {go_value(item)} does not contain declared merge key: {self.key}")
            item = item[self.key]
        elif self.key:
            raise unprocessable(f"expected a map[string]interface {{}}, but received a {json_type(item)}")
        if type(item) is dict or type(item) is list:
            raise unprocessable("lists of lists are not supported")
        return type(item), item

    def check_order(self, patch: list[Any], order: list[Any]) -> None:
        """`$setElementOrder` must list what the patch changes, in the patch's order."""
        if not patch or not order:
            return
        listed = [self.identity(item) for item in order]
        place = 0
        for item in patch:
            is_directive = type(item) is dict and DIRECTIVE in item
            if is_directive and self.key and item[DIRECTIVE] == "delete":
                continue
            if not is_directive:
                wanted = self.identity(item)
                while place < len(listed) and listed[place] != wanted:
                    place += 1
            if place == len(listed):  # also a directive may not stand behind the last listed item
                raise unprocessable("The order in patch list doesn't match $setElementOrder list")
            place += not is_directive


def merge_items(items: Items, original: list[Any], patch: list[Any]) -> list[Any]:
    if not original and not patch:
        return []
    if not _holds_maps(original, patch):
        added = dict.fromkeys(map(_primitive, patch))
        positions = _positions(map(_primitive, original))
        kept = [one for one in positions if one not in added]
        return [value for _, value in _woven(kept, list(added), positions, lambda one: one)]
    return _merge_maps(items, original, patch)


def _merge_maps(items: Items, original: list[Any], patch: list[Any]) -> list[Any]:
    deleted: set[Identity] = set()
    changes = []
    is_replaced = False
    for item in patch:
        if DIRECTIVE not in item:
            changes.append(item)
        elif item[DIRECTIVE] == "delete":
            deleted.add(items.identity(item))
        elif item[DIRECTIVE] == "replace":
            is_replaced = True
        elif item[DIRECTIVE] == "merge":
            raise unprocessable("merging lists cannot yet be specified in the patch")
        else:
            raise bad_patch_type(item[DIRECTIVE], item)
    if is_replaced:
        return [copied(item) for _, item in _grouped([(items.identity(item), item) for item in changes])]
    known = [(items.identity(item), item) for item in original]
    if deleted:
        known = [(identity, item) for identity, item in known if identity not in deleted]
    positions = _positions(identity for identity, _ in known)
    patched: dict[Identity, list[Any]] = {}
    for item in changes:
        identity = items.identity(item)
        if identity in patched:
            patched[identity][0] = items.merged(patched[identity][0], item)
        elif identity in positions:
            patched[identity] = [items.merged(known[positions[identity]][1], item)]
        else:
            patched[identity] = [copied(item)]
    kept = []
    for place, (identity, item) in enumerate(known):
        if identity not in patched:
            kept.append((identity, item))
        elif place != positions[identity]:
            patched[identity].append(item)
    kept = _grouped(kept)
    changed = [(identity, item) for identity, group in patched.items() for item in group]
    return [item for _, item in _woven(kept, changed, positions, lambda one: one[0])]


def _grouped(known: list[tuple[Identity, Any]]) -> list[tuple[Identity, Any]]:
    """Items with one key side by side, where the first of them is."""
    positions = _positions(identity for identity, _ in known)
    return known if len(positions) == len(known) else sorted(known, key=lambda one: positions[one[0]])


def delete_items(items: Items, original: list[Any], deleted: list[Any]) -> list[Any]:
    """`$deleteFromPrimitiveList`; on a list of maps it merges, as the real server does."""
    if _holds_maps(original, deleted):
        return _merge_maps(items, original, deleted)
    gone = {_primitive(item) for item in deleted}
    return [item for item in original if _primitive(item) not in gone]


def order_items(items: Items, merged: list[Any], order: list[Any], original: list[Any]) -> list[Any]:
    """`$setElementOrder`: listed items in that order, the others where the object's order puts them."""
    identity = items.identity if items.key else _primitive
    wanted = _positions(map(identity, order))
    positions = _positions(map(identity, original))
    known = [(identity(item), item) for item in merged]
    listed = sorted((one for one in known if one[0] in wanted), key=lambda one: wanted[one[0]])
    others = _by_place([one for one in known if one[0] not in wanted], positions)
    return [item for _, item in _woven(others, listed, positions, lambda one: one[0])]


def _by_place(items: list[tuple[Identity, Any]], positions: dict[Identity, int]) -> list[tuple[Identity, Any]]:
    """Items as the object had them. An item it had not goes before whatever it meets: so does the real server's sort."""
    if len(items) > SORTED_BY_INSERTION or all(identity in positions for identity, _ in items):
        return sorted(items, key=lambda one: positions.get(one[0], -1))
    result: list[tuple[Identity, Any]] = []
    for item in items:
        place = len(result)
        while place and _goes_before(item[0], result[place - 1][0], positions):
            place -= 1
        result.insert(place, item)
    return result


def _goes_before(one: Identity, other: Identity, positions: dict[Identity, int]) -> bool:
    return one not in positions or other not in positions or positions[one] < positions[other]


def _woven(
    kept: list[Any], changed: list[Any], positions: dict[Identity, int], identity: Callable[[Any], Identity]
) -> list[Any]:
    """Both lists in their own order; a kept item goes before the first changed one that the object had behind it."""
    woven = []
    waiting = 0
    for item in changed:
        place = positions.get(identity(item), -1)
        while waiting < len(kept) and 0 <= positions.get(identity(kept[waiting]), -1) < place:
            woven.append(kept[waiting])
            waiting += 1
        woven.append(item)
    return woven + kept[waiting:]


def _positions(identities: Any) -> dict[Identity, int]:
    """Where each identity comes first."""
    positions: dict[Identity, int] = {}
    for place, identity in enumerate(identities):
        positions.setdefault(identity, place)
    return positions


def _holds_maps(*lists: list[Any]) -> bool:
    """Whether items are maps; all must be of one type."""
    kinds = {type(item) for one in lists for item in one}
    if list in kinds:
        raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request", {})
    if len(kinds) > 1 or type(None) in kinds:
        raise unprocessable("list element types are not identical")
    return dict in kinds


def _primitive(item: Any) -> Identity:
    if type(item) is dict or type(item) is list:
        raise unprocessable("expected a list of primitives")
    return type(item), item


def unprocessable(text: str) -> Refusal:
    return Refusal(422, "Invalid", text)


def bad_patch_type(directive: Any, patch: dict[str, Any]) -> Refusal:
    if type(directive) is not str:
        return unprocessable(f"unknown patch type: {json_type(directive)}")
    return unprocessable(f"unknown patch type: {directive} in map: {go_value(patch)}")


RETAIN = "$retainKeys"
ORDER = "$setElementOrder"
DELETE = "$deleteFromPrimitiveList"


@refuses_deep_nesting
def strategic_merge(document: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The object after the patch."""
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
    return merged_members(original, patch, partial(_member, shape))


def _member(shape: Shape, name: str, value: Any, change: Any) -> Any:
    if type(change) is dict and type(value) is dict:
        child = shape.child(name)
        return copied(change) if child.is_replaced else _merged(value, change, child)
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
        merged = value
    elif value is ABSENT:
        merged = without_directives(change)
    else:
        merged = merge_items(items, value, change) if shape.merges else copied(change)
    return order_items(items, merged, order, [] if value is ABSENT else value)


def _after(directive: str, prefix: str) -> str:
    """Which member a directive is about."""
    head, slash, name = directive.partition("/")
    if head != prefix or not slash:
        raise bad_request(f"invalid patch format of {'setElementOrder' if prefix == ORDER else 'primitive'} list")
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
