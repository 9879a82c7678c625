"""The `x-kubernetes-validations` of a schema: compiled once, evaluated on every write.

A rule sees the value it stands at (`self`) and, in an update, what that value was (`oldSelf`); a rule that needs the old value
is not asked where there is none. Rules about what did not change are forgiven, unless they compare old and new. A rule that
cannot be compiled fails every object it is asked about: it is never skipped.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from applecart.embedded.field_errors import FieldError
from applecart.embedded.schema.cel import ABSENT, DoesNotCompile, EvaluationFailed, Expression, OutOfBudget, Sizes, sizes_of
from applecart.embedded.schema.checking import UNRELATED, old_items, same
from applecart.embedded.schema.schema_node import BadPath, SchemaNode, follow, text_of

MAX_MESSAGE_BYTES = 5 * 1024  # of what a messageExpression gives
_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_PROBLEMS = {"FieldValueRequired": "Required", "FieldValueForbidden": "Forbidden", "FieldValueDuplicate": "Duplicate"}


class Verdict(NamedTuple):
    """What one rule says of one value."""

    error: FieldError | None
    is_forgivable: bool = False  # when the value did not change; a rule that had no answer is not forgiven
    is_last: bool = False  # nothing more should be asked


PASSED = Verdict(None)


class Rule:
    """One rule at one place. `problem` and `message_problem` say why it does not compile."""

    def __init__(self, entry: dict[str, Any], node: SchemaNode, *, is_root: bool) -> None:
        self._source = text_of(entry, "rule")
        self._message = text_of(entry, "message").strip()
        self._reason = text_of(entry, "reason")
        self._is_scalar = node.type not in ("object", "array")
        self._type = node.type
        self.has_optional_old = entry.get("optionalOldSelf") is True
        self.problem = self.message_problem = ""
        self._expression = self._compiled(self._source, node, "bool", is_root)
        self._message_expression: Expression | None = None
        if self._expression and (source := text_of(entry, "messageExpression")):
            self._message_expression = self._compiled(source, node, "string", is_root)
        self._field_path = ""
        if path := text_of(entry, "fieldPath"):
            with suppress(BadPath):  # refused when it was installed
                self._field_path = follow(path, node)[0]

    @property
    def uses_old(self) -> bool:
        return self._expression is not None and self._expression.uses_old

    def _compiled(self, source: str, node: SchemaNode, answer: Any, is_root: bool) -> Expression | None:
        is_message = answer == "string"
        try:
            return Expression(source, node, answer, is_root=is_root, has_optional_old=self.has_optional_old)
        except DoesNotCompile as error:
            text = str(error)
            if is_message:
                self.message_problem = f"messageExpression {text}"
            else:
                self.problem = f"cel expression {text}" if text.startswith("must evaluate") else text
            return None

    def verdict(self, value: Any, old: Any, path: str, sizes: Sizes | None) -> Verdict:
        at = path or "<nil>"
        if self._expression is None:
            return Verdict(FieldError("Invalid", at, f"rule compile error: {self.problem}", self._type))
        if old is ABSENT and self._expression.uses_old and not self.has_optional_old:
            return PASSED
        try:
            if self._expression.evaluate(value, old, sizes):
                return PASSED
        except OutOfBudget:
            return Verdict(FieldError("Invalid", at, _BUDGET, self._type), is_last=True)
        except EvaluationFailed as error:
            return Verdict(FieldError("Invalid", at, self._failed(str(error)), self._type))
        return Verdict(self._error(value, old, path), is_forgivable=not self._expression.uses_old)

    def _failed(self, reason: str) -> str:
        named = self._message or self._source.strip()
        if reason.startswith("no such overload"):
            about = "call arguments did not match a supported operator, function or macro signature for rule"
            return f"'{reason}': {about}: {named}"
        return f"{reason} evaluating rule: {named}"

    def _error(self, value: Any, old: Any, path: str) -> FieldError:
        detail = self._said(value, old) or self._message or f"failed rule: {self._source.strip()}"
        field = ".".join(part for part in (path, self._field_path) if part) or "<nil>"
        problem: Any = _PROBLEMS.get(self._reason, "Invalid")
        return FieldError(problem, field, "" if problem == "Duplicate" else detail, value, shows_value=self._is_scalar)

    def _said(self, value: Any, old: Any) -> str:
        """What the message expression says, when it says something usable."""
        if self._message_expression is None or (
            old is ABSENT and self._message_expression.uses_old and not self.has_optional_old
        ):
            return ""
        try:
            said = self._message_expression.evaluate(value, old)
        except EvaluationFailed:
            return ""
        text = said.strip() if isinstance(said, str) else ""
        return text if len(text.encode("utf-8", "replace")) <= MAX_MESSAGE_BYTES and "\n" not in text else ""


class Rules:
    """All rules of one schema."""

    def __init__(self, root: SchemaNode) -> None:
        self._root = root
        self._rules = dict(_compiled_rules(root, is_root=True))

    def errors(self, document: Any, old: Any = UNRELATED) -> list[FieldError]:
        """What the rules refuse, and what they would refuse had it not been so before, marked as forgiven."""
        found: list[FieldError] = []
        if self._root.has_rules:
            self._visit(self._root, document, old, None, "", found)
        return found

    def _visit(
        self, node: SchemaNode, value: Any, old: Any, parent: tuple[Any, Any] | None, path: str, found: list[FieldError]
    ) -> bool:
        """False when nothing more should be asked. `parent` is the nearest pair of new and old values."""
        if value is None or not node.has_rules:
            return True
        before = ABSENT if old is UNRELATED or old is None else old
        rules = self._rules.get(node, ())
        sizes = sizes_of([value, before]) if rules else None
        for rule in rules:
            error, is_forgivable, is_last = rule.verdict(value, before, path, sizes)
            if error is not None:
                is_forgiven = is_forgivable and _is_unchanged(value, old, parent)
                found.append(replace(error, is_forgiven=True) if is_forgiven else error)
            if is_last:
                return False
        pair = parent if old is UNRELATED else (value, old)
        if type(value) is dict:
            return all(
                self._visit(child, member, before, pair, below, found)
                for child, member, before, below in _members(node, value, old, path)
            )
        if type(value) is list and node.items is not None:
            previous = old_items(node, old)
            return all(
                self._visit(node.items, item, previous(item), pair, f"{path}[{index}]", found)
                for index, item in enumerate(value)
            )
        return True


def _members(node: SchemaNode, value: dict[str, Any], old: Any, path: str) -> Iterator[tuple[SchemaNode, Any, Any, str]]:
    has_old = type(old) is dict
    for name, member in value.items():
        known = node.properties.get(name)
        below = f"{path}.{name}" if path else name
        if known is None:
            known, below = node.additional, f"{path}[{name}]"
        if known is not None and known.has_rules:
            yield known, member, old.get(name, UNRELATED) if has_old else UNRELATED, below


def _is_unchanged(value: Any, old: Any, parent: tuple[Any, Any] | None) -> bool:
    if old is not UNRELATED:
        return same(value, old)
    return parent is not None and same(*parent)


def _compiled_rules(node: SchemaNode, *, is_root: bool) -> Iterator[tuple[SchemaNode, list[Rule]]]:
    if not node.has_rules:
        return
    if node.rules:
        compiled = [Rule(entry, node, is_root=is_root) for entry in node.rules if text_of(entry, "rule").strip()]
        yield node, compiled
    for child in (*node.properties.values(), node.additional, node.items):
        if child is not None:
            yield from _compiled_rules(child, is_root=False)
