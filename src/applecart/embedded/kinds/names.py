"""Which names, keys, values and addresses the API accepts, and the sentence for each that it does not.

Every `..._problems` answers a list of sentences, empty when the text is fine; it does not know which field it looks at. Every
`validate_...` knows the field and adds to a list of errors. The sentences are a real server's, regular expression included:
people search for them. Lengths are counted in bytes, as on the wire.
"""

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from applecart.embedded.field_errors import FieldError, forbidden, invalid, not_supported, required
from applecart.embedded.remembered import remembered

LABEL_MAX_BYTES = 63  # of one DNS label, of a label's value and of the name part of its key
SUBDOMAIN_MAX_BYTES = 253
MOST_REQUIREMENTS = 100  # of one selector: each object of a list is held against them, and nobody names so many
MOST_VALUES = 1000  # of a stored selector; a fleet of 200 nodes may be named five times
PORT_NAME_MAX_BYTES = 15
CACHED_TEXTS = 4096  # label keys and values repeat from object to object; a fleet has a few hundred

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_key = re.compile(_KEY).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_port_charset = re.compile("[-a-z0-9]+").fullmatch
_is_env_name = re.compile("[ -<>-~]+").fullmatch  # printable ASCII without "="
_has_letter = re.compile("[a-z]").search

_ENDS = "and must start and end with an alphanumeric character"
_ENV_SAID = "a valid environment variable name must consist only of printable ASCII characters other than '='"
OPERATOR_SAID = "not a valid selector operator"
IN_SAID = "must be specified when `operator` is 'In' or 'NotIn'"
NEGATIVE = "must be greater than or equal to 0"
PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_SAID = "must be between 1 and 65535, inclusive"
EXISTS_SAID = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
IP_SAID = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class NameProblems(Protocol):
    def __call__(self, name: str, /, *, is_prefix: bool) -> list[str]: ...


