"""Label and field selectors of requests, read as the real server reads them.

Lists and watches ask a record's labels and fields; authorization asks which value a field must have. Text that is no selector
is refused with the server's own words, never taken for one that matches nothing. Parsed selectors are kept: an informer sends
the same text again with every watch.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sized

from applecart.embedded.field_errors import quoted, shown
from applecart.embedded.kinds.names import MOST_REQUIREMENTS, label_value_problems, qualified_name_problems
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.remembered import remembered

REMEMBERED = 1024  # distinct selectors; a fleet of 200 agents has a few hundred
_FIELD_TERM = re.compile(r"(!=|==|=)")
_ESCAPED = {",": "\\,", "=": "\\=", "\\": "\\\\"}
Labels = Mapping[str, str]
Holds = Callable[[Labels], bool]
_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|,|\(|\)|<|>)|([^\s=!,()<>]+))")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


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


@remembered(REMEMBERED)
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
        _refuse_many(terms)
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


def everything(labels: Labels) -> bool:
    return True


@remembered(REMEMBERED)
def label_selector(text: str) -> Holds:
    """Whether an object's labels match. Raises Refusal."""
    if not text.strip():
        return everything
    requirements = _Parser(text).requirements()
    if len(requirements) == 1:
        return requirements[0]
    return lambda labels: all(holds(labels) for holds in requirements)


class _Parser:
    """A label selector, token by token; the messages name what was found and what would have been right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        while found := _TOKEN.match(text, position):
            self._tokens.append(found[1] or found[2])
            position = found.end()
        self._at = 0

    def requirements(self) -> list[Holds]:
        found: list[Holds] = []
        while True:
            token = self._peek()
            if token and token != "!" and not _is_word(token):
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            if not token:
                return found
            found.append(self._requirement())
            _refuse_many(found)
            match self._next():
                case "":
                    return found
                case ",":
                    following = self._peek()
                    if following != "!" and not _is_word(following):
                        raise bad_request(f"found '{following}', expected: identifier after ','")
                case other:
                    raise bad_request(f"found '{other}', expected: ',' or 'end of string'")

    def _requirement(self) -> Holds:
        is_absent = self._peek() == "!"
        if is_absent:
            self._next()
        key = self._next()
        if not _is_word(key):
            raise _unparsed(f"found '{key}', expected: identifier")
        if problems := qualified_name_problems(key):
            raise _unparsed(f"<nil>: Invalid value: {shown(key)}: {'; '.join(problems)}")
        if is_absent:
            return lambda labels: key not in labels
        if self._peek() in ("", ","):
            return lambda labels: key in labels
        match self._next():
            case "=" | "==":
                value = self._value(key)
                return lambda labels: labels.get(key) == value
            case "!=":
                value = self._value(key)
                return lambda labels: labels.get(key) != value
            case "in":
                values = self._values(key)
                return lambda labels: key in labels and labels[key] in values
            case "notin":
                values = self._values(key)
                return lambda labels: labels.get(key) not in values
            case (">" | "<") as operator:
                return self._compared(key, operator)
            case other:
                raise _unparsed(f"found '{other}', expected: {_OPERATORS}")

    def _compared(self, key: str, operator: str) -> Holds:
        bound = _number(self._value(key))
        if bound is None:
            text = self._tokens[self._at - 1]
            raise _unparsed(f"values[0]: Invalid value: {quoted(text)}: for 'Gt', 'Lt' operators, the value must be an integer")

        def holds(labels: Labels) -> bool:
            number = _number(labels.get(key, ""))
            return number is not None and (number > bound if operator == ">" else number < bound)

        return holds

    def _value(self, key: str) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._next()
        if not _is_word(token):
            raise _unparsed(f"found '{token}', expected: identifier")
        return _checked(key, token, 0)

    def _values(self, key: str) -> frozenset[str]:
        if (token := self._next()) != "(":
            raise _unparsed(f"found '{token}' expected: '('")
        values: list[str] = []
        is_wanted = True  # a value may follow; two commas or a bracket mean an empty one
        while True:
            token = self._next()
            if token in (",", ")"):
                if is_wanted:
                    values.append("")
                if token == ")":
                    return frozenset(values)
                is_wanted = True
            elif is_wanted and _is_word(token):
                values.append(_checked(key, token, len(values)))
                is_wanted = False
            else:
                raise _unparsed(f"found '{token}', expected: " + ("',', ')' or identifier" if is_wanted else "',' or ')'"))

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _is_word(token: str) -> bool:
    return bool(token) and token not in ("==", "!=", "=", "!", ",", "(", ")", "<", ">")


def _checked(key: str, value: str, position: int) -> str:
    if problems := label_value_problems(value):
        raise _unparsed(f"values[{position}][{key}]: Invalid value: {shown(value)}: {'; '.join(problems)}")
    return value


def _refuse_many(terms: Sized) -> None:
    if len(terms) > MOST_REQUIREMENTS:
        raise bad_request(f"a selector may have at most {MOST_REQUIREMENTS} requirements")


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else None


def _unparsed(why: str) -> Refusal:
    return bad_request(f"unable to parse requirement: {why}")
