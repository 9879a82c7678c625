"""Where a Pod may run: tolerations, affinity, spreading and scheduling gates."""

from typing import Any

from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from applecart.embedded.kinds.selectors import EXISTS_SAID, IN_SAID, OPERATOR_SAID, validate_label_selector

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WEIGHT_SAID = "must be in the range 1-100"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SCHEDULE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def validate_tolerations(tolerations: list[dict[str, Any]], errors: list[FieldError], path: str = "spec.tolerations") -> None:
    for index, toleration in enumerate(tolerations):
        at = f"{path}[{index}]"
        key, value = toleration.get("key") or "", toleration.get("value") or ""
        operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
        if key:
            errors += [invalid(f"{at}.key", key, problem) for problem in qualified_name_problems(key)]
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{at}.operator", operator, text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{at}.effect", effect, text))
        _validate_operator(operator, value, at, errors)
        if effect and effect not in EFFECTS:
            errors.append(not_supported(f"{at}.effect", effect, EFFECTS))


def _validate_operator(operator: str, value: str, at: str, errors: list[FieldError]) -> None:
    if operator in ("Equal", ""):
        problems = label_value_problems(value)
        if problems:
            errors.append(invalid(f"{at}.operator", value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            errors.append(invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif operator in ("Lt", "Gt"):
        errors.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
    else:
        errors.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists")))


def validate_affinity(affinity: dict[str, Any], errors: list[FieldError]) -> None:
    at = "spec.affinity"
    node = affinity.get("nodeAffinity")
    if node:
        _validate_node_affinity(node, f"{at}.nodeAffinity", errors)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(name)
        if pods:
            for index, term in enumerate(pods.get(_REQUIRED) or ()):
                _validate_pod_term(term, f"{at}.{name}.{_REQUIRED}[{index}]", errors)
            for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
                here = f"{at}.{name}.{_PREFERRED}[{index}]"
                _validate_weight(weighted.get("weight") or 0, f"{here}.weight", errors)
                _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", errors)


def _validate_node_affinity(affinity: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        here = f"{at}.{_REQUIRED}.nodeSelectorTerms"
        terms = needed.get("nodeSelectorTerms") or ()
        if not terms:
            errors.append(required(here, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            validate_node_term(term, f"{here}[{index}]", errors)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{at}.{_PREFERRED}[{index}]"
        _validate_weight(preferred.get("weight") or 0, f"{here}.weight", errors)
        # Values of a preference are taken as they are: older servers let them in, so newer ones still must.
        validate_node_term(preferred.get("preference") or {}, f"{here}.preference", errors, checks_values=False)


def validate_node_term(term: dict[str, Any], at: str, errors: list[FieldError], *, checks_values: bool = True) -> None:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        _validate_node_requirement(requirement, f"{at}.matchExpressions[{index}]", errors, checks_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        _validate_field_requirement(requirement, f"{at}.matchFields[{index}]", errors)


def _validate_node_requirement(requirement: dict[str, Any], at: str, errors: list[FieldError], checks_values: bool) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{at}.values", IN_SAID))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(forbidden(f"{at}.values", EXISTS_SAID))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(f"{at}.operator", operator, OPERATOR_SAID))
    key = requirement.get("key") or ""
    errors += [invalid(f"{at}.key", key, problem) for problem in qualified_name_problems(key)]
    if checks_values:
        for index, value in enumerate(values):
            errors += [invalid(f"{at}.values[{index}]", value, problem) for problem in label_value_problems(value)]


def _validate_field_requirement(requirement: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(required(f"{at}.values", text))
    else:
        errors.append(invalid(f"{at}.operator", operator, OPERATOR_SAID))
    key = requirement.get("key") or ""
    if key != "metadata.name":
        errors.append(invalid(f"{at}.key", key, "not a valid field selector key"))
        return
    for index, value in enumerate(values):
        errors += [invalid(f"{at}.values[{index}]", value, problem) for problem in subdomain_problems(value)]


def _validate_pod_term(term: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    validate_label_selector(term.get("labelSelector"), f"{at}.labelSelector", errors)
    validate_label_selector(term.get("namespaceSelector"), f"{at}.namespaceSelector", errors)
    for name in term.get("namespaces") or ():
        errors += [invalid(f"{at}.namespace", name, problem) for problem in label_problems(name)]
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(required(f"{at}.topologyKey", "can not be empty"))
    errors += [invalid(f"{at}.topologyKey", key, problem) for problem in qualified_name_problems(key)]


def _validate_weight(weight: int, at: str, errors: list[FieldError]) -> None:
    if not 0 < weight <= 100:
        errors.append(invalid(at, weight, WEIGHT_SAID))


def validate_gates(gates: list[dict[str, Any]], errors: list[FieldError]) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        at, name = f"spec.schedulingGates[{index}]", gate.get("name") or ""
        errors += [invalid(at, name, problem) for problem in qualified_name_problems(name)]
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)


def validate_spreading(constraints: list[dict[str, Any]], errors: list[FieldError]) -> None:
    said = [(one.get("topologyKey") or "", one.get("whenUnsatisfiable") or "") for one in constraints]
    for index, constraint in enumerate(constraints):
        at = f"spec.topologySpreadConstraints[{index}]"
        key, action = said[index]
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            errors.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in _SCHEDULE_ACTIONS:
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, _SCHEDULE_ACTIONS))
        if (key, action) in said[index + 1 :]:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector", errors)
