"""What of a Pod can never work when the Pod is a VM, and what is set aside.

Refused is what its author relies on and would miss: a second container, a mounted Secret, another operating system. Such a
Pod fails once, with a sentence, instead of being tried for ever. What changes nothing for a VM is ignored and told once. The
Pods of a DaemonSet that was not written for Macs are refused too: they tolerate every taint and land here by accident. Pure.
"""

from collections.abc import Iterator

from applecart.api import labels
from applecart.api.containers import Container
from applecart.api.pods import Pod
from applecart.api.scheduling import NodeSelectorTerm
from applecart.api.volumes import Volume
from applecart.errors import Permanent
from applecart.kubelet.probes.checks import unsupported_probes
from applecart.tart import images
from applecart.tart.failures import BadImage

DAEMON_SET = "DaemonSet"
API_ACCESS_PREFIX = "kube-api-access-"  # the volume that the API adds to every Pod; a guest gets its token elsewhere
_MAC_SELECTORS = (
    (labels.NODE_OS, labels.DARWIN_VALUE),
    (labels.RUNTIME, labels.TART_RUNTIME_VALUE),
)


class UnsupportedPod(Permanent):
    """The Pod asks for something that no VM has."""


def refusal(pod: Pod) -> Permanent | None:
    """Why the Pod can never run here; None when it can."""
    why = next(_obstacles(pod), None) or unsupported_probes(pod.spec.containers[0])
    if why is not None:
        return UnsupportedPod(f"Pod {pod.key} cannot run as a VM: {why}")
    try:
        images.parse(pod.spec.containers[0].image)
    except BadImage as error:
        return error
    return None


def unsupported(pod: Pod) -> str | None:
    """The same as a sentence for its author."""
    refused = refusal(pod)
    return None if refused is None else str(refused)


def ignored(pod: Pod) -> tuple[str, ...]:
    """Fields that are set and change nothing for a VM."""
    return tuple(name for name, is_set in _without_effect(pod) if is_set)


def _obstacles(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    owner = pod.controller
    if owner is not None and owner.kind == DAEMON_SET and not _asks_for_a_mac(pod):
        yield (
            f"it is of DaemonSet {owner.name}, which does not select Macs; "
            f"keep it off them, or add the nodeSelector {labels.NODE_OS}={labels.DARWIN_VALUE} if its image is a Tart VM"
        )
    if spec.init_containers:
        yield f"it has init containers ({_names(spec.init_containers)}); put what they do into the image"
    if spec.ephemeral_containers:
        yield f"it has ephemeral containers ({_names(spec.ephemeral_containers)}); use kubectl exec"
    if len(spec.containers) != 1:
        yield f"it has {len(spec.containers)} containers ({_names(spec.containers)}), and a VM is exactly one"
    if spec.os is not None and spec.os.name != labels.DARWIN_VALUE:
        yield f"spec.os.name is {spec.os.name}, and the guests of this node run macOS"
    if spec.runtime_class_name:
        yield f"runtimeClassName {spec.runtime_class_name} names another runtime; remove it"
    for field, is_set in (("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)):
        if is_set:
            yield f"{field} is set, and a guest shares nothing with its host; remove it"
    for container in spec.containers:
        yield from _mount_obstacles(container, spec.volumes)


def _mount_obstacles(container: Container, volumes: tuple[Volume, ...]) -> Iterator[str]:
    by_name = {volume.name: volume for volume in volumes}
    for mount in container.volume_mounts:
        volume = by_name.get(mount.name)
        if volume is None or not _is_api_access(volume):
            yield f"it mounts volume {mount.name} at {mount.mount_path}, and a guest has no mounts; use environment variables"


def _is_api_access(volume: Volume) -> bool:
    return volume.name.startswith(API_ACCESS_PREFIX) and volume.projected is not None


def _asks_for_a_mac(pod: Pod) -> bool:
    if any(pod.spec.node_selector.get(key) == value for key, value in _MAC_SELECTORS):
        return True
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = required.node_selector_terms if required else ()
    return bool(terms) and all(_selects_a_mac(term) for term in terms)


def _selects_a_mac(term: NodeSelectorTerm) -> bool:
    return any(
        rule.operator == "In" and (rule.key, value) in _MAC_SELECTORS and len(rule.values) == 1
        for rule in term.match_expressions
        for value in rule.values
    )


def _without_effect(pod: Pod) -> Iterator[tuple[str, bool]]:
    spec = pod.spec
    for container in spec.containers:
        yield "command", bool(container.command)
        yield "args", bool(container.args)
        yield "workingDir", bool(container.working_dir)
        yield "lifecycle", container.lifecycle is not None
        yield "container securityContext", container.security_context is not None
    yield "securityContext", spec.security_context is not None and spec.security_context != type(spec.security_context)()
    yield "hostAliases", bool(spec.host_aliases)
    yield "dnsConfig", spec.dns_config is not None
    yield "shareProcessNamespace", bool(spec.share_process_namespace)
    yield "volumes", any(not _is_api_access(volume) for volume in spec.volumes)


def _names(containers: tuple[Container, ...]) -> str:
    return ", ".join(container.name for container in containers) or "none"
