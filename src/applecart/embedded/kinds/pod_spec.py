"""What a Pod may want, as a whole, and where it may run: tolerations, affinity, spreading, scheduling gates.

The order of checks is a real server's, so several problems read the same. Expects a document whose fields have their types
(decoding sees to that) and whose defaults are filled in.
"""

from typing import Any

from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION
from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.names import (
    OPERATOR_SAID,
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
    validate_choice,
    validate_ip,
    validate_label_selector,
    validate_labels,
    validate_requirement,
    validate_size,
)
from applecart.embedded.kinds.pod_containers import (
    validate_containers,
    validate_images,
    validate_init_containers,
    validate_pod_security_context,
)
from applecart.embedded.kinds.pod_volumes import validate_volumes
from applecart.embedded.kinds.resources import validate_requirements
from applecart.embedded.kinds.strategy import Document

DEADLINE_MAX_S = 2**31 - 1
NAMESERVERS_MAX = 3
SEARCHES_MAX = 32
SEARCH_LIST_MAX_BYTES = 2048
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_OPERATING_SYSTEMS = ("linux", "windows")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WEIGHT_SAID = "must be in the range 1-100"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SCHEDULE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def validate_pod(pod: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    spec = pod["spec"]
    _validate_annotations(pod, spec, errors)
    volumes = validate_volumes(spec["volumes"], "spec.volumes", errors) if spec.get("volumes") else set()
    validate_containers(spec, volumes, errors)
    if spec.get("initContainers"):
        validate_init_containers(spec, volumes, errors)
    _validate_policies(spec, errors)
    _validate_placement(spec, errors)
    _validate_identity(spec, errors)
    _validate_rest(spec, errors)
    _validate_tokens(spec, errors)
    validate_images(spec, errors)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def _validate_annotations(pod: Document, spec: dict[str, Any], errors: list[FieldError]) -> None:
    annotations = (pod.get("metadata") or {}).get("annotations")
    if not annotations:
        return
    at = "metadata.annotations"
    mirror = annotations.get(MIRROR_ANNOTATION)
    if mirror is not None and not spec.get("nodeName"):
        errors.append(invalid(f"{at}[{MIRROR_ANNOTATION}]", mirror, "must set spec.nodeName if mirror pod annotation is set"))
    cost = annotations.get(DELETION_COST_ANNOTATION)
    if cost is not None and not _is_int32(cost):
        errors.append(invalid(f"{at}[{DELETION_COST_ANNOTATION}]", cost, "must be a 32bit integer"))


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or (len(digits) > 1 and digits[0] == "0"):
        return False
    return -(2**31) <= int(text) < 2**31


def _validate_policies(spec: dict[str, Any], errors: list[FieldError]) -> None:
    if spec.get("hostNetwork"):
        for index, container in enumerate(spec.get("containers") or ()):
            for number, port in enumerate(container.get("ports") or ()):
                if (port.get("hostPort") or 0) != (port.get("containerPort") or 0):
                    at = f"spec.containers[{index}].ports[{number}].hostPort"
                    text = "must match `containerPort` when `hostNetwork` is true"
                    errors.append(invalid(at, port.get("hostPort") or 0, text))
    validate_choice(spec["restartPolicy"], "spec.restartPolicy", _RESTART_POLICIES, errors)
    validate_choice(spec["dnsPolicy"], "spec.dnsPolicy", _DNS_POLICIES, errors)


def _validate_placement(spec: dict[str, Any], errors: list[FieldError]) -> None:
    validate_labels(spec.get("nodeSelector"), "spec.nodeSelector", errors)
    if spec.get("securityContext"):
        validate_pod_security_context(spec["securityContext"], spec, errors)
    if spec.get("affinity"):
        validate_affinity(spec["affinity"], errors)
    if spec.get("dnsConfig") is not None or spec["dnsPolicy"] == "None":
        _validate_dns(spec, errors)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        at = f"spec.readinessGates[{index}].conditionType"
        errors += [invalid(at, kind, problem) for problem in qualified_name_problems(kind)]
    if spec.get("schedulingGates"):
        seen: set[str] = set()
        for index, gate in enumerate(spec["schedulingGates"]):
            at, name = f"spec.schedulingGates[{index}]", gate.get("name") or ""
            errors += [invalid(at, name, problem) for problem in qualified_name_problems(name)]
            if name in seen:
                errors.append(duplicate(at, name))
            seen.add(name)
    if spec.get("topologySpreadConstraints"):
        validate_spreading(spec["topologySpreadConstraints"], errors)


def _validate_identity(spec: dict[str, Any], errors: list[FieldError]) -> None:
    for name in ("serviceAccountName", "nodeName"):
        if value := spec.get(name):
            errors += [invalid(f"spec.{name}", value, problem) for problem in subdomain_problems(value)]
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= DEADLINE_MAX_S:
        errors.append(invalid("spec.activeDeadlineSeconds", deadline_s, f"must be between 1 and {DEADLINE_MAX_S}, inclusive"))
    for name in ("hostname", "subdomain"):
        if value := spec.get(name):
            errors += [invalid(f"spec.{name}", value, problem) for problem in label_problems(value)]


def _validate_rest(spec: dict[str, Any], errors: list[FieldError]) -> None:
    if spec.get("tolerations"):
        validate_tolerations(spec["tolerations"], errors)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        at = f"spec.hostAliases[{index}]"
        validate_ip(alias.get("ip") or "", f"{at}.ip", errors)
        for number, name in enumerate(alias.get("hostnames") or ()):
            errors += [invalid(f"{at}.hostnames[{number}]", name, problem) for problem in subdomain_problems(name)]
    for name in ("priorityClassName", "runtimeClassName"):
        value = spec.get(name)
        if value or (value is not None and name == "runtimeClassName"):
            errors += [invalid(f"spec.{name}", value, problem) for problem in subdomain_problems(value)]
    if (policy := spec.get("preemptionPolicy")) is not None:
        validate_choice(policy, "spec.preemptionPolicy", PREEMPTION_POLICIES, errors)
    if spec.get("overhead"):
        validate_requirements({"limits": spec["overhead"]}, "spec.overhead", errors)
    if (system := spec.get("os")) is not None:
        if not system.get("name"):
            errors.append(required("spec.os.name"))
        elif system["name"] not in _OPERATING_SYSTEMS:
            errors.append(not_supported("spec.os", system["name"], _OPERATING_SYSTEMS))


def _validate_dns(spec: dict[str, Any], errors: list[FieldError]) -> None:
    at, config = "spec.dnsConfig", spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if config is None:
            errors.append(required(at, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{at}.nameservers", text))
            return
    config = config or {}
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > NAMESERVERS_MAX:
        errors.append(invalid(f"{at}.nameservers", servers, f"must not have more than {NAMESERVERS_MAX} nameservers"))
    for index, server in enumerate(servers):
        validate_ip(server, f"{at}.nameservers[{index}]", errors)
    if len(searches) > SEARCHES_MAX:
        errors.append(invalid(f"{at}.searches", searches, f"must not have more than {SEARCHES_MAX} search paths"))
    if len(" ".join(searches)) > SEARCH_LIST_MAX_BYTES:
        text = f"must not have more than {SEARCH_LIST_MAX_BYTES} characters (including spaces) in the search list"
        errors.append(invalid(f"{at}.searches", searches, text))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{at}.options[{index}]", "must not be empty"))


def _validate_tokens(spec: dict[str, Any], errors: list[FieldError]) -> None:
    if spec.get("serviceAccountName"):
        return
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                at = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                errors.append(forbidden(at, "must not be specified when serviceAccountName is not set"))


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
        if operator in ("Equal", ""):
            if problems := label_value_problems(value):
                errors.append(invalid(f"{at}.operator", value, ";".join(problems)))
        elif operator == "Exists":
            if value:
                errors.append(invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'"))
        elif operator in ("Lt", "Gt"):
            errors.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        else:
            errors.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in EFFECTS:
            errors.append(not_supported(f"{at}.effect", effect, EFFECTS))


def validate_affinity(affinity: dict[str, Any], errors: list[FieldError]) -> None:
    at = "spec.affinity"
    if node := affinity.get("nodeAffinity"):
        _validate_node_affinity(node, f"{at}.nodeAffinity", errors)
    for name in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(name):
            for index, term in enumerate(pods.get(REQUIRED) or ()):
                _validate_pod_term(term, f"{at}.{name}.{REQUIRED}[{index}]", errors)
            for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
                here = f"{at}.{name}.{_PREFERRED}[{index}]"
                _validate_weight(weighted.get("weight") or 0, f"{here}.weight", errors)
                _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", errors)


def _validate_node_affinity(affinity: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    needed = affinity.get(REQUIRED)
    all_terms = [one.get("preference") or {} for one in affinity.get(_PREFERRED) or ()]
    all_terms += (needed or {}).get("nodeSelectorTerms") or ()
    requirements = [one for term in all_terms for name in ("matchExpressions", "matchFields") for one in term.get(name) or ()]
    validate_size(requirements, at, errors)
    if needed is not None:
        here = f"{at}.{REQUIRED}.nodeSelectorTerms"
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
        validate_requirement(requirement, f"{at}.matchExpressions[{index}]", errors, compares=True, checks_values=checks_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        _validate_field_requirement(requirement, f"{at}.matchFields[{index}]", errors)


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
        validate_choice(action, f"{at}.whenUnsatisfiable", _SCHEDULE_ACTIONS, errors)
        if (key, action) in said[index + 1 :]:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector", errors)
