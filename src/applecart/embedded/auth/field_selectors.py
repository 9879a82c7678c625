"""The one thing authorization asks of a field selector: which fields must have which value.

The node authorizer allows a list of Pods only when the selector narrows it to the node, so a selector that cannot be read
narrows nothing.
"""

from collections.abc import Iterator

_ESCAPED = {",": "\\,", "=": "\\=", "\\": "\\\\"}


def required_values(selector: str) -> dict[str, str]:
    """Fields that the selector requires to equal a value; empty for a selector that cannot be read."""
    found = {}
    for term in _terms(selector):
        if not term:
            continue
        parsed = _parse(term)
        if parsed is None:
            return {}
        field, is_equal, value = parsed
        if is_equal:
            found[field] = value
    return found


def is_readable(selector: str) -> bool:
    return all(not term or _parse(term) is not None for term in _terms(selector))


def written(field: str, value: str, *, is_equal: bool = True) -> str:
    """One term, escaped."""
    return f"{field}{'=' if is_equal else '!='}" + "".join(_ESCAPED.get(one, one) for one in value)


def _terms(selector: str) -> Iterator[str]:
    """Split at commas that are not escaped."""
    start, is_escaped = 0, False
    for place, sign in enumerate(selector):
        if is_escaped:
            is_escaped = False
        elif sign == "\\":
            is_escaped = True
        elif sign == ",":
            yield selector[start:place]
            start = place + 1
    yield selector[start:]


def _parse(term: str) -> tuple[str, bool, str] | None:
    for place in range(len(term)):
        for operator, is_equal in (("!=", False), ("==", True), ("=", True)):
            if term.startswith(operator, place):
                value = _unescaped(term[place + len(operator) :])
                return None if value is None else (term[:place], is_equal, value)
    return None


def _unescaped(value: str) -> str | None:
    """Without its escapes; None when a sign that needs one has none."""
    signs, plain = iter(value), []
    for sign in signs:
        if sign == "\\":
            sign = next(signs, "")
            if sign not in _ESCAPED:
                return None
        elif sign in _ESCAPED:
            return None
        plain.append(sign)
    return "".join(plain)
