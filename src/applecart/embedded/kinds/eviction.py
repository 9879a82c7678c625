"""Evicting a Pod: a deletion that asks first.

Turns an Eviction into the deletion it stands for. Disruption budgets are stored but nobody keeps their status, so none holds
an eviction back.
"""

from datetime import datetime
from typing import Any

from applecart.api.meta import Resource
from applecart.embedded.kinds.conditions import with_condition
from applecart.embedded.kinds.rules import Document
from applecart.embedded.refusals import bad_request, conflict

CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}

_POD = Resource("", "v1", "Pod", "Pod")  # a real server names the kind here, not the resource
_PRECONDITIONS = (
    ("uid", "UID", "The object might have been deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "The object might have been modified"),
)


def delete_options(name: str, eviction: Document, dry_run: list[str]) -> dict[str, Any]:
    """The DeleteOptions of an eviction of the Pod of this name."""
    if ((eviction.get("metadata") or {}).get("name") or "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = dict(eviction.get("deleteOptions") or {})
    asked = options.get("dryRun") or []
    if asked and dry_run and asked != dry_run:
        shown = [f"[{' '.join(one)}]" for one in (dry_run, asked)]
        text = f"Non-matching dry-run options in request and content: {shown[0]} and {shown[1]}"
        raise bad_request(text)  # the real server's words; it answers 500
    if asked or dry_run:
        options["dryRun"] = asked or dry_run
    return options


def check_preconditions(pod: Document, options: dict[str, Any]) -> None:
    """Raises when the Pod is another one, or another revision, than the eviction is about."""
    wanted, meta = options.get("preconditions") or {}, pod["metadata"]
    for field, what, why in _PRECONDITIONS:
        expected, found = wanted.get(field), meta.get(field)
        if expected and expected != found:
            text = f"the {what} in the precondition ({expected}) does not match the {what} in record ({found}). {why}"
            raise conflict(_POD, meta["name"], text)


def mark_evicted(pod: Document, now: datetime) -> Document:
    """The Pod with the condition that says why it goes; written just before it is deleted."""
    status = pod.get("status") or {}
    return {**pod, "status": {**status, "conditions": with_condition(status.get("conditions") or [], CONDITION, now)}}
