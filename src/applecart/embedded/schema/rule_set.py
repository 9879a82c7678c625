"""The rules of a schema that has some. The library that compiles them is large, so it is imported when the first one comes."""

from typing import Any, Protocol

from applecart.embedded.field_errors import FieldError
from applecart.embedded.schema.checking import UNRELATED
from applecart.embedded.schema.node import Node


class RuleSet(Protocol):
    def errors(self, document: Any, old: Any = UNRELATED) -> list[FieldError]:
        """What the rules refuse."""


class _NoRules:
    def errors(self, document: Any, old: Any = UNRELATED) -> list[FieldError]:
        return []


def rules_of(node: Node) -> RuleSet:
    if not node.has_rules:
        return _NoRules()
    from applecart.embedded.schema.rules import Rules

    return Rules(node)
