"""CEL expressions of Kubernetes, compiled and run by Google's CEL library.

The library knows no fields of objects, no optional or temporal inputs and no Kubernetes functions; what is missing is added
around it: fields by `cel_syntax.py`, functions by `cel_functions.py`, inputs by binding them at the head of the expression. An
expression that cannot be run exactly is refused when it is compiled. Evaluation is bounded: the work of nested loops and the
size of values that are put together are estimated from the data before the library, which cannot be interrupted, is asked.
"""

import base64
import binascii
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from applecart.embedded.schema.budget import OverBudget, is_spent, spend
from applecart.embedded.schema.cel_functions import IN_PYTHON, OURS, STANDARD_EXTENSIONS, cel, kubernetes_functions
from applecart.embedded.schema.cel_syntax import TEMPORAL, Facts, escaped, facts_of, is_as_typed
from applecart.embedded.schema.schema_node import SchemaNode

MAX_LENGTH = 20_000  # characters of an expression; the longest of the Cluster API's has a few hundred
STEPS_TO_COMPILE = 1_000
STEPS_OF_A_CALL = 15
ABSENT: Any = object()
Sizes = tuple[int, int, int, int]  # what `sizes_of` says

_EXTENSIONS = [*STANDARD_EXTENSIONS, cel.CelExtension("kubernetes", kubernetes_functions())]
_OLD = "oldSelf"
_OLD_VALUES = "oldSelfValues"  # none or one: the library takes no optional value as input
_BIND_OPTIONAL = f"cel.bind({_OLD}, {_OLD_VALUES}.size() > 0 ? optional.of({_OLD_VALUES}[0]) : optional.none(), "
_ANSWERS = {"bool": cel.Type.BOOL, "string": cel.Type.STRING}


class DoesNotCompile(ValueError):
    """The text says why, as the real server says it."""


class EvaluationFailed(Exception):
    """An expression had no value; the text is the reason in the words of the real server's engine."""


class OutOfBudget(EvaluationFailed):
    """The data is too large for this expression."""


class Expression:
    """One compiled expression over `self` and `oldSelf`, which are values of one schema."""

    def __init__(
        self, text: str, node: SchemaNode, answer: Literal["bool", "string"], *, is_root: bool, has_optional_old: bool
    ) -> None:
        if len(text) > MAX_LENGTH:
            raise DoesNotCompile(f"the expression is longer than {MAX_LENGTH} characters")
        spend(STEPS_TO_COMPILE)
        self._convert = converter(node)
        self._has_optional_old = has_optional_old
        head = _BIND_OPTIONAL if has_optional_old else ""
        program, facts, message = _compile(text, node, head, is_root=is_root)
        wanted = _ANSWERS[answer]
        if program.return_type() != wanted:
            raise DoesNotCompile(f"must evaluate to a {answer}")
        time = _time_function(node)
        if time:  # the value itself is an instant: bound, so that every use of it is one
            names = [name for name in ("self", _OLD) if name in facts.names and not (name == _OLD and has_optional_old)]
            head += "".join(f"cel.bind({name}, {time}({name}), " for name in names)
            program, _, _ = _compile(text, SchemaNode({"type": "string"}), head, is_root=False)
        elif facts.has_unread_time:
            raise DoesNotCompile(
                "timestamps and durations below self are not supported by this server; wrap them in a rule of their own"
            )
        self._program = program
        self._facts = facts
        self._message = message
        self._node = node
        self._length = len(text)
        self.uses_old = _OLD in facts.names

    def evaluate(self, value: Any, old: Any = ABSENT, sizes: Sizes | None = None) -> Any:
        """The answer; raises EvaluationFailed when there is none. `sizes` are those of both values."""
        convert = self._convert
        data = {"self": convert(value) if convert else value}
        try:
            size, widest, longest, characters = sizes or sizes_of([value, old])
            facts = self._facts
            if facts.trusts_types and not (is_as_typed(self._node, value) and (old is ABSENT or is_as_typed(self._node, old))):
                facts = facts_of(memoryview(self._message), {}, is_root=False)
            spend(STEPS_OF_A_CALL + size + facts.steps(size, widest, max(longest, self._length), characters + self._length))
        except OverBudget:
            raise OutOfBudget from None
        if self._has_optional_old:
            data[_OLD_VALUES] = [] if old is ABSENT else [convert(old) if convert else old]
        elif self.uses_old:
            data[_OLD] = convert(old) if convert else old
        try:
            answer = self._program.eval(data=data)
            result = answer.value()
            if is_spent():  # by a function, whose exception the library takes for its answer
                raise OutOfBudget
            if result is True or result is False:
                return result
            if answer.type() == cel.Type.ERROR:
                raise EvaluationFailed(_go_reason(str(result)))
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            # The library has a bound of its own.
            if is_spent() or "Iteration budget exceeded" in str(error):
                raise OutOfBudget from None
            raise EvaluationFailed(_go_reason(str(error))) from None
        return result


