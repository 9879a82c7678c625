"""Answers without what is different at every call, so that two servers can be compared.

Replaced: uids (`uid1` is the first seen), times, ages in Tables, continue tokens, addresses, and the names that a check
registered. Revisions of objects become their order: of all revisions in one answer the smallest is `rv1`, so equality and
growth still count. The revision of a list is any number that is new enough (other writers raise it) and says only that it is
there. Keys are sorted, because the order of a JSON object means nothing; so are the causes of a refusal, which a real server
takes out of a hash map. Managed fields stay only where a check is about them. A whole object inside a message (a real server
prints what a patch made, managed fields and all) only says that one is there, and so does a line of a Go source. Three things
are left out because applecart differs in them on purpose (`accepted.py`): descriptions of columns, the dump of Go structs
behind the refusal of a Pod's change, and causes that are repeated word for word.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
MICRO_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
ADDRESS = re.compile(r"\b127\.0\.0\.1(:\d+)?\b")
AGE = re.compile(r"^(\d+[smhdy])+$")
REVISION = re.compile(r"^\d+$")
SOURCE_LINE = re.compile(r"\.go:\d+")
STRUCT_DUMP = re.compile(r"(\(allow it to be set to 1 if it was previously negative\))\n.*", re.DOTALL)
CERTIFICATE_HASH = re.compile(r"X509SHA256=[0-9a-f]{64}")
OBJECT_IN_TEXT = re.compile(r'Invalid value: "\{.*\}"(?=: )', re.DOTALL)
RECORDED_REVISION = re.compile(r"(in record \()\d+")
REVISIONS_IN_TEXT = re.compile(r"((?:resource ?version|current|requested): ?)\d+( \(\d+\))?", re.IGNORECASE)


def normalise(value: Any, aliases: Mapping[str, str], *, managed_fields: bool = False) -> Any:
    """The value with everything accidental replaced; `aliases` are texts of this run and what stands for them."""
    return _Normaliser(value, aliases, managed_fields).walk(value)


class _Normaliser:
    def __init__(self, value: Any, aliases: Mapping[str, str], managed_fields: bool) -> None:
        ranked = sorted(set(_revisions(value)), key=int)
        self._revisions = {revision: f"rv{rank}" for rank, revision in enumerate(ranked, 1)}
        # The longest first: a name may begin with another one.
        self._aliases = sorted(aliases.items(), key=lambda alias: -len(alias[0]))
        self._managed_fields = managed_fields
        self._uids: dict[str, str] = {}

    def walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self.walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        value = _with_sorted_causes(value)
        walked = {self._text(key): self._field(key, value[key]) for key in sorted(value) if self._keeps(key)}
        if _is_list(value) and "resourceVersion" in value["metadata"]:
            walked["metadata"]["resourceVersion"] = "rv of a list"
        return walked

    def _keeps(self, key: str) -> bool:
        return self._managed_fields or key != "managedFields"

    def _field(self, key: str, value: Any) -> Any:
        if key == "resourceVersion" and isinstance(value, str) and value in self._revisions:
            return self._revisions[value]
        if key == "continue" and value:
            return "a token"
        if key == "columnDefinitions" and isinstance(value, list):
            return [self.walk({name: one[name] for name in one if name != "description"}) for one in value]
        if key == "cells" and isinstance(value, list):
            return ["an age" if isinstance(cell, str) and AGE.match(cell) else self.walk(cell) for cell in value]
        if key == "managedFields" and isinstance(value, list):
            # Their order depends on whether a second passed between two writes.
            return sorted((self.walk(entry) for entry in value), key=_owner)
        if key == "fieldsV1" and isinstance(value, dict):
            return self._fields_owned(value)
        return self.walk(value)

    def _fields_owned(self, value: Any) -> Any:
        """Keys such as `k:{"uid":"..."}` hold values of their own."""
        if not isinstance(value, dict):  # in a schema, where it is the name of a field
            return value
        return {self._text(key): self._fields_owned(value[key]) for key in sorted(value)}

    def _text(self, text: str) -> str:
        for found, stand_in in self._aliases:
            text = text.replace(found, stand_in)
        text = UID.sub(lambda match: self._uids.setdefault(match[0], f"uid{len(self._uids) + 1}"), text)
        text = REVISIONS_IN_TEXT.sub(lambda match: f"{match[1]}N{' (M)' if match[2] else ''}", text)
        text = RECORDED_REVISION.sub(r"\1N", OBJECT_IN_TEXT.sub("Invalid value: an object", text))
        text = SOURCE_LINE.sub(".go:N", CERTIFICATE_HASH.sub("X509SHA256=hash", text))
        text = STRUCT_DUMP.sub(r"\1 and a dump", text)
        text = TIME.sub("a time", MICRO_TIME.sub("a time in microseconds", text))
        return ADDRESS.sub("an address", text)


def _with_sorted_causes(status: dict[str, Any]) -> dict[str, Any]:
    """A Status whose causes, and their texts in its message, have an order of their own."""
    details = status.get("details")
    if not isinstance(details, dict) or not isinstance(details.get("causes"), list):
        return status
    texts = list(dict.fromkeys(_cause(cause) for cause in details["causes"]))
    message = str(status.get("message", "")).replace(", ".join(texts), ", ".join(sorted(texts)))
    causes = {_cause(cause): cause for cause in details["causes"]}
    return {**status, "message": message, "details": {**details, "causes": [causes[text] for text in sorted(causes)]}}


def _cause(cause: dict[str, Any]) -> str:
    return f"{cause.get('field', '')}: {cause.get('message', '')}"


def _owner(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("manager", "operation", "subresource", "apiVersion"))


def _is_list(value: dict[str, Any]) -> bool:
    return ("items" in value or "rows" in value) and isinstance(value.get("metadata"), dict)


def _revisions(value: Any) -> Iterator[str]:
    """Of objects, not of lists."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _revisions(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "resourceVersion" and isinstance(inner, str) and REVISION.match(inner):
                yield inner
            elif not (key == "metadata" and _is_list(value)):
                yield from _revisions(inner)
