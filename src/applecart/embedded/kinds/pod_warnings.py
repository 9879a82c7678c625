"""Advice about a Pod that is valid but hardly what its author wants. Nothing is refused here."""

from typing import Any

from applecart.api.quantity import BadQuantity, quantity_of
from applecart.embedded.field_errors import quoted
from applecart.embedded.kinds.names import label_problems
from applecart.embedded.kinds.rules import Document

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


def pod_warnings(pod: Document) -> list[str]:
    spec = pod.get("spec") or {}
    warnings = _name_warnings((pod.get("metadata") or {}).get("name") or "")
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


def _name_warnings(name: str) -> list[str]:
    problems = label_problems(name)
    return [f"metadata.name: {HOSTNAME_ADVICE}: [{' '.join(problems)}]"] if problems else []


def _repeated(values: list[str], path: str, member: str) -> list[str]:
    return [
        f"{path}[{index}].{member}: duplicate {member} {quoted(value)}"
        for index, value in enumerate(values)
        if value in values[:index]
    ]


def _container_warnings(container: dict[str, Any], at: str) -> list[str]:
    warnings = []
    resources = container.get("resources") or {}
    for name in _BYTES:
        for side in ("limits", "requests"):
            text = (resources.get(side) or {}).get(name)
            if text is not None and _is_fraction(text):
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


def _is_fraction(text: Any) -> bool:
    try:
        return not quantity_of(text).is_whole
    except BadQuantity:
        return False
