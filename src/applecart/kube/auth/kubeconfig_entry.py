"""One named cluster, user or context of a kubeconfig: its fields, and how to speak of them.

An entry remembers its file, because relative paths in it start there and because a person must be told where to look. Every
complaint is a `BadInput` with file, entry and field (I14) and never quotes a value (I9).
"""

import base64
import binascii
import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from applecart.errors import BadInput

T = TypeVar("T")

_SPOKEN = {"str": "text; put it in quotes", "bool": "true or false", "array": "a list", "object": "a map of fields"}


class KubeconfigEntry(msgspec.Struct, frozen=True):
    """Not yet looked into: `decoded` does."""

    kind: str
    name: str
    file: Path
    fields: Any

    def __repr__(self) -> str:
        return f"KubeconfigEntry({self.place})"  # the fields hold keys and tokens

    @property
    def place(self) -> str:
        return f"{self.kind} {quoted(self.name)} in {self.file}"

    def field(self, name: str) -> str:
        return f"field {name} of {self.place}"

    def path(self, value: str) -> Path:
        """A path written in this entry."""
        return self.file.parent / value

    def decoded(self, kind: type[T]) -> T:
        """The fields as a struct."""
        fields = _without_nulls(self.fields) if isinstance(self.fields, dict) else self.fields
        try:
            return msgspec.convert(fields, kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise BadInput(_type_sentence(str(error), self)) from None

    def pem(self, field: str, path: str, data: str) -> tuple[str, str]:
        """The PEM of a field that names a file, or of its `-data` twin, which wins; and how to speak of the one used."""
        if data:
            written_in = self.field(f"{field}-data")
            try:
                content = base64.b64decode("".join(data.split()), validate=True)
            except (binascii.Error, ValueError):
                raise BadInput(f"{written_in} is not base64; encode it, or name a file in {field} instead") from None
        elif path:
            written_in = f"{self.field(field)} (file {self.path(path)})"
            try:
                content = self.path(path).read_bytes()
            except OSError as error:
                reason = error.strerror or "unreadable"
                raise BadInput(f"{written_in} cannot be read ({reason}); correct the path or its permissions") from None
            except ValueError:
                raise BadInput(f"{self.field(field)} is no path; name a file") from None
        else:
            return "", self.field(f"{field}-data")
        if not content.isascii() or b"-----BEGIN " not in content:
            raise BadInput(f"{written_in} is not PEM; it must hold a text that starts with -----BEGIN")
        return content.decode("ascii"), written_in


def quoted(name: str) -> str:
    """A name in a sentence, on one line whatever it holds."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _without_nulls(fields: dict[Any, Any]) -> dict[Any, Any]:
    """Without the fields that kubectl writes as null when they are empty."""
    return {
        name: _without_nulls(value) if name == "exec" and isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }


def _type_sentence(complaint: str, entry: KubeconfigEntry) -> str:
    """msgspec's "Expected `str`, got `int` - at `$.token`" for a person."""
    problem, _, where = complaint.partition(" - at ")
    wanted = problem.removeprefix("Expected ").partition(",")[0].strip("`").removesuffix(" | null")
    path = where.strip("`").removeprefix("$.")
    if not where.startswith("`$."):
        return f"{entry.place} must be a map of named fields; write it as kubectl does"
    if wanted in _SPOKEN:
        return f"{entry.field(path)} must be {_SPOKEN[wanted]}"
    return f"{entry.field(path)} is missing or has the wrong form; write it as kubectl does"
