"""Who owns which field, as far as the handlers have to know it: the manager of a request, and what an endpoint ignores."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from applecart.embedded.field_errors import FieldError, invalid, required
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.metadata import MANAGER_MAX_BYTES
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.patching.apply import apply
from applecart.embedded.patching.field_set import field
from applecart.embedded.patching.managed_fields import Writer, track_scale, track_update
from applecart.embedded.server.core import Core
from applecart.embedded.server.registry import CRD_LABEL
from applecart.embedded.server.request import ApiRequest, invalid_options
from applecart.embedded.structure.types import type_of
from applecart.embedded.structure.walk import zero_struct

SERVER = "kube-apiserver"


class FieldManager(NamedTuple):
    """Who is recorded as the owner of what a request writes."""

    name: str
    subresource: str = ""


def manager_of(request: ApiRequest, options: str, subresource: str = "", *, must_be_named: bool = False) -> FieldManager:
    """The request's field manager: named, or the program that sends it. Raises Refusal."""
    name = request.query.get("fieldManager", "")
    problems: list[FieldError] = []
    if must_be_named and not name:
        problems.append(required("fieldManager", "is required for apply patch"))
    if len(name.encode()) > MANAGER_MAX_BYTES:
        problems.append(FieldError("TooLong", "fieldManager", f"may not be more than {MANAGER_MAX_BYTES} bytes"))
    at = next((position for position, character in enumerate(name) if not character.isprintable()), None)
    if at is not None:
        problems.append(invalid("fieldManager", name, f"invalid character U+{ord(name[at]):04X} (at position {at})"))
    if problems:
        raise invalid_options(options, problems)
    program = request.headers.get("user-agent", "").partition("/")[0]
    return FieldManager(name or program.encode()[:MANAGER_MAX_BYTES].decode("utf-8", "ignore"), subresource)


def track(core: Core, kind: Kind, old: Document | None, document: Document, manager: FieldManager) -> None:
    """Record what an update or a creation took over."""
    track_update(old, document, _writer(core, kind, manager))


def track_own(core: Core, kind: Kind, old: Document | None, document: Document) -> None:
    """What the server writes unasked is its own; of definitions that is their status, once they are there."""
    says = old is not None and kind.resource.label == CRD_LABEL
    track(core, kind, old, document, FieldManager(SERVER, "status" if says else ""))


def track_definition(core: Core, kind: Kind, old: Document | None, document: Document) -> None:
    """What a write of somebody else makes the server say of a definition."""
    if kind.resource.label != CRD_LABEL:
        return
    before = (old or {}).get("status") or {"acceptedNames": {"plural": "", "kind": ""}, "conditions": []}
    before = {**before, "storedVersions": document["status"].get("storedVersions")}  # nobody's
    track(core, kind, {**document, "status": before}, document, FieldManager(SERVER, "status"))


def track_scaled(core: Core, kind: Kind, document: Document, replicas_path: str, manager: FieldManager) -> None:
    """Record who changed the wanted replicas through `/scale`."""
    path = tuple(field(name) for name in replicas_path.removeprefix(".").split("."))
    track_scale(document, path, _writer(core, kind, manager))


def applied_to(core: Core, kind: Kind, live: Document | None, applied: Any, manager: FieldManager, *, force: bool) -> Document:
    """The object after a server-side apply, with its owners. Raises Refusal."""
    return apply(live, applied, _writer(core, kind, manager), force=force)


def _writer(core: Core, kind: Kind, manager: FieldManager) -> Writer:
    blank = {} if kind.is_custom else _blank_of(kind.resource.api_version, kind.resource.kind)
    reset = reset_fields(kind, manager.subresource)
    return Writer(manager.name, kind.shape, kind.resource.api_version, core.clock.now(), manager.subresource, reset, blank)


@cache
def _blank_of(api_version: str, kind: str) -> Mapping[str, Any]:
    type = type_of(api_version, kind)
    assert type is not None, f"{kind} has no type"
    return zero_struct(type)


def reset_fields(kind: Kind, subresource: str) -> tuple[str, ...]:
    """The paths whose changes an endpoint ignores, and so does not own."""
    if not kind.strategy.has_status:
        return ()
    if subresource != "status":
        return ("status",)
    if kind.is_custom:
        return ("metadata", "spec")
    if kind.strategy.is_graceful:
        return ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")
    return ("spec",)
