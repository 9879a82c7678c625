"""The kind CustomResourceDefinition itself, which needs to know the other definitions and the time."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from applecart.api.meta import Resource
from applecart.clock import Clock
from applecart.embedded.kinds.kind import Kind, Subresource
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.reader import Reader
from applecart.embedded.schema.definition import FINALIZER, CrdStrategy, TakenNames, taken_names
from applecart.embedded.server.registry import CRD_LABEL
from applecart.embedded.structure.types import shape_of
from applecart.embedded.tables.built_in import table_of
from applecart.embedded.times import stamp

_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
IN_PROGRESS = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)


def definition_kind(others: Callable[[], Reader], clock: Clock) -> Kind:
    """`others` gives the reader once there is one: the store is made after its kinds."""

    def taken(definition: Document) -> TakenNames:
        group = (definition.get("spec") or {}).get("group") or ""
        return taken_names(others().each(CRD_LABEL), group, definition["metadata"].get("name") or "")

    return Kind(
        resource=DEFINITIONS,
        storage=DEFINITIONS,
        singular="customresourcedefinition",
        list_kind="CustomResourceDefinitionList",
        strategy=CrdStrategy(taken, clock.now),
        shape=shape_of(DEFINITIONS.api_version, DEFINITIONS.kind),
        table=table_of(DEFINITIONS.group, DEFINITIONS.plural),
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(Subresource("status", DEFINITIONS.kind),),
    )


def begin_leaving(definition: dict[str, Any], now: datetime) -> None:
    """What the first DELETE adds: a hold until the objects are gone, and a word on what happens."""
    metadata = definition["metadata"]
    metadata["deletionTimestamp"] = stamp(now)
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, FINALIZER]
    say_leaving(definition, "InstanceDeletionPending", _PENDING, now)


def say_leaving(definition: dict[str, Any], reason: str, message: str, now: datetime) -> None:
    """How far the removal of a definition's objects has come."""
    status = definition.setdefault("status", {})
    others = [one for one in status.get("conditions") or [] if one.get("type") != "Terminating"]
    word = {"type": "Terminating", "status": "True", "lastTransitionTime": stamp(now), "reason": reason, "message": message}
    status["conditions"] = [*others, word]
