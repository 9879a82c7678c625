"""Disruption: budgets of how many Pods may be missing, and eviction, the deletion that asks first.

Budgets are stored but nobody keeps their status, so none holds an eviction back.
"""

import re
from datetime import datetime
from typing import Any

from applecart.api.meta import Resource
from applecart.embedded.field_errors import FieldError, invalid, not_supported
from applecart.embedded.kinds.binding import with_condition
from applecart.embedded.kinds.names import validate_label_selector
from applecart.embedded.kinds.strategy import Document, Strategy
from applecart.embedded.refusals import bad_request, conflict

NEGATIVE = "must be greater than or equal to 0"
PERCENT_SAID = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_is_percent = re.compile("[0-9]{1,9}%").fullmatch
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


class DisruptionBudgetStrategy(Strategy):
    has_status = True
    status_takes_metadata = True
    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Document) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        for name in _COUNTS:
            status.setdefault(name, 0)

    def prepare_create(self, obj: Document) -> None:
        obj["status"] = dict.fromkeys(_COUNTS, 0)

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj["spec"]
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            errors.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for name, value in (("minAvailable", least), ("maxUnavailable", most)):
            if value is not None:
                _validate_share(value, f"spec.{name}", errors)
        validate_label_selector(spec.get("selector"), "spec.selector", errors)
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
        return errors

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        status = obj.get("status") or {}
        negative = [name for name in _COUNTS if (status.get(name) or 0) < 0]
        return [invalid(f"status.{name}", status[name], NEGATIVE) for name in negative]


def _validate_share(value: Any, at: str, errors: list[FieldError]) -> None:
    if isinstance(value, str):
        if not _is_percent(value):
            errors.append(invalid(at, value, PERCENT_SAID))
        elif int(value[:-1]) > 100:
            errors.append(invalid(at, value, "must not be greater than 100%"))
    elif value < 0:
        errors.append(invalid(at, value, NEGATIVE))


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
