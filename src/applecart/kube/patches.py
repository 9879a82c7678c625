"""The four ways to change an object without sending all of it.

Which one to use: `Merge` for our own kinds and for metadata; `Strategic` where Kubernetes merges lists by key (Pod and Node
status conditions); `Json` to act on one element under a `test`; `Apply` to own a set of fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class Patch(msgspec.Struct, frozen=True):
    """A body and how the server reads it."""

    body: Any

    content_type = ""
    repeatable = True  # applying it twice leaves the object as applying it once

    def encoded(self) -> bytes:
        return _encode(self.body)

    def query(self) -> tuple[tuple[str, str], ...]:
        return ()


class Merge(Patch, frozen=True):
    """RFC 7386: null removes, lists are replaced whole."""

    body: Mapping[str, Any]
    content_type = "application/merge-patch+json"


class Strategic(Patch, frozen=True):
    """Merge that joins lists by their key; built-in kinds only."""

    body: Mapping[str, Any]
    content_type = "application/strategic-merge-patch+json"


class Json(Patch, frozen=True):
    """RFC 6902 operations; a failing `test` refuses the whole patch."""

    body: Sequence[Mapping[str, Any]]
    content_type = "application/json-patch+json"
    repeatable = False


class Apply(Patch, frozen=True):
    """Server-side apply: `manager` owns the fields it sends and loses those it stops sending."""

    body: Mapping[str, Any]
    manager: str = "applecart"
    force: bool = False
    content_type = "application/apply-patch+yaml"  # JSON is YAML

    def query(self) -> tuple[tuple[str, str], ...]:
        return (("fieldManager", self.manager), ("force", "true" if self.force else "false"))
