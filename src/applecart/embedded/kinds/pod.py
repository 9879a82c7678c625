"""How Pods behave: graceful deletion, a spec that hardly changes, a status that the node agent reports.

Beside what is refused there is advice: warnings about a Pod that is valid but hardly what its author wants.
"""

from typing import Any

from applecart.api.quantity import quantity_of
from applecart.embedded.field_errors import FieldError, quoted
from applecart.embedded.kinds.names import label_problems
from applecart.embedded.kinds.pod_admission import tolerate_lost_node
from applecart.embedded.kinds.pod_defaults import default_pod
from applecart.embedded.kinds.pod_spec import validate_pod
from applecart.embedded.kinds.pod_update import validate_pod_status, validate_pod_update
from applecart.embedded.kinds.resources import qos_class
from applecart.embedded.kinds.strategy import Document, Strategy, keep

FINISHED = ("Succeeded", "Failed")
GATED_SAID = "Scheduling is blocked due to non-empty scheduling gates"
HOSTNAME_ADVICE = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
NULL_SELECTOR = "a null labelSelector results in matching no pod"
# Labels of Nodes that newer ones replaced; a selector by an old one finds nothing on newer Nodes.
DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_BYTES = ("memory", "ephemeral-storage")


class PodStrategy(Strategy):
    is_graceful = True
    has_status = True
    status_takes_metadata = True
    counts_generations = True

    def default(self, obj: Document) -> None:
        default_pod(obj)

    def prepare_create(self, obj: Document) -> None:
        spec = obj["spec"]
        tolerate_lost_node(spec)
        status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
                    "reason": "SchedulingGated",
                    "message": GATED_SAID,
                }
            ]
        obj["status"] = status

    def prepare_update(self, obj: Document, old: Document) -> None:
        keep(obj, old, "status")
        spec, was = obj["spec"], old["spec"]
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None and was.get(name) is not None:
                spec[name] = was[name]
        tolerate_lost_node(spec)

    def prepare_status(self, obj: Document, old: Document) -> None:
        super().prepare_status(obj, old)
        # Old node agents used to lose owners here; since then nobody may change them through the status.
        keep(obj["metadata"], old["metadata"], "ownerReferences")
        status, was = obj.setdefault("status", {}), old.get("status") or {}
        if not status.get("qosClass"):
            keep(status, was, "qosClass")
        if not status.get("observedGeneration"):
            keep(status, was, "observedGeneration")
        _keep_observed(status.get("conditions") or (), was.get("conditions") or ())

    def validate(self, obj: Document) -> list[FieldError]:
        return validate_pod(obj)

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_pod_update(obj, old)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_pod_status(obj, old)

    def warnings(self, obj: Document) -> list[str]:
        spec = obj.get("spec") or {}
        problems = label_problems((obj.get("metadata") or {}).get("name") or "")
        warnings = [f"metadata.name: {HOSTNAME_ADVICE}: [{' '.join(problems)}]"] if problems else []
        for label in spec.get("nodeSelector") or ():
            if label in DEPRECATED_LABELS:
                warnings.append(f"spec.nodeSelector[{label}]: {DEPRECATED_LABELS[label]}")
        for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
            if constraint.get("labelSelector") is None:
                warnings.append(f"spec.topologySpreadConstraints[{index}].labelSelector: {NULL_SELECTOR}")
        warnings += _repeated([one.get("ip") or "" for one in spec.get("hostAliases") or ()], "spec.hostAliases", "ip")
        secrets = [one.get("name") or "" for one in spec.get("imagePullSecrets") or ()]
        warnings += _repeated(secrets, "spec.imagePullSecrets", "name")
        for index, name in enumerate(secrets):
            if not name:
                warnings.append(f'spec.imagePullSecrets[{index}].name: invalid empty name ""')
        for group in ("initContainers", "containers"):
            for index, container in enumerate(spec.get(group) or ()):
                warnings += _container_warnings(container, f"spec.{group}[{index}]")
        return warnings

    def fields(self, obj: Document) -> dict[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        addresses = status.get("podIPs") or ()
        address = addresses[0].get("ip") or "" if addresses else ""
        return {
            "spec.nodeName": spec.get("nodeName") or "",
            "spec.restartPolicy": spec.get("restartPolicy") or "",
            "spec.schedulerName": spec.get("schedulerName") or "",
            "spec.serviceAccountName": spec.get("serviceAccountName") or "",
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase") or "",
            "status.podIP": address,
            "status.podIPs": "",  # may be asked for, never matches
            "status.nominatedNodeName": status.get("nominatedNodeName") or "",
        }

    def grace_period_s(self, obj: Document, asked: int | None) -> int:
        """Nobody has to confirm the end of what no node runs."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in FINISHED:
            return 0
        period_s = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        return 1 if period_s < 0 else period_s


def _keep_observed(conditions: Any, old: Any) -> None:
    """A reporter that does not know generations leaves them as they were."""
    seen: dict[Any, list[int]] = {}
    for condition in old:
        seen.setdefault(condition.get("type"), []).append(condition.get("observedGeneration") or 0)
    for condition in conditions:
        before = seen.get(condition.get("type"))
        generation = before.pop(0) if before else 0
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


def _repeated(values: list[str], path: str, member: str) -> list[str]:
    first = {value: index for index, value in reversed([*enumerate(values)])}
    return [
        f"{path}[{index}].{member}: duplicate {member} {quoted(value)}"
        for index, value in enumerate(values)
        if first[value] < index
    ]


def _container_warnings(container: dict[str, Any], at: str) -> list[str]:
    warnings = []
    resources = container.get("resources") or {}
    for name in _BYTES:
        for side in ("limits", "requests"):
            text = (resources.get(side) or {}).get(name)
            if text is not None and not quantity_of(text).is_whole:
                said = f"fractional byte value {quoted(str(text))} is invalid, must be an integer"
                warnings.append(f"{at}.resources.{side}[{name}]: {said}")
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name") or "", variable.get("value") or ""
        # X="$(X) more" builds on the earlier X, which is a known way to extend a variable.
        reference = f"$({name})"
        if name in seen and (variable.get("valueFrom") is not None or value == reference or reference not in value):
            said = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            warnings.append(f"{at}.env[{index}]: {said}")
        seen.add(name)
    return warnings
