"""What a Pod may want, as a whole: the order of checks is a real server's, so several problems read the same.

Expects a document whose fields have their types (decoding sees to that) and whose defaults are filled in.
"""

from typing import Any

from applecart.embedded.field_errors import FieldError, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.addresses import validate_ip
from applecart.embedded.kinds.names import label_problems, qualified_name_problems, subdomain_problems
from applecart.embedded.kinds.pod_containers import validate_containers, validate_images, validate_init_containers
from applecart.embedded.kinds.pod_scheduling import (
    validate_affinity,
    validate_gates,
    validate_spreading,
    validate_tolerations,
)
from applecart.embedded.kinds.pod_security import validate_pod_security_context
from applecart.embedded.kinds.pod_volumes import validate_volumes
from applecart.embedded.kinds.resource_names import validate_requirements
from applecart.embedded.kinds.rules import Document
from applecart.embedded.kinds.selectors import validate_labels

DEADLINE_MAX_S = 2**31 - 1
NAMESERVERS_MAX = 3
SEARCHES_MAX = 32
SEARCH_LIST_MAX_BYTES = 2048
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_OPERATING_SYSTEMS = ("linux", "windows")


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
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{at}[{MIRROR_ANNOTATION}]", mirror, text))
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
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        errors.append(not_supported("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES))
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        errors.append(not_supported("spec.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES))


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
        validate_gates(spec["schedulingGates"], errors)
    if spec.get("topologySpreadConstraints"):
        validate_spreading(spec["topologySpreadConstraints"], errors)


def _validate_identity(spec: dict[str, Any], errors: list[FieldError]) -> None:
    for name, check in (("serviceAccountName", subdomain_problems), ("nodeName", subdomain_problems)):
        value = spec.get(name)
        if value:
            errors += [invalid(f"spec.{name}", value, problem) for problem in check(value)]
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= DEADLINE_MAX_S:
        text = f"must be between 1 and {DEADLINE_MAX_S}, inclusive"
        errors.append(invalid("spec.activeDeadlineSeconds", deadline_s, text))
    for name in ("hostname", "subdomain"):
        value = spec.get(name)
        if value:
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
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        errors.append(not_supported("spec.preemptionPolicy", policy, _PREEMPTION_POLICIES))
    if spec.get("overhead"):
        validate_requirements({"limits": spec["overhead"]}, "spec.overhead", errors)
    system = spec.get("os")
    if system is not None:
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