def _said(what: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_SAID = _said(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_SAID = _said(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_SAID = _said(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_KEY_SAID = _said(f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}", _KEY, "MyName", "my.name", "123-abc")
_VALUE_SAID = _said(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_SAID = _said(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_HEADER_SAID = _said("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")


def size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def at_most(count: int, unit: str = "characters") -> str:
    return f"must be no more than {count} {unit}"


def label_problems(text: str, is_prefix: bool = False) -> list[str]:
    """RFC 1123 label: names of namespaces, containers and volumes."""
    text = _completed(text) if is_prefix else text
    problems = [at_most(LABEL_MAX_BYTES)] if size_bytes(text) > LABEL_MAX_BYTES else []
    if not _is_label(text):
        problems.append("must not contain dots" if _is_subdomain(text) else _LABEL_SAID)
    return problems


def subdomain_problems(text: str, is_prefix: bool = False) -> list[str]:
    """RFC 1123 subdomain: names of most objects."""
    text = _completed(text) if is_prefix else text
    problems = [at_most(SUBDOMAIN_MAX_BYTES)] if size_bytes(text) > SUBDOMAIN_MAX_BYTES else []
    if not _is_subdomain(text):
        problems.append(_SUBDOMAIN_SAID)
    return problems


def label_1035_problems(text: str) -> list[str]:
    """RFC 1035 label: starts with a letter."""
    problems = [at_most(LABEL_MAX_BYTES)] if size_bytes(text) > LABEL_MAX_BYTES else []
    if not _is_label_1035(text):
        problems.append(_LABEL_1035_SAID)
    return problems


def path_segment_problems(text: str, is_prefix: bool = False) -> list[str]:
    """Anything that stays one segment of a URL: names of RBAC objects."""
    if not is_prefix and text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


def qualified_name_problems(text: str) -> list[str]:
    """A label's key, an annotation's key, a finalizer, a resource: a name with an optional DNS prefix."""
    return list(_qualified_name_problems(text))


def annotation_key_problems(text: str) -> list[str]:
    return list(_qualified_name_problems(text.lower()))


def label_value_problems(text: str) -> list[str]:
    return list(_label_value_problems(text))


def config_key_problems(text: str) -> list[str]:
    """A key of a ConfigMap or Secret: it becomes a file name."""
    problems = [at_most(SUBDOMAIN_MAX_BYTES)] if size_bytes(text) > SUBDOMAIN_MAX_BYTES else []
    if not _is_config_key(text):
        problems.append(_CONFIG_KEY_SAID)
    if text in (".", ".."):
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def env_name_problems(text: str) -> list[str]:
    if not text:
        return ["environment variable name must be non-empty"]
    return [] if _is_env_name(text) else [_ENV_SAID]


def port_name_problems(text: str) -> list[str]:
    problems = [at_most(PORT_NAME_MAX_BYTES)] if size_bytes(text) > PORT_NAME_MAX_BYTES else []
    if not _is_port_charset(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def header_name_problems(text: str) -> list[str]:
    return [] if _is_header(text) else [_HEADER_SAID]


def _completed(prefix: str) -> str:
    """A prefix may end in a dash, because more will follow."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


@remembered(CACHED_TEXTS)
def _qualified_name_problems(text: str) -> tuple[str, ...]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (f"a valid label key {_KEY_SAID} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        if size_bytes(prefix) > SUBDOMAIN_MAX_BYTES:
            problems.append(f"prefix part {at_most(SUBDOMAIN_MAX_BYTES, 'bytes')}")
        if not _is_subdomain(prefix):
            problems.append(f"prefix part {_SUBDOMAIN_SAID}")
    if not name:
        problems.append("name part must be non-empty")
    elif size_bytes(name) > LABEL_MAX_BYTES:
        problems.append(f"name part {at_most(LABEL_MAX_BYTES, 'bytes')}")
    if not _is_key(name):
        problems.append(f"name part {_KEY_SAID}")
    return tuple(problems)


@remembered(CACHED_TEXTS)
def _label_value_problems(text: str) -> tuple[str, ...]:
    problems = [at_most(LABEL_MAX_BYTES, "bytes")] if size_bytes(text) > LABEL_MAX_BYTES else []
    if not _is_value(text):
        problems.append(_VALUE_SAID)
    return tuple(problems)


def validate_name(name: str, at: str, problems_of: Callable[[str], list[str]], errors: list[FieldError]) -> None:
    """A name or key that must be there."""
    if name:
        errors += [invalid(at, name, problem) for problem in problems_of(name)]
    else:
        errors.append(required(at))


def validate_labels(labels: dict[str, str] | None, path: str, errors: list[FieldError]) -> None:
    """Keys and values of labels, wherever labels are."""
    for key, value in (labels or {}).items():
        for problem in qualified_name_problems(key):
            errors.append(invalid(path, key, problem))
        for problem in label_value_problems(value):
            errors.append(invalid(path, value, problem))


def validate_size(requirements: Sequence[dict[str, Any]], path: str, errors: list[FieldError], equalities: int = 0) -> None:
    """Of a stored selector. No limit of Kubernetes: ours, because each Pod or node is held against it on the event loop."""
    values = sum(len(one.get("values") or ()) for one in requirements)
    for size, most, what in (
        (equalities + len(requirements), MOST_REQUIREMENTS, "requirements"),
        (values, MOST_VALUES, "values"),
    ):
        if size > most:
            errors.append(FieldError("TooMany", path, f"must have at most {most} {what} in all", size))


def validate_label_selector(selector: dict[str, Any] | None, path: str, errors: list[FieldError]) -> None:
    if not selector:
        return
    requirements = selector.get("matchExpressions") or ()
    validate_size(requirements, path, errors, len(selector.get("matchLabels") or ()))
    validate_labels(selector.get("matchLabels"), f"{path}.matchLabels", errors)
    for index, requirement in enumerate(requirements):
        validate_requirement(requirement, f"{path}.matchExpressions[{index}]", errors)


def validate_requirement(
    requirement: dict[str, Any], at: str, errors: list[FieldError], *, compares: bool = False, checks_values: bool = True
) -> None:
    """One requirement of a stored selector; `compares` where operators may compare numbers."""
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{at}.values", IN_SAID))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(forbidden(f"{at}.values", EXISTS_SAID))
    elif compares and operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(f"{at}.operator", operator, OPERATOR_SAID))
    key = requirement.get("key") or ""
    errors += [invalid(f"{at}.key", key, problem) for problem in qualified_name_problems(key)]
    if checks_values:
        for index, value in enumerate(values):
            errors += [invalid(f"{at}.values[{index}]", value, problem) for problem in label_value_problems(value)]


def family_of(text: str) -> int:
    """4 or 6; 0 for text that is no address. A zone (`fe80::1%en0`) makes it none: it means something on one host only."""
    if "%" in text:
        return 0
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def validate_port(port: Any, at: str, errors: list[FieldError]) -> None:
    """A number, or the name of a port of a container."""
    if isinstance(port, str):
        errors += [invalid(at, port, problem) for problem in port_name_problems(port)]
    elif not isinstance(port, int) or not 0 < port < 65536:
        errors.append(invalid(at, port, PORT_SAID))


def validate_choice(word: Any, at: str, choices: tuple[str, ...], errors: list[FieldError]) -> None:
    if word not in choices:
        errors.append(not_supported(at, word, choices))


def validate_ip(text: str, at: str, errors: list[FieldError]) -> None:
    if family_of(text) == 0:
        errors.append(invalid(at, text, IP_SAID))
