"""Disruption: budgets of how many Pods may be missing, and eviction, the deletion that asks them first.

An eviction is counted in the budget's status when it is allowed, so that the next one finds one less even before the controller
of budgets has seen the Pod go. A Pod that runs nothing, or is going already, may be evicted whatever its budget says.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from applecart.api.meta import LabelSelector, Resource, stamp
from applecart.embedded.field_errors import FieldError, invalid
from applecart.embedded.kinds.conditions import is_true, with_condition
from applecart.embedded.kinds.names import NEGATIVE, validate_choice, validate_label_selector
from applecart.embedded.kinds.strategy import Document, Strategy
from applecart.embedded.refusals import Refusal, bad_request, forbidden

PERCENT_SAID = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
ALLOWED = "DisruptionAllowed"
RETRY_AFTER_S = 10  # until the controller has seen a budget's change
DISRUPTED_MAX = 2000  # Pods that a budget counts as evicted and that are still there
_BUDGET = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudget")  # so it is called in refusals
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_is_percent = re.compile("[0-9]{1,9}%").fullmatch
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class DisruptionBudgetStrategy(Strategy):
    has_status = True
    status_takes_metadata = True
    counts_generations = True
    updates_unconditionally = False
    names_finalizers_freely = True

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
        if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
            validate_choice(policy, "spec.unhealthyPodEvictionPolicy", _POLICIES, errors)
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


def ignores_budgets(pod: Document) -> bool:
    """Whether the Pod's end disrupts nothing: it has not begun, has ended, or is on its way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp") is not None


def charged_budget(pod: Document, budgets: Iterable[Document], now: datetime) -> Document | None:
    """The Pod's budget with one disruption less, to be written before the Pod goes; None when no budget is charged.

    Raises when the budget allows no disruption. The budgets are those of the Pod's namespace, in their newest state.
    """
    guarding = [budget for budget in budgets if _guards(budget, pod)]
    if len(guarding) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise Refusal(500, "", text)
    if not guarding:
        return None
    budget = guarding[0]
    status = budget.get("status") or {}
    if not is_true(pod, "Ready"):
        healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
        if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= desired > 0:
            return None
    _refuse_overdrawn(budget, status)
    left = status["disruptionsAllowed"] - 1
    disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: stamp(now)}
    charged: Document = {**status, "disruptionsAllowed": left, "disruptedPods": disrupted}
    if left == 0:
        seen = {"observedGeneration": status.get("observedGeneration") or 0}
        none = {"type": ALLOWED, "status": "False", **seen, "reason": "InsufficientPods", "message": ""}
        charged["conditions"] = with_condition(status.get("conditions") or [], none, now)
    return {**budget, "status": charged}


def _guards(budget: Document, pod: Document) -> bool:
    """An empty selector chooses every Pod of the namespace, none at all chooses none."""
    selector = budget["spec"].get("selector")
    return selector is not None and msgspec.convert(selector, LabelSelector).selects(pod["metadata"].get("labels") or {})


def _refuse_overdrawn(budget: Document, status: Document) -> None:
    meta = budget["metadata"]
    name, allowed = meta["name"], status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < (meta.get("generation") or 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", RETRY_AFTER_S)
    if allowed < 0:
        raise forbidden(_BUDGET, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > DISRUPTED_MAX:
        raise forbidden(_BUDGET, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many(_why_none(name, status))


def _why_none(name: str, status: Document) -> str:
    condition: Document = next((one for one in status.get("conditions") or () if one.get("type") == ALLOWED), {})
    says = (condition.get("message") or "") if condition.get("status") == "False" else ""
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    none = f"The disruption budget {name} does not allow evicting pods currently"
    if says and condition.get("reason") == "SyncFailed":  # then the counts cannot be trusted
        return f"{none} because it failed sync: {says}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return f"{none} ({condition.get('reason') or ''}): {says}" if says else none


def _too_many(cause: str, retry_after_s: int = 0) -> Refusal:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    headers = {}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
        headers["Retry-After"] = str(retry_after_s)
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return Refusal(429, "TooManyRequests", text, details, headers=headers)


def mark_evicted(pod: Document, now: datetime) -> Document:
    """The Pod with the condition that says why it goes; written just before it is deleted."""
    status = pod.get("status") or {}
    return {**pod, "status": {**status, "conditions": with_condition(status.get("conditions") or [], CONDITION, now)}}
