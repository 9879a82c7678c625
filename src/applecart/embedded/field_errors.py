"""What is wrong with one field of an object, in the words a Kubernetes API server uses.

Users grep these texts and clients read the reasons, so both are the real server's. The value that is shown is the caller's own
input; whoever validates a Secret must leave it out (`shows_value=False`), because the text reaches logs and events.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

Problem = Literal[
    "NotFound", "Required", "Duplicate", "Invalid", "NotSupported", "Forbidden", "TooLong", "TooMany", "TypeInvalid"
]

_WORDS: dict[str, str] = {
    "NotFound": "Not found",
    "Required": "Required value",
    "Duplicate": "Duplicate value",
    "Invalid": "Invalid value",
    "NotSupported": "Unsupported value",
    "Forbidden": "Forbidden",
    "TooLong": "Too long",
    "TooMany": "Too many",
    "TypeInvalid": "Invalid value",
}
_EXPONENT = re.compile(r"(?<=[0-9])e([+-]?)([0-9]+)(?=[,}\]]|$)")
MAX_SHOWN_DEPTH = 20
_JSON_TYPES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_WITHOUT_VALUE = {"Required", "Forbidden", "TooLong"}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One problem at one place. `field` is a path such as `spec.containers[0].name`."""

    problem: Problem
    field: str
    detail: str = ""
    value: Any = None
    shows_value: bool = True
    is_forgiven: bool = False  # it was wrong before and did not change: told as a warning

    @property
    def reason(self) -> str:
        return f"FieldValue{self.problem}"

    @property
    def body(self) -> str:
        """The text without the field, as a cause carries it."""
        words = _WORDS[self.problem]
        if self.shows_value and self.problem not in _WITHOUT_VALUE:
            words = f"{words}: {shown(self.value)}"
        return f"{words}: {self.detail}" if self.detail else words

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("Required", field, detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("Invalid", field, detail, value)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("Duplicate", field, value=value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError("Forbidden", field, detail)


def not_supported(field: str, value: Any, supported: tuple[str, ...]) -> FieldError:
    return FieldError("NotSupported", field, f"supported values: {', '.join(quoted(one) for one in supported)}", value)


def shown(value: Any) -> str:
    """A value inside a message: strings quoted, everything else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    return _EXPONENT.sub(_go_exponent, msgspec.json.encode(value).decode())


def _go_exponent(found: re.Match[str]) -> str:
    """The other language writes a sign and two digits: 1e+30, 1e-07."""
    return f"e{found[1] or '+'}{found[2]:0>2}"


def quoted(text: str) -> str:
    """A string in quotes; control characters escaped, so that a message stays one line."""
    return msgspec.json.encode(text).decode()


def json_type(value: Any) -> str:
    """What a decoder calls a value it cannot use."""
    return _JSON_TYPES.get(type(value), "null")


def go_value(value: Any, depth: int = 0) -> str:
    """A value as the other language prints it: `map[image:a name:b]`. What is nested deeper than anybody reads is left out."""
    if isinstance(value, list | dict) and depth > MAX_SHOWN_DEPTH:
        return "..."
    if isinstance(value, list):
        return f"[{' '.join(go_value(one, depth + 1) for one in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_value(value[name], depth + 1)}' for name in sorted(value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
