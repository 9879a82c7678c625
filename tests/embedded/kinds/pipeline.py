"""What the handlers do around the rules of a kind, as far as a document's outcome depends on it.

Tests compare this outcome with a real server's, so that the rules are judged as they are used.
"""

import json
from collections.abc import Iterator
from typing import Any

from applecart.embedded.kinds.builtin import Entry, builtin_entries
from applecart.embedded.kinds.metadata import validate_metadata, validate_metadata_update
from applecart.embedded.kinds.pod import PodRules
from applecart.embedded.kinds.pod_admission import admit_priority, admit_runtime_class
from applecart.embedded.refusals import invalid
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.types import type_of

UID = "11111111-2222-3333-4444-555555555555"
CREATED_AT = "2026-01-02T03:04:05Z"
ENTRIES: dict[tuple[str, str], Entry] = {
    (entry.resource.api_version, entry.resource.kind): entry for entry in builtin_entries()
}


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


def entry_of(document: dict[str, Any]) -> Entry:
    return ENTRIES[document["apiVersion"], document["kind"]]


def decoded(document: dict[str, Any]) -> dict[str, Any]:
    """A document as the handlers see it: in its type's form, with defaults."""
    kind = type_of(document["apiVersion"], document["kind"])
    assert kind is not None
    obj = conform(json.loads(json.dumps(document)), kind).document
    entry_of(document).rules.default(obj)
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
    entry.rules.prepare_create(obj)
    if entry.rules.counts_generations:
        meta["generation"] = 1
    if isinstance(entry.rules, PodRules):
        reader = objects or Objects()
        admit_runtime_class(obj, reader)
        admit_priority(obj, reader)
    errors = _metadata_errors(entry, meta) + entry.rules.validate(obj)
    if errors:
        raise invalid(entry.storage or entry.resource, meta.get("name") or "", errors)
    return obj


def updated(document: dict[str, Any], old: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    """The object after an update of the main endpoint or of `/status`."""
    entry = entry_of(document)
    rules, obj = entry.rules, decoded(document)
    meta, was = obj["metadata"], old["metadata"]
    for name in ("namespace", "uid", "creationTimestamp", "generation"):
        if name in was:
            meta[name] = was[name]
    was["resourceVersion"] = meta["resourceVersion"] = "1"
    if subresource == "status":
        rules.prepare_status(obj, old)
        own = rules.validate_status(obj, old)
    else:
        rules.prepare_update(obj, old)
        if rules.counts_generations and rules.wanted(obj) != rules.wanted(old):
            meta["generation"] = was["generation"] + 1
        whole = [] if rules.validates_updates_alone else rules.validate(obj)
        own = whole + rules.validate_update(obj, old)
    checked = [] if subresource else _metadata_errors(entry, meta)
    errors = validate_metadata_update(meta, was) + checked + own
    if errors:
        raise invalid(entry.storage or entry.resource, meta.get("name") or "", errors)
    return obj


def _metadata_errors(entry: Entry, meta: dict[str, Any]) -> list[Any]:
    return validate_metadata(meta, namespaced=entry.resource.namespaced, name_problems=entry.rules.validate_name)


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
