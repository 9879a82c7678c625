"""What a checked CEL expression does: which variables it reads, how it loops, which fields it selects, how its values grow.

The CEL library checks types only as far as it knows them, and it does not know the fields of our objects. It does give the
checked expression as bytes (the published `cel.expr.CheckedExpr` message); this module reads those and follows every selection
through the schema, so that a rule with a misspelt field is refused when a definition is installed and not when it is needed.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from math import log2
from typing import Any

from applecart.embedded.schema.schema_node import SchemaNode
from applecart.embedded.structure.protobuf import members

TEMPORAL = frozenset({"datetime", "date", "duration"})
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
# How many times as long as comparing two texts it takes the library to walk one.
_READING = dict.fromkeys(("trim", "reverse", "charAt", "size", "lowerAscii", "upperAscii", "substring", "format", "quote"), 50)
_READING |= dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "startsWith", "endsWith", "@in"), 1)
_READING |= {"isURL": 500, "url": 500}
_COMPARING = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"})
# However large their arguments are: these look at none of it. Whatever else is called walks all it is given.
_CONSTANT = frozenset(
    (
        *("_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "_[_]", "_[?_]", "_?._", "_-_", "_*_", "_/_", "_%_", "-_"),
        *("dyn", "type", "optional.of", "optional.none", "optional.ofNonZeroValue", "hasValue", "value", "or", "orValue"),
    )
)
_OPTIONAL = frozenset(("hasValue", "value", "or", "orValue", "_?._", "_[?_]", "_[_]", "_==_", "_!=_", "@in", "_?_:_"))
MOST_ROUNDS = 10_000  # the library's own bound, of all loops together
MOST_LOOPS = 4  # whatever loops deeper costs as much
VISITED_PER_STEP = 20  # parts of an expression
WALKED_PER_STEP = 10  # values of a list or map that is compared or handed over; a map takes three times as long as a list
COPIED_PER_STEP = 4  # values, of 60 bytes each
CHARACTERS_PER_STEP = 100  # that are copied
READ_PER_STEP = 10_000  # characters that are compared
MOST_DOUBLINGS = 40  # more than any budget holds
_CEL_NAMES = {"integer": "int", "number": "double", "boolean": "bool", "array": "list", "string": "string"}
_KINDS = {"integer": "scalar", "number": "scalar", "boolean": "scalar", "string": "text", "array": "list"}
_TYPES = {"integer": (int, float), "number": (int, float), "boolean": (bool,), "string": (str,), "array": (list,)}
_META = SchemaNode({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}})
_TEXT = SchemaNode({"type": "string"})

Fields = list[tuple[int, Any]]


def escaped(name: str) -> str:
    """A property as rules write it: reserved words and signs are spelt out."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[.\-/]", lambda match: _ESCAPES[match[0]], name)


@dataclass
class Work:
    """What is done in each round of the same loops."""

    parts: int = 0
    walks: int = 0  # of whole lists, maps, or what may be one
    readings: int = 0  # of whole texts; those that go character by character count as many
    copies_values: bool = False
    copies_texts: bool = False


