"""Sets of fields of an object: who owns what, and what changed.

A set is a tree: at each place the elements that belong to it, and below which elements it goes on. A parent that belongs says
nothing of its children, and the other way round. Sets are values: no operation changes one that exists.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from applecart.embedded.patching.path_elements import BadElement, Element, order, read_element

Path = tuple[Element, ...]


class FieldSet:
    __slots__ = ("children", "members")

    def __init__(self, members: Iterable[Element] = (), children: "dict[Element, FieldSet] | None" = None) -> None:
        self.members = frozenset(members)
        self.children = {} if children is None else {name: child for name, child in children.items() if child}

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "FieldSet":
        members = set()
        below: dict[Element, list[Path]] = {}
        for path in paths:
            if len(path) == 1:
                members.add(path[0])
            elif path:
                below.setdefault(path[0], []).append(path[1:])
        return cls(members, {element: cls.of(rest) for element, rest in below.items()})

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.members == other.members and self.children == other.children

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, path: Path) -> bool:
        node: FieldSet | None = self
        for element in path[:-1]:
            node = node.children.get(element) if node else None
        return bool(path) and node is not None and path[-1] in node.members

    def __or__(self, other: "FieldSet") -> "FieldSet":
        children = dict(self.children)
        for element, child in other.children.items():
            children[element] = children[element] | child if element in children else child
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: "FieldSet") -> "FieldSet":
        shared = self.children.keys() & other.children.keys()
        children = {element: self.children[element] & other.children[element] for element in shared}
        return FieldSet(self.members & other.members, children)

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        """Without the members of the other; children of those members stay."""
        children = {
            element: child - other.children[element] if element in other.children else child
            for element, child in self.children.items()
        }
        return FieldSet(self.members - other.members, children)

    def without_subtrees(self, other: "FieldSet") -> "FieldSet":
        """Without the members of the other and everything below them."""
        children = {
            element: child.without_subtrees(other.children[element]) if element in other.children else child
            for element, child in self.children.items()
            if element not in other.members
        }
        return FieldSet(self.members - other.members, children)

    def below(self, element: Element) -> "FieldSet":
        return self.children.get(element, NOTHING)

    def paths(self) -> Iterator[Path]:
        """Each field, in the order in which messages list them: a level's own members before what is below."""
        yield from ((element,) for element in sorted(self.members, key=order))
        for element in sorted(self.children, key=order):
            for rest in self.children[element].paths():
                yield (element, *rest)

    def written(self) -> dict[str, Any]:
        """`fieldsV1`."""
        fields: dict[str, Any] = {}
        for element in sorted(self.members | self.children.keys(), key=order):
            child = self.children.get(element)
            if child is None:
                fields[element] = {}
            elif element in self.members:
                fields[element] = {".": {}, **child.written()}
            else:
                fields[element] = child.written()
        return fields


NOTHING = FieldSet()


def read_field_set(fields: Any) -> FieldSet:
    """The set of a `fieldsV1`; raises BadElement."""
    if fields is None:
        return NOTHING
    if type(fields) is not dict:
        raise BadElement(str(type(fields).__name__))
    members: set[Element] = set()
    children: dict[Element, FieldSet] = {}
    for text, below in fields.items():
        if text == ".":
            continue
        try:
            element = read_element(text)
        except BadElement as problem:
            # A newer server's kind of element: dropping it loses ownership of a field, refusing it would lose all.
            if problem.is_unknown:
                continue
            raise
        child = read_field_set(below)
        if child:
            children[element] = child
        if not child or "." in below:
            members.add(element)
    return FieldSet(members, children)
