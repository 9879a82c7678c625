"""Label selectors inside objects: which are well formed."""

from typing import Any

from applecart.embedded.field_errors import FieldError, forbidden, invalid, required
from applecart.embedded.kinds.names import label_value_problems, qualified_name_problems

OPERATOR_SAID = "not a valid selector operator"
IN_SAID = "must be specified when `operator` is 'In' or 'NotIn'"
EXISTS_SAID = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def validate_labels(labels: dict[str, str] | None, path: str, errors: list[FieldError]) -> None:
    """Keys and values of labels, wherever labels are."""
    for key, value in (labels or {}).items():
        for problem in qualified_name_problems(key):
            errors.append(invalid(path, key, problem))
        for problem in label_value_problems(value):
            errors.append(invalid(path, value, problem))


def validate_label_selector(selector: dict[str, Any] | None, path: str, errors: list[FieldError]) -> None:
    if not selector:
        return
    validate_labels(selector.get("matchLabels"), f"{path}.matchLabels", errors)
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = requirement.get("operator") or "", requirement.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{at}.values", IN_SAID))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                errors.append(forbidden(f"{at}.values", EXISTS_SAID))
        else:
            errors.append(invalid(f"{at}.operator", operator, OPERATOR_SAID))
        key = requirement.get("key") or ""
        errors += [invalid(f"{at}.key", key, problem) for problem in qualified_name_problems(key)]
        for number, value in enumerate(values):
            errors += [invalid(f"{at}.values[{number}]", value, problem) for problem in label_value_problems(value)]