@dataclass
class Facts:
    """What one expression does."""

    names: set[str] = field(default_factory=set)  # of variables
    copies: int = 0  # of a value beside another one in a new value: `x + x`, `[x, x]`
    text_copies: int = 0  # those of them that make a text
    joins: int = 0  # those of them that may make a longer list
    longest_written: int = 0  # of the lists and maps in the rule
    spread: int = 0  # loops that put something from outside into each element of a list
    scopes: int = 1  # in which a variable may stand for such a value
    replacements: list[int] = field(default_factory=list)  # how many times longer each `replace` makes a text; 0: data says
    work: defaultdict[tuple[int, int], Work] = field(default_factory=lambda: defaultdict(Work))  # by rounds written, loops
    trusts_types: bool = False  # of the schema, for what is done in loops
    makes_lists: bool = False  # of characters: loops over them have more rounds than the data has values
    problems: list[tuple[int, str]] = field(default_factory=list)  # offset in the text, sentence
    functions: list[memoryview] = field(default_factory=list)  # where the names of those that are called stand in the message
    hides_optional: bool = False  # in a list or map, or as a value of any type
    has_unread_time: bool = False  # a timestamp or duration reached in a way that leaves it a text

    def growth(self, size: int, characters: int) -> int:
        """How many times larger than data and expression together, which have so many values and characters, one may become."""
        doublings = self._doublings(self.copies)
        doublings += self.spread * log2(size + 1) + sum(log2(times or characters) for times in self.replacements)
        return int(2 ** min(doublings, MOST_DOUBLINGS))

    def _doublings(self, copies: int) -> float:
        # Most when each scope has as many copies as the others: then all multiply.
        return self.scopes * log2(1 + copies / self.scopes)

    def steps(self, size: int, widest: int, longest: int, characters: int) -> int:
        """What all rounds come to, over so many values and characters; `widest` is a list or map, `longest` a text."""
        growth = self.growth(size, characters)
        width = max(widest, self.longest_written, characters * growth if self.makes_lists else 0)
        width = int(width * 2 ** min(self._doublings(self.joins), MOST_DOUBLINGS))
        doublings = self._doublings(self.copies - self.text_copies) + self.spread * log2(size + 1)
        values = int(size * 2 ** min(doublings, MOST_DOUBLINGS))
        total = characters * growth // CHARACTERS_PER_STEP if growth > 1 else 0
        for (written, loops), one in self.work.items():
            rounds = min(written * width ** min(loops, MOST_LOOPS), MOST_ROUNDS)
            walked = one.walks * (values + characters * growth // (READ_PER_STEP // WALKED_PER_STEP))
            total += rounds * one.parts // VISITED_PER_STEP + rounds * walked // WALKED_PER_STEP
            total += rounds * one.readings * longest * growth // READ_PER_STEP
            if rounds > 1:
                total += rounds * one.copies_values * width // COPIED_PER_STEP
                total += rounds * one.copies_texts * characters * growth // CHARACTERS_PER_STEP
        return total


def facts_of(serialized: memoryview, scope: dict[str, SchemaNode | None], *, is_root: bool) -> Facts:
    """`scope` gives the schemas of the variables."""
    checked = _message(_last(_message(serialized), 2))
    positions = {}
    for number, entry in _message(_last(checked, 5)):
        if number == 4:
            pair = _message(entry)
            positions[_last(pair, 1, 0)] = _last(pair, 2, 0)
    types = {}
    for number, entry in checked:
        if number == 3:
            pair = _message(entry)
            types[_last(pair, 1, 0)] = _message(_last(pair, 2))
    walk = _Walk(positions, types, is_root)
    walk.visit(_message(_last(checked, 4)), scope, 0)
    return walk.facts


class _Walk:
    def __init__(self, positions: dict[int, int], types: dict[int, Fields], is_root: bool) -> None:
        self.facts = Facts()
        self._positions = positions
        self._types = types
        self._written = 1  # rounds of the loops around over lists that are written in the rule
        self._is_root = is_root
        self._own: set[str] = set()  # variables of the innermost loop

    def visit(
        self, expression: Fields, scope: dict[str, SchemaNode | None], loops: int, *, is_compared: bool = False
    ) -> SchemaNode | None:
        """The schema of an expression's value, where it is known."""
        self.facts.work[self._written, loops].parts += 1
        identity = _last(expression, 2, 0)
        node: SchemaNode | None = None
        for number, content in expression:
            if number == 4:
                name = _text(_last(_message(content), 1))
                self.facts.names.add(name)
                node = scope.get(name)
            elif number == 5:
                node = self._select(identity, _message(content), scope, loops)
                if _last(_message(content), 3, 0):
                    return None
            elif number == 6:
                node = self._call(_message(content), scope, loops)
            elif number == 7:
                elements = [_message(element) for inner, element in _message(content) if inner == 1]
                self.facts.copies += max(sum(not _last(element, 3) for element in elements) - 1, 0)
                self.facts.longest_written = max(self.facts.longest_written, len(elements))
                unwrapped = bytes(_last(_message(content), 2))  # `[?x]`
                for place, element in enumerate(elements):
                    known = self.visit(element, scope, loops)
                    self.facts.hides_optional |= self._kind(element, known) == "optional" and place not in unwrapped
            elif number == 8:
                entries = [_message(entry) for inner, entry in _message(content) if inner == 2]
                self.facts.copies += max(len(entries) - 1, 0)
                self.facts.longest_written = max(self.facts.longest_written, len(entries))
                for entry in entries:
                    for value in (_message(part) for place, part in entry if place in (3, 4)):
                        known = self.visit(value, scope, loops)
                        self.facts.hides_optional |= self._kind(value, known) == "optional" and not _last(entry, 5, 0)
            elif number == 9:
                node = self._comprehension(_message(content), scope, loops)
        self.facts.has_unread_time |= not is_compared and _is_temporal(node)
        return node

    def _select(self, identity: int, select: Fields, scope: dict[str, SchemaNode | None], loops: int) -> SchemaNode | None:
        operand = self.visit(_message(_last(select, 1)), scope, loops)
        if operand is None:
            return None
        name = _text(_last(select, 2))
        if operand.type != "object":
            if operand.type:
                kind = _CEL_NAMES[operand.type]
                self._problem(identity, f"type '{kind}' does not support field selection")
            return None
        if operand.additional is not None or operand.allows_any_member:
            return operand.additional
        for property_name, child in operand.properties.items():
            if escaped(property_name) == name:
                return _META if property_name == "metadata" and self._is_resource(operand, scope) else child
        if self._is_resource(operand, scope) and name in ("apiVersion", "kind", "metadata"):
            return _META if name == "metadata" else _TEXT
        self._problem(identity, f"undefined field '{name}'")
        return None

    def _is_resource(self, node: SchemaNode, scope: dict[str, SchemaNode | None]) -> bool:
        return node.is_embedded or (self._is_root and node in (scope.get("self"), scope.get("oldSelf")))

    def _problem(self, identity: int, sentence: str) -> None:
        self.facts.problems.append((self._positions.get(identity, 0), sentence))

    def _call(self, call: Fields, scope: dict[str, SchemaNode | None], loops: int) -> SchemaNode | None:
        name = _last(call, 2)
        self.facts.functions.append(name)
        function = _text(name)
        arguments = [_message(content) for number, content in call if number in (1, 3)]
        if function == "_+_" and _is_collected(arguments[0]):
            known, self.facts.names = self.facts.names, set()
            self.visit(arguments[1], scope, loops)
            self.facts.spread += bool(self.facts.names - self._own)
            self.facts.names |= known
            return None
        around = self.facts.work[self._written, loops]
        if function == "_+_":
            self.facts.copies += 1
        elif function == "replace":
            self.facts.replacements.append(_replacement(arguments))
        self.facts.trusts_types |= loops > 0 or self._written > 1
        is_comparison = function in ("_==_", "_!=_")
        nodes = [self.visit(one, scope, loops, is_compared=is_comparison) for one in arguments]
        around.walks += function == "@in" and not any(number == 7 for number, _ in arguments[1])
        self._count(function, [self._kind(one, node) for one, node in zip(arguments, nodes, strict=True)], around)
        if is_comparison:  # two texts of instants compare as they should; one of them and a computed instant do not
            temporal = [_is_temporal(node) for node in nodes]
            self.facts.has_unread_time |= any(temporal) and not all(temporal)
        if function == "_[_]" and nodes and nodes[0] is not None:
            return nodes[0].items if nodes[0].type == "array" else nodes[0].additional
        if function == "_?_:_" and len(nodes) == 3:
            return nodes[1]
        if function == "_+_":  # of a number and what is not known: a number
            return next((node for node in nodes if node is not None and _KINDS.get(node.type) == "scalar"), None)
        return None

    def _count(self, function: str, kinds: list[str], around: Work) -> None:
        if "optional" in kinds:
            is_mixed = (function == "_?_:_" and kinds[1] != kinds[2]) or (function == "orValue" and kinds[1] == "optional")
            self.facts.hides_optional |= is_mixed or function not in _OPTIONAL
        self.facts.makes_lists |= function in ("split", "findAll")
        is_text = "text" in kinds
        if function == "_+_" and "scalar" not in kinds:
            self.facts.text_copies += is_text
            self.facts.joins += not is_text
            around.copies_values |= not is_text
            around.copies_texts |= "list" not in kinds
        elif function in ("base64.encode", "base64.decode", "join"):
            around.copies_texts = True
        is_comparison = function in _COMPARING
        if function in _CONSTANT or function == "_+_" or (is_comparison and "scalar" in kinds[: 1 if function == "@in" else 2]):
            return
        walks = function != "size" and not {"list", "large"}.isdisjoint(kinds) and not (is_comparison and is_text)
        around.walks += walks
        if is_text or ("large" in kinds and not is_comparison):
            around.readings += _READING.get(function, 50)

    def _kind(self, expression: Fields, node: SchemaNode | None) -> str:
        """Of a value: `large` may be anything."""
        for number, content in self._types.get(_last(expression, 2, 0), ()):
            if number in (2, 11) or (number in (3, 4) and content < 5) or (number == 5 and content > 1):
                return "scalar"
            if number == 14:
                return "optional"
            if number in (3, 6):
                return "text" if number == 3 else "list"
        return "large" if node is None else _KINDS.get(node.type, "large")

    def _comprehension(self, loop: Fields, scope: dict[str, SchemaNode | None], loops: int) -> SchemaNode | None:
        self.facts.scopes += 1
        over = _message(_last(loop, 2))
        ranged = self.visit(over, scope, loops)
        start = self.visit(_message(_last(loop, 4)), scope, loops)
        inner = dict(scope)
        inner[_text(_last(loop, 1))] = ranged.items if ranged is not None and ranged.type == "array" else None
        if second := _last(loop, 8):
            inner[_text(second)] = None
        inner[_text(_last(loop, 3))] = start
        # A list that is written in the rule does not grow with the data; `cel.bind` loops over an empty one, so never.
        written = [content for number, content in over if number == 7]
        if written != [b""]:
            outside, self.facts.names = self.facts.names, set()
            outer, self._own = self._own, {_text(_last(loop, number)) for number in (1, 3, 8)}
            before, self._written = self._written, self._written * (len(_message(written[0])) if written else 1)
            for part in (5, 6):
                self.visit(_message(_last(loop, part)), inner, loops if written else loops + 1)
            self._written = before
            self.facts.names = outside | (self.facts.names - self._own)
            self._own = outer
        return self.visit(_message(_last(loop, 7)), inner, loops)


def is_as_typed(node: SchemaNode, value: Any) -> bool:
    """Whether values are what their schema says, as far as steps are counted by it: they may be of an older one."""
    if value is not None and node.type in _TYPES and type(value) not in _TYPES[node.type]:
        return False
    if type(value) is dict:
        return all((child := node.child(name)) is None or is_as_typed(child, one) for name, one in value.items())
    return type(value) is not list or node.items is None or all(is_as_typed(node.items, one) for one in value)


def _is_temporal(node: SchemaNode | None) -> bool:
    return node is not None and node.format.replace("-", "") in TEMPORAL and node.type == "string"


def _is_collected(left: Fields) -> bool:
    """Whether this is the list that `map` and `filter` make: one more element each round."""
    return _text(_last(_message(_last(left, 4)), 1)).startswith("@")


def _replacement(arguments: list[Fields]) -> int:
    """How many times longer a text may become; 0 where the data says with what it is replaced."""
    old, new = (_message(_last(one, 3)) for one in arguments[1:3])
    if not old or not new:
        return 0
    before, after = len(_last(old, 6)), len(_last(new, 6))
    return max(-(-after // before), 1) if before else after + 1


def _message(data: Any) -> Fields:
    return [(number, value) for number, _, value in members(data, "CheckedExpr")] if isinstance(data, memoryview) else []


def _last(fields: Fields, number: int, default: Any = b"") -> Any:
    found = default
    for one, content in fields:
        if one == number:
            found = content
    return found


def _text(data: Any) -> str:
    return bytes(data).decode("utf-8", "replace") if isinstance(data, memoryview) else ""
