"""Label and field selectors as an API server reads them, on plain dicts.

Only what kube-apiserver takes: an unknown field or a selector that cannot be read is a `BadSelector`, never "matches nothing".
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Labels = Mapping[str, str]
Holds = Callable[[dict[str, Any]], bool]

_REQUIREMENT = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<missing>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)|(?P<op>==|=|!=)\s*(?P<value>[\w.-]*))?)\s*(?:,|$)"
)
FIELDS = {"pods": ("spec.nodeName", "status.phase"), "namespaces": ("status.phase",)}


class BadSelector(Exception):
    """The text is no selector, or names a field that cannot be selected by."""


def label_selector(text: str) -> Holds:
    requirements: list[Callable[[Labels], bool]] = []
    position = 0
    while position < len(text):
        found = _REQUIREMENT.match(text, position)
        if found is None or found.end() == position:
            raise BadSelector(f"unable to parse requirement: {text!r}")
        requirements.append(_requirement(found))
        position = found.end()
    return lambda obj: all(holds(obj["metadata"].get("labels", {})) for holds in requirements)


def _requirement(found: re.Match[str]) -> Callable[[Labels], bool]:
    key = found["key"] or found["missing"]
    if found["absent"]:
        return lambda labels: key not in labels
    if found["set"]:
        values = {value.strip() for value in found["values"].split(",")}
        inside = found["set"] == "in"
        return lambda labels: (key in labels and labels[key] in values) if inside else labels.get(key) not in values
    if found["op"]:
        value = found["value"]
        return lambda labels: (labels.get(key) == value) is (found["op"] != "!=")
    return lambda labels: key in labels


def field_selector(text: str, plural: str) -> Holds:
    known = ("metadata.name", "metadata.namespace", *FIELDS.get(plural, ()))
    wanted: list[tuple[str, str, bool]] = []
    for term in filter(None, text.split(",")):
        field, operator, value = re.split(r"(!=|==|=)", term, maxsplit=1) if "=" in term else (term, "", "")
        if not operator or field not in known:
            raise BadSelector(f"field label not supported: {field}")
        wanted.append((field, value, operator != "!="))
    return lambda obj: all((_field(obj, field) == value) is equal for field, value, equal in wanted)


def _field(obj: dict[str, Any], path: str) -> str:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name, {})
    return value if isinstance(value, str) else ""
