"""What a Pod may tell its guest about itself: `fieldRef` and `resourceFieldRef`, as Kubernetes reads them.

Pure: the Pod and its node's name and address in, text out. What cannot be known before the guest boots, and what a VM does not
have, is refused by a sentence that names the variable; a guest must not start with a variable silently missing.
"""

import re
from collections.abc import Callable

from applecart.api.containers import ResourceFieldSelector
from applecart.api.pods import Pod
from applecart.api.quantity import BadQuantity, parse_quantity
from applecart.errors import BadInput
from applecart.kubelet.guest.config_sources import MissingConfig

DEFAULT_SERVICE_ACCOUNT = "default"  # what the API means by none

_SUBSCRIPTED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_FIELDS: dict[str, Callable[[Pod], str]] = {
    "metadata.name": lambda pod: pod.name,
    "metadata.namespace": lambda pod: pod.namespace,
    "metadata.uid": lambda pod: pod.uid,
    "spec.serviceAccountName": lambda pod: service_account(pod),
}
_UNKNOWN_BEFORE_BOOT = ("status.podIP", "status.podIPs")
_AMOUNTS = ("limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
_ONE = "1"


def service_account(pod: Pod) -> str:
    return pod.spec.service_account_name or DEFAULT_SERVICE_ACCOUNT


def field_value(pod: Pod, path: str, node: str, node_ip: str, variable: str) -> str:
    """A field of the Pod; a label or annotation that it does not have is empty."""
    if path == "spec.nodeName":
        return node
    if path in ("status.hostIP", "status.hostIPs"):
        if not node_ip:
            raise MissingConfig(
                f"variable {variable} of Pod {pod.key} needs {path}, and node {node} knows no address of its own"
            )
        return node_ip
    if path in _FIELDS:
        return _FIELDS[path](pod)
    subscripted = _SUBSCRIPTED.fullmatch(path)
    if subscripted:
        return (pod.labels if subscripted[1] == "labels" else pod.annotations).get(subscripted[2], "")
    why = "a guest has no address before it boots" if path in _UNKNOWN_BEFORE_BOOT else "a VM cannot be told that field"
    raise BadInput(
        f"variable {variable} of Pod {pod.key} refers to {path}: {why}; remove the variable or refer to another field"
    )


def resource_value(pod: Pod, ref: ResourceFieldSelector, variable: str) -> str:
    """An amount of the container's resources in units of the divisor, rounded up."""
    container = pod.spec.containers[0]
    about = f"variable {variable} of Pod {pod.key}"
    if ref.container_name not in ("", container.name):
        raise BadInput(f"{about} refers to container {ref.container_name!r}, which the Pod does not have")
    if ref.resource not in _AMOUNTS:
        raise BadInput(f"{about} refers to {ref.resource}; a VM has only {', '.join(_AMOUNTS)}")
    which, _, resource = ref.resource.partition(".")
    resources = container.resources
    amounts = {} if resources is None else resources.limits if which == "limits" else resources.requests
    if resource not in amounts:
        raise BadInput(f"{about} refers to {ref.resource}, which the container does not set; set it or remove the variable")
    try:
        amount = parse_quantity(amounts[resource]).nanos
        divisor = parse_quantity(ref.divisor or _ONE).nanos or parse_quantity(_ONE).nanos
    except BadQuantity as error:
        raise BadInput(f"{about} refers to {ref.resource}: {error}") from None
    return str(-(-amount // divisor))
