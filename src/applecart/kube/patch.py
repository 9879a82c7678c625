"""The four ways to change an object without sending all of it, and the smallest one between two of its states.

Which one to use: `Merge` for our own kinds and for metadata; `Strategic` where Kubernetes merges lists by key (Pod and Node
status conditions); `Json` to act on one element under a `test`; `Apply` to own a set of fields.

`difference` walks the fields of the structs. It must not compare encodings: an encoding leaves out defaults, so a change from 3
to 0 would not be sent. Fields that our structs do not know are in neither state and stay as the server has them; inside a list
they do not, because a merge patch replaces lists whole. Use `Json` or `Strategic` for lists whose elements we know in part.

`save` makes at most two calls, because the API takes the status and the rest through different endpoints.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from applecart.api.meta import Object, Part

if TYPE_CHECKING:
    from applecart.kube.client import Client

P = TypeVar("P", bound=Part)
K = TypeVar("K", bound=Object)

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


def difference(old: P, new: P) -> dict[str, Any]:
    """The merge patch (RFC 7386) that makes `old` into `new`; empty when they are equal."""
    if type(old) is not type(new):
        raise TypeError(f"a {type(old).__name__} cannot become a {type(new).__name__} by a patch")
    patch: dict[str, Any] = {}
    for name, wire_name in _wire_names(type(old)):
        before, after = getattr(old, name), getattr(new, name)
        if before is not after and not _is_same(before, after):
            patch[wire_name] = _step(before, after)
    return patch


async def save(client: "Client", old: K, new: K, *, if_unchanged: bool = False) -> K:
    """Send what differs and give back the object as the API has it then; no call when nothing does.

    The rest goes before the status: a status must not speak of a finalizer, an annotation or a spec that is not stored (I2).
    The exception is an object on its way out that loses a finalizer: that may be its end, so its last status goes first (I4).
    With `if_unchanged` a change that somebody else made since `old` was read raises `Conflict` and nothing of ours is mixed
    into it.
    """
    rest = difference(old, new)
    status = {"status": rest.pop("status")} if "status" in rest else {}
    writes = [("", rest), ("status", status)]
    if old.is_being_deleted and set(old.metadata.finalizers) - set(new.metadata.finalizers):
        writes.reverse()
    current = old
    for subresource, body in writes:
        if body:
            revision = current.revision if if_unchanged else ""
            current = await client.patch(type(old), old.key, Merge(body), subresource=subresource, if_revision=revision)
    return current


@cache
def _wire_names(kind: type[Part]) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(kind))


def _is_same(before: Any, after: Any) -> bool:
    """Equal and of one type: 1, 1.0 and True are equal to Python and three things to the API."""
    return bool(before == after) and type(before) is type(after)


def _step(before: Any, after: Any) -> Any:
    if isinstance(before, Part) and isinstance(after, Part):
        return difference(before, after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        gone = {key: None for key in before if key not in after}
        fresh = {key: msgspec.to_builtins(value) for key, value in after.items() if key not in before}
        changed = {
            key: _step(before[key], value) for key, value in after.items() if key in before and not _is_same(before[key], value)
        }
        return gone | fresh | changed
    return msgspec.to_builtins(after)