def _compile(text: str, node: SchemaNode, head: str, *, is_root: bool) -> tuple[cel.Expression, Facts, bytes]:
    # A line of its own for the head, so that what the library says of the text has the right columns.
    full = f"{head}\n{text}\n{')' * head.count('cel.bind(')}" if head else text
    try:
        program = _environment(cel_type(node)).compile(full)
        serialized = program.serialize()
    except (RuntimeError, ValueError, TypeError) as error:
        raise DoesNotCompile(f"compilation failed: {_library_text(str(error), has_head=bool(head))}") from None
    old = None if _BIND_OPTIONAL in head else node
    message = bytearray(serialized)
    facts = facts_of(memoryview(message), {"self": node, _OLD: old}, is_root=is_root)
    if facts.problems:
        skipped = len(head) + 1 if head else 0
        lines = "\n".join(_pointed(text, offset - skipped, sentence) for offset, sentence in facts.problems)
        raise DoesNotCompile(f"compilation failed: {lines}")
    for name in facts.functions:
        if ours := OURS.get(bytes(name)):
            name[:] = ours
    if facts.hides_optional and any(bytes(name).decode() in IN_PYTHON for name in facts.functions):
        raise DoesNotCompile("compilation failed: this server cannot hand optional values to functions that Kubernetes adds")
    if message != serialized:
        program = _environment(cel_type(node)).deserialize(bytes(message))
    return program, facts, bytes(message)


@lru_cache(maxsize=256)
def _environment(self_type: str) -> cel.Env:
    kind = _type_named(self_type)
    variables = {"self": kind, _OLD: kind, _OLD_VALUES: cel.Type.List(kind)}
    return cel.NewEnv(variables=variables, extensions=_EXTENSIONS)


def _type_named(name: str) -> cel.Type:
    """`int`, `list:int`, `map:list:object`."""
    outer, _, inner = name.partition(":")
    if name == "object":
        return cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    if not inner:
        return getattr(cel.Type, name.upper())
    return cel.Type.List(_type_named(inner)) if outer == "list" else cel.Type.Map(cel.Type.STRING, _type_named(inner))


def cel_type(node: SchemaNode) -> str:
    """The CEL type of values of a schema, by a name of our own."""
    match node.type:
        case "integer":
            return "int"
        case "number":
            return "double"
        case "boolean":
            return "bool"
        case "string":
            return _time_function(node) or ("bytes" if node.format == "byte" else "string")
        case "array" if node.items is not None:
            return f"list:{cel_type(node.items)}"
        case "object":
            return f"map:{cel_type(node.additional)}" if node.additional is not None else "object"
    return "dyn"


def _time_function(node: SchemaNode) -> str:
    name = node.format.replace("-", "")
    if node.type != "string" or name not in TEMPORAL:
        return ""
    return "duration" if name == "duration" else "timestamp"


def converter(node: SchemaNode) -> Callable[[Any], Any] | None:
    """How a JSON value becomes what a rule sees; None where it is the same, which is nearly everywhere."""
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if node.type == "string" and node.format == "byte":
        return _decoded
    if node.type == "array" and node.items is not None:
        item = converter(node.items)
        return item and (lambda value: [item(one) for one in value] if type(value) is list else value)
    if node.type == "object" and node.additional is not None:
        member = converter(node.additional)
        return member and (lambda value: {name: member(one) for name, one in value.items()} if type(value) is dict else value)
    if node.type == "object":
        return _object_converter(node)
    return None


def _object_converter(node: SchemaNode) -> Callable[[Any], Any] | None:
    inner = {name: change for name, one in node.properties.items() if (change := converter(one))}
    renamed = {name: new for name in node.properties if (new := escaped(name)) != name}
    if not inner and not renamed:
        return None

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return value
        return {renamed.get(name, name): inner[name](one) if name in inner else one for name, one in value.items()}

    return convert


def _decoded(value: Any) -> Any:
    try:
        return base64.b64decode(value) if type(value) is str else value
    except (binascii.Error, ValueError):
        return value


def sizes_of(value: Any) -> Sizes:
    """How many values there are, members of the widest one, characters of the longest one, and characters in all."""
    size = widest = longest = characters = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        size += 1
        kind = type(one)
        if kind is str:
            characters += len(one)
            longest = max(longest, len(one))
        elif kind is dict or kind is list:
            widest = max(widest, len(one))
            waiting.extend(one.values() if kind is dict else one)
    return size, widest, longest, size + characters


def _library_text(text: str, *, has_head: bool) -> str:
    text = re.sub(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$", "", text)
    if has_head:
        text = re.sub(r"<input>:(\d+):", lambda match: f"<input>:{max(int(match[1]) - 1, 1)}:", text)
    return text


def _pointed(text: str, offset: int, sentence: str) -> str:
    """A sentence about a place in the text, with the line and a mark below it."""
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1)
    shown = text.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {sentence}\n | {shown}\n | {'.' * column}^"


def _go_reason(text: str) -> str:
    text = re.sub(r"^[A-Z_]+: ", "", text)
    if match := re.match(r"Key not found in map : \"?(.*?)\"?$", text):
        return f"no such key: {match[1]}"
    if text.startswith(("No matching overloads", "Applying SELECT")):
        return "no such overload"
    if match := re.match(r"Index error: index=(-?\d+)", text):
        return f"index out of bounds: {match[1]}"
    return {"divide by zero": "division by zero"}.get(text, text)
