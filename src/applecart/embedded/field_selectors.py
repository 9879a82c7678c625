"""Field selectors, read as the real server reads them.

A list and a watch ask a record's fields; authorization asks which value a field must have. Text that is no selector is refused
with the server's own words.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from applecart.embedded.refusals import Refusal, bad_request

REMEMBERED = 4096  # distinct selectors; a fleet of a thousand agents has a thousand
_FIELD_TERM = re.compile(r"(!=|==|=)")
_ESCAPED = {",": "\\,", "=": "\\=", "\\": "\\\\"}


class FieldSelector:
    """Which values some fields must have, or must not."""

    def __init__(self, terms: list[tuple[str, str, bool]]) -> None:
        self.terms = terms

    def __call__(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(name, "") == value) is wants_equal for name, value, wants_equal in self.terms)

    def wanted(self, name: str) -> str | None:
        """The one value a field must have; None when it may have several."""
        return next((value for field, value, wants_equal in self.terms if field == name and wants_equal), None)

    def without(self, *names: str) -> "FieldSelector":
        """What is left when these fields have been looked at."""
        return FieldSelector([term for term in self.terms if term[0] not in names])


@lru_cache(REMEMBERED)
def parse_field_selector(text: str) -> FieldSelector:
    """The terms of a field selector, whatever fields it names. Raises Refusal."""
    terms: list[tuple[str, str, bool]] = []
    for term in _split_unescaped(text):
        if not term:
            continue
        parts = _FIELD_TERM.split(term, maxsplit=1)
        if len(parts) != 3:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        name, operator, value = parts
        value = _unescaped(value)
        if name or value:
            terms.append((name, value, operator != "!="))
    return FieldSelector(terms)


def refuse_unknown_fields(selector: FieldSelector, unsupported: Callable[[str], Refusal], known: Collection[str]) -> None:
    for name, _, _ in selector.terms:
        if name not in known:
            raise unsupported(name)


def required_values(selector: str) -> dict[str, str]:
    """Fields that the selector requires to equal a value; empty for a selector that cannot be read, which narrows nothing."""
    try:
        terms = parse_field_selector(selector).terms
    except Refusal:
        return {}
    return {name: value for name, value, wants_equal in terms if wants_equal}


def is_readable(selector: str) -> bool:
    try:
        parse_field_selector(selector)
    except Refusal:
        return False
    return True


def written(field: str, value: str, *, is_equal: bool = True) -> str:
    """One term, escaped."""
    return f"{field}{'=' if is_equal else '!='}" + "".join(_ESCAPED.get(one, one) for one in value)


def _split_unescaped(text: str) -> list[str]:
    terms, start, is_escaped = [], 0, False
    for position, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == ",":
            terms.append(text[start:position])
            start = position + 1
    return [*terms, text[start:]]


def _unescaped(value: str) -> str:
    if "\\" not in value:
        if "=" in value:
            raise bad_request(f"invalid field selector: unescaped character in value: {value}")
        return value
    result, characters = [], iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in ("\\", ",", "="):
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{following}")
            result.append(following)
        else:
            result.append(character)
    return "".join(result)
