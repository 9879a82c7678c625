"""Small documents that tests start from; every call gives a fresh one. And what the handlers make of them.

Outcomes are compared with a real server's, so that a kind's strategy is judged as it is used.
"""

import json
from collections.abc import Iterator
from typing import Any

from applecart.api.meta import Key
from applecart.embedded.kinds.builtin import builtin_kinds
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.metadata import unqualified_finalizers, validate_metadata, validate_metadata_update
from applecart.embedded.kinds.pod import PodStrategy
from applecart.embedded.kinds.pod_admission import admit_priority, admit_runtime_class
from applecart.embedded.refusals import invalid
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.types import type_of


def container(**members: Any) -> dict[str, Any]:
    return {"name": "main", "image": "ghcr.io/acme/macos:14", **members}


def pod(name: str = "runner", *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    spec.setdefault("containers", [container()])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(meta or {})}, "spec": spec}


def pod_with(**members: Any) -> dict[str, Any]:
    """A Pod whose one container has these members."""
    return pod(containers=[container(**members)])


def core(kind: str, name: str = "thing", *, meta: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **(meta or {})}, **members}


def grouped(api_version: str, kind: str, name: str = "thing", **members: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members}


def rbac(kind: str, name: str = "thing", **members: Any) -> dict[str, Any]:
    return grouped("rbac.authorization.k8s.io/v1", kind, name, **members)


UID = "11111111-2222-3333-4444-555555555555"
CREATED_AT = "2026-01-02T03:04:05Z"
ENTRIES: dict[tuple[str, str], Kind] = {(entry.resource.api_version, entry.resource.kind): entry for entry in builtin_kinds()}


class Objects:
    """Other objects a decision may read."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self._documents = documents

    def get(self, label: str, namespace: str, name: str) -> dict[str, Any] | None:
        return next((one for one in self.each(label) if one["metadata"]["name"] == name), None)

    def each(self, label: str, namespace: str | None = None) -> Iterator[dict[str, Any]]:
        for document in self._documents:
            if ENTRIES[document["apiVersion"], document["kind"]].resource.label == label:
                yield json.loads(json.dumps(document))

    def changed_at(self, label: str) -> int:
        return 0

    def revisions(self, label: str) -> dict[Key, int]:
        return {}


def entry_of(document: dict[str, Any]) -> Kind:
    return ENTRIES[document["apiVersion"], document["kind"]]


def decoded(document: dict[str, Any]) -> dict[str, Any]:
    """A document as the handlers see it: in its type's form, with defaults."""
    kind = type_of(document["apiVersion"], document["kind"])
    assert kind is not None
    obj = conform(json.loads(json.dumps(document)), kind).document
    entry_of(document).strategy.default(obj)
    return obj


def created(document: dict[str, Any], namespace: str, objects: Objects | None = None) -> dict[str, Any]:
    """The object that creating the document gives; raises the refusal otherwise."""
    entry = entry_of(document)
    obj = decoded(document)
    meta = obj["metadata"]
    if entry.resource.namespaced:
        meta["namespace"] = namespace
    meta["uid"], meta["creationTimestamp"] = UID, CREATED_AT
    meta.pop("generation", None)
    entry.strategy.prepare_create(obj)
    if entry.strategy.counts_generations:
        meta["generation"] = 1
    if isinstance(entry.strategy, PodStrategy):
        reader = objects or Objects()
        admit_runtime_class(obj, reader)
        admit_priority(obj, reader)
    errors = _metadata_errors(entry, meta) + _finalizer_errors(entry, meta, {}) + entry.strategy.validate(obj)
    if errors:
        raise invalid(entry.storage, meta.get("name") or "", errors)
    return obj


def updated(document: dict[str, Any], old: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    """The object after an update of the main endpoint or of `/status`."""
    entry = entry_of(document)
    strategy, obj = entry.strategy, decoded(document)
    meta, was = obj["metadata"], old["metadata"]
    for name in ("namespace", "uid", "creationTimestamp", "generation"):
        if name in was:
            meta[name] = was[name]
    was["resourceVersion"] = meta["resourceVersion"] = "1"
    if subresource == "status":
        strategy.prepare_status(obj, old)
        own = strategy.validate_status(obj, old)
    else:
        strategy.prepare_update(obj, old)
        if strategy.counts_generations and strategy.wanted(obj) != strategy.wanted(old):
            meta["generation"] = was["generation"] + 1
        whole = [] if strategy.validates_updates_alone else strategy.validate(obj)
        own = whole + strategy.validate_update(obj, old)
    checked = [] if subresource else _metadata_errors(entry, meta)
    errors = validate_metadata_update(meta, was) + _finalizer_errors(entry, meta, was) + checked + own
    if errors:
        raise invalid(entry.storage, meta.get("name") or "", errors)
    return obj


def _metadata_errors(entry: Kind, meta: dict[str, Any]) -> list[Any]:
    return validate_metadata(meta, namespaced=entry.resource.namespaced, name_problems=entry.strategy.name_problems)


def _finalizer_errors(entry: Kind, meta: dict[str, Any], was: dict[str, Any]) -> list[Any]:
    return [] if entry.strategy.names_finalizers_freely else unqualified_finalizers(meta, was)


def normal(document: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from run to run."""
    document = json.loads(json.dumps(document))
    meta = document["metadata"]
    for name in ("uid", "creationTimestamp", "resourceVersion", "managedFields", "namespace"):
        meta.pop(name, None)
    status = document.get("status")
    for condition in status.get("conditions") or () if isinstance(status, dict) else ():
        condition.pop("lastTransitionTime", None)
    return document
