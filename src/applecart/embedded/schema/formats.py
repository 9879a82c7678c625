"""The string formats that a CustomResourceDefinition can ask for, and what fits each of them.

Formats the real server does not know are ignored, on numbers as on strings. A check returns true or false and never raises.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

LONGEST = 1024  # characters: no name, address, date or number is longer, and not all checks are linear
_OF_ANY_LENGTH = ("byte", "password", "uri")
_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_SHORT_NAME = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_WORDY_DURATION = re.compile(r"(?<!\d)\d++\s*+([A-Za-zµ]++)", re.ASCII)
_DURATION_WORDS = (
    *("ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d"),
    *("day", "w", "wk", "week"),
)
_HOST_ALONE = re.compile(r"[^\W_](?:-?[^\W_]{0,62})?")
_HOST_LABEL = re.compile(r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?")
_HOST_TOP = re.compile(r"[^\W\d_]{2,63}")


def checked_format(types: tuple[str, ...], name: str) -> str:
    """The format as far as it is checked for a value of these types; "" when it is ignored."""
    if not name:
        return ""
    only = types[0] if len(types) == 1 else ""
    if only in _NUMBER_FORMATS:
        return name if name in _NUMBER_FORMATS[only] else ""
    return name if only in ("", "string") and name.replace("-", "") in CHECKS else ""


def fits_format(name: str, text: str) -> bool:
    name = name.replace("-", "")
    if name not in CHECKS:
        return True
    return (len(text) <= LONGEST or name in _OF_ANY_LENGTH) and CHECKS[name](text)


def _pattern(text: str, flags: int = 0) -> Callable[[str], bool]:
    match = re.compile(text, flags | re.ASCII).fullmatch
    return lambda value: match(value) is not None


def is_date(text: str) -> bool:
    try:
        return len(text) == 10 and text.isascii() and bool(date.fromisoformat(text))
    except ValueError:
        return False


def is_date_time(text: str) -> bool:
    day, separator, clock = text.lower().partition("t")
    match = _CLOCK.search(clock)
    if not separator or not is_date(day) or match is None:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    words = _WORDY_DURATION.findall(text)
    return bool(words) and all(any(word.startswith(unit) for unit in _DURATION_WORDS) for word in words)


def is_uri(text: str) -> bool:
    """An absolute URI or an absolute path."""
    if any(ord(character) <= 0x20 or character == "\x7f" for character in text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def is_ip(text: str, version: int) -> bool:
    try:
        return "%" not in text and ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def is_cidr(text: str) -> bool:
    _, slash, length = text.partition("/")
    try:
        return bool(slash) and length.isascii() and length.isdigit() and bool(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return False


def _is_hostname(text: str) -> bool:
    *labels, last = text.split(".")
    if not labels:
        return _HOST_ALONE.fullmatch(last) is not None
    return len(text) <= 255 and all(map(_HOST_LABEL.fullmatch, labels)) and _HOST_TOP.fullmatch(last) is not None


def _is_email(text: str) -> bool:
    try:
        address = parseaddr(text)[1]
    except RecursionError:  # comments in comments
        return False
    local, at, domain = address.rpartition("@")
    return bool(at and local and domain) and not any(character.isspace() for character in address)


def _is_base64(text: str) -> bool:
    try:
        return bool(text) and base64.b64encode(base64.b64decode(text, validate=True)) == text.encode()
    except (binascii.Error, ValueError):
        return False


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((position + 1) * (10 if digit == "X" else int(digit)) for position, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if position % 2 else 1) for position, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    known = r"4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11}"
    if not re.fullmatch(known, digits, re.ASCII):
        return False
    doubled = [int(digit) * (2 if position % 2 else 1) for position, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_HEX = r"[0-9a-f]"
_CHANNEL = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"

CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(r"[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: is_ip(text, 4),
    "ipv6": lambda text: is_ip(text, 6),
    "cidr": is_cidr,
    "mac": _pattern(
        r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}(?:(?:[0-9a-f]{2}\1){2})?[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2,3}[0-9a-f]{4}", re.I
    ),
    "uuid": _pattern(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.I),
    "uuid3": _pattern(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.I),
    "uuid4": _pattern(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.I),
    "uuid5": _pattern(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.I),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _pattern(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _pattern(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "byte": _is_base64,
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and bool(re.fullmatch(_SHORT_NAME, text)),
    "k8slongname": lambda text: len(text) <= 253 and bool(re.fullmatch(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*", text)),
}
