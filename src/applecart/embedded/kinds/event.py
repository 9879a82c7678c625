"""Events: one store, two views. `v1` calls it involvedObject and message, `events.k8s.io/v1` regarding and note.

Stored events have the form of `v1`. The conversions are total: nothing of an event is lost on the way to the other view.
"""

from typing import Any

from applecart.embedded.field_errors import FieldError, invalid, required
from applecart.embedded.kinds.metadata import IMMUTABLE
from applecart.embedded.kinds.names import path_segment_problems, qualified_name_problems, size_bytes, subdomain_problems
from applecart.embedded.kinds.strategy import Document, Strategy
from applecart.embedded.structure.types import struct_of
from applecart.embedded.structure.walk import zero_struct

TEXT_MAX_BYTES = 128  # of an instance, an action, a reason
NOTE_MAX_BYTES = 1024
CORE, NEW = "core/v1.Event", "events/v1.Event"  # as the published types name the two views
_TO_EVENTS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_TO_CORE = {name: core for core, name in _TO_EVENTS.items()}
_OBJECT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_MAY_CHANGE = ("apiVersion", "kind", "metadata", "series")


def as_core_event(event: Document) -> Document:
    """An event of `events.k8s.io/v1` in the form of `v1`."""
    core = {_TO_CORE.get(name, name): value for name, value in event.items()}
    core["apiVersion"] = "v1"
    return _completed(core, CORE)


def as_events_event(core: Document) -> Document:
    """An event of `v1` in the form of `events.k8s.io/v1`."""
    event = {_TO_EVENTS.get(name, name): value for name, value in core.items()}
    event["apiVersion"] = "events.k8s.io/v1"
    for name in ("reportingController", "reportingInstance", "deprecatedCount"):
        if not event.get(name):
            event.pop(name, None)
    return _completed(event, NEW)


def _completed(event: Document, struct: str) -> Document:
    """With the members that this view always shows."""
    for name, value in zero_struct(struct_of(struct)).items():
        if event.get(name) is None:
            event[name] = value
    return event


class EventStrategy(Strategy):
    """The view of `v1`."""

    creates_on_update = True
    name_problems = staticmethod(path_segment_problems)

    def default(self, obj: Document) -> None:
        _completed(obj, CORE)

    def validate(self, obj: Document) -> list[FieldError]:
        return _validate(obj, "reportingComponent")

    def fields(self, obj: Document) -> dict[str, str]:
        fields = _fields(obj, "involvedObject", "reportingComponent")
        fields["source"] = (obj.get("source") or {}).get("component") or fields["reportingComponent"]
        return fields


class NewEventStrategy(Strategy):
    """The view of `events.k8s.io/v1`: stricter, because nothing was ever written by it without these fields."""

    creates_on_update = True
    validates_updates_alone = True  # older events, which lack what a new one must have, may still change

    def default(self, obj: Document) -> None:
        _completed(obj, NEW)

    def validate(self, obj: Document) -> list[FieldError]:
        event = as_core_event(obj)
        errors = _validate(event, "reportingController") + _series_errors(event)
        if not event["eventTime"]:
            errors.append(required("eventTime"))
        if event.get("type") not in ("Normal", "Warning"):
            errors.append(invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
        for name in ("firstTimestamp", "lastTimestamp", "count"):
            if event.get(name):
                errors.append(invalid(name, "", "needs to be unset"))
        if event["source"].get("component") or event["source"].get("host"):
            errors.append(invalid("source", "", "needs to be unset"))
        return errors

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        event, was = as_core_event(obj), as_core_event(old)
        errors = _validate(event, "reportingController")
        if event.get("series") != was.get("series"):
            errors += _series_errors(event)
        for name in [name for name in struct_of(CORE).fields if name not in _MAY_CHANGE]:
            if (event.get(name) or None) != (was.get(name) or None):
                shown = "reportingController" if name == "reportingComponent" else name
                errors.append(invalid(shown, event.get(name), IMMUTABLE))
        return errors

    def fields(self, obj: Document) -> dict[str, str]:
        return _fields(obj, "regarding", "reportingController")


def _fields(obj: Document, subject: str, component: str) -> dict[str, str]:
    about = obj.get(subject) or {}
    fields = {f"{subject}.{name}": about.get(name) or "" for name in _OBJECT_FIELDS}
    fields["reason"], fields["type"] = obj.get("reason") or "", obj.get("type") or ""
    fields[component] = obj.get(component) or ""
    return fields


def _series_errors(event: Document) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors = []
    if (series.get("count") or 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


def _validate(event: Document, component_field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    namespace = event["metadata"].get("namespace") or ""
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    at = "involvedObject.namespace"
    if not event.get("eventTime"):
        fits = namespace in ("", "default") if not about else namespace == about
        if not fits:
            errors.append(invalid(at, about, "does not match event.namespace"))
    else:
        if not about and namespace not in ("default", "kube-system"):
            errors.append(invalid(at, about, "does not match event.namespace"))
        _validate_new(event, component_field, errors)
    errors += [invalid("namespace", namespace, problem) for problem in subdomain_problems(namespace)]
    return errors


def _validate_new(event: dict[str, Any], component_field: str, errors: list[FieldError]) -> None:
    component = event.get("reportingComponent") or ""
    if not component:
        errors.append(required(component_field))
    errors += [invalid(component_field, component, problem) for problem in qualified_name_problems(component)]
    for name in ("reportingInstance", "action", "reason"):
        value = event.get(name) or ""
        if not value:
            errors.append(required(name))
        if size_bytes(value) > TEXT_MAX_BYTES:
            errors.append(invalid(name, "", f"can have at most {TEXT_MAX_BYTES} characters"))
    if size_bytes(event.get("message") or "") > NOTE_MAX_BYTES:
        errors.append(invalid("message", "", f"can have at most {NOTE_MAX_BYTES} characters"))
