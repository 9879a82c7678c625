"""How PodDisruptionBudgets behave: stored for those who read them; nothing here enforces one."""

import re
from typing import Any

from applecart.embedded.field_errors import FieldError, invalid, not_supported
from applecart.embedded.kinds.rules import Document, Rules
from applecart.embedded.kinds.selectors import validate_label_selector

NEGATIVE = "must be greater than or equal to 0"
PERCENT_SAID = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_is_percent = re.compile("[0-9]{1,9}%").fullmatch


class DisruptionBudgetRules(Rules):
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
