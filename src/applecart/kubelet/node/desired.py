"""The Node we want, and the smallest change that makes the Node that is there into it: pure.

Labels: ours by prefix are goldens and caches; of the rest of our domain only what we put there ourselves, which an annotation
of the Node remembers, is ever taken off (other writers use the domain too). Taints of others stay. A providerID is filled in
when it is empty and never changed: it ties the Node to a Machine. Conditions keep their transition time while their status
stays; a heartbeat time moves only with a write that happens anyway or is due.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from applecart.api import annotations, labels, taints, well_known_names
from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, NodeAddress, NodeCondition, NodeSpec, NodeSystemInfo, Taint
from applecart.api.quantity import parse_quantity
from applecart.kube.conditions import find, set_condition
from applecart.kubelet.node.facts import Facts
from applecart.kubelet.option_values import fixed_labels
from applecart.kubelet.options import Options

INTERNAL_IP, HOSTNAME = "InternalIP", "Hostname"
STREAMS_OVER_WEBSOCKET = "ExtendWebSocketsToKubelet"  # tells API servers to hand us exec as a WebSocket, not as SPDY
OURS_BY_PREFIX = (labels.GOLDEN_PREFIX, labels.CACHE_MASTER_PREFIX)


class Offer(msgspec.Struct, frozen=True):
    """What the agent was told about its host."""

    name: str
    provider_id: str = ""
    labels: Mapping[str, str] = {}
    cpu: int = 8
    memory_mb: int = 16384
    pods: int = 2
    endpoint_port: int = 0  # 0: logs and exec are not served

    @classmethod
    def of(cls, options: Options) -> "Offer":
        return cls(
            options.node_name,
            options.provider_id,
            options.node_labels,
            options.host_cpu,
            options.host_memory_mb,
            options.max_pods,
            options.kubelet_bind[1] if options.kubelet_bind else 0,
        )


def all_labels(offer: Offer, dynamic: Mapping[str, str]) -> dict[str, str]:
    return {**dynamic, **offer.labels, **fixed_labels(offer.name)}


def new_node(offer: Offer, wanted: Mapping[str, str]) -> Node:
    """Without a status, which is written next, as every time."""
    metadata = ObjectMeta(name=offer.name, labels=dict(wanted), annotations={annotations.ADVERTISED_LABELS: _memory(wanted)})
    return Node(metadata=metadata, spec=NodeSpec(provider_id=offer.provider_id, taints=(_our_taint(),)))


def metadata_change(node: Node, offer: Offer, wanted: Mapping[str, str]) -> dict[str, Any]:
    """The merge patch of everything but the status; empty when nothing differs. It must name the revision it was made for:
    the list of taints is sent whole."""
    patch: dict[str, Any] = {}
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
    changed |= dict.fromkeys(key for key in node.labels if key not in wanted and _is_ours(key, node))
    if changed:
        patch["labels"] = changed
    if node.annotations.get(annotations.ADVERTISED_LABELS) != _memory(wanted):
        patch["annotations"] = {annotations.ADVERTISED_LABELS: _memory(wanted)}
    spec: dict[str, Any] = {}
    if not any(taint.key == taints.MACOS.key for taint in node.spec.taints):
        spec["taints"] = msgspec.to_builtins((*node.spec.taints, _our_taint()))
    if offer.provider_id and not node.spec.provider_id:
        spec["providerID"] = offer.provider_id
    return {**({"metadata": patch} if patch else {}), **({"spec": spec} if spec else {})}


def identity_trouble(node: Node, offer: Offer) -> str:
    """Why Cluster API may not find the host behind this Node; empty when nothing is wrong."""
    stands = node.spec.provider_id
    if not offer.provider_id or stands in ("", offer.provider_id):
        return ""
    return (
        f"spec.providerID is {stands}, but this host was told {offer.provider_id}; it is never overwritten: "
        "delete the Node if the host's value is right, or mend --provider-id"
    )


def status_change(
    node: Node, offer: Offer, facts: Facts, conditions: tuple[NodeCondition, ...], now: datetime, *, is_due: bool
) -> dict[str, Any]:
    """The strategic patch of the status; empty when nothing differs and no heartbeat is due."""
    said = _with_times(node, conditions, now)
    change = _rest_of_status(node, offer, facts)
    if not change and not is_due and all(condition in node.status.conditions for condition in said):
        return {}
    beating = [_spoken(msgspec.structs.replace(each, last_heartbeat_time=now.replace(microsecond=0))) for each in said]
    # Not in the struct of a Node, so nobody can see whether it stands: it goes along every time.
    features = [STREAMS_OVER_WEBSOCKET] if offer.endpoint_port else None
    return {"status": {**change, "conditions": beating, "declaredFeatures": features}}


def _with_times(node: Node, conditions: tuple[NodeCondition, ...], now: datetime) -> list[NodeCondition]:
    """As they would stand, with the heartbeats that stand."""
    stand = node.status.conditions
    found = []
    for condition in conditions:
        known = find(stand, condition.type)
        beat = known.last_heartbeat_time if known is not None else None
        stand = set_condition(stand, msgspec.structs.replace(condition, last_heartbeat_time=beat), now)
        found += [each for each in stand if each.type == condition.type]
    return found


def _spoken(condition: NodeCondition) -> dict[str, Any]:
    """On the wire. With its empty fields: the API merges conditions, and an old message would stay under a new status."""
    return {"reason": "", "message": "", **msgspec.to_builtins(condition)}


def _rest_of_status(node: Node, offer: Offer, facts: Facts) -> dict[str, Any]:
    status = node.status
    change: dict[str, Any] = {}
    amounts = _amounts(offer, facts)
    for group, stands in (("capacity", status.capacity), ("allocatable", status.allocatable)):
        if any(stands.get(name) != amount for name, amount in amounts.items()):
            change[group] = amounts
    if facts.address:
        wanted = (NodeAddress(type=INTERNAL_IP, address=facts.address), NodeAddress(type=HOSTNAME, address=offer.name))
        if status.addresses != wanted:
            # The API would merge the list by type and keep what is no longer true.
            change["addresses"] = [*msgspec.to_builtins(wanted), {"$patch": "replace"}]
    info = status.node_info or NodeSystemInfo()
    wanted_info = msgspec.structs.replace(info, **_info(facts))
    if info != wanted_info:
        change["nodeInfo"] = msgspec.to_builtins(wanted_info)
    endpoint = status.daemon_endpoints.kubelet_endpoint if status.daemon_endpoints else None
    if (endpoint.port if endpoint else 0) != offer.endpoint_port:
        change["daemonEndpoints"] = {"kubeletEndpoint": {"Port": offer.endpoint_port}}
    return change


def _amounts(offer: Offer, facts: Facts) -> dict[str, str]:
    """As the API spells them: it rewrites 16384Mi to 16Gi, and another spelling would differ from what stands for ever."""
    amounts = {"cpu": f"{offer.cpu}", "memory": f"{offer.memory_mb}Mi", "pods": f"{offer.pods}"}
    if facts.disk_bytes:
        amounts["ephemeral-storage"] = f"{facts.disk_bytes}"
    return {name: parse_quantity(amount).in_milli for name, amount in amounts.items()}


def _info(facts: Facts) -> dict[str, str]:
    told = {"os_image": facts.os_image, "kernel_version": facts.kernel_version}
    return {
        "operating_system": labels.DARWIN_VALUE,
        "architecture": labels.ARM64_VALUE,
        "kubelet_version": well_known_names.NODE_KUBELET_VERSION,
        "container_runtime_version": labels.TART_RUNTIME_VALUE,
        **{name: value for name, value in told.items() if value},
    }


def _our_taint() -> Taint:
    return Taint(key=taints.MACOS.key, value=taints.MACOS.value, effect=taints.MACOS.effect)


def _is_ours(key: str, node: Node) -> bool:
    remembered = node.annotations.get(annotations.ADVERTISED_LABELS, "").split(",")
    return key.startswith(OURS_BY_PREFIX) or (key.startswith(labels.NODE_OWNED_PREFIX) and key in remembered)


def _memory(wanted: Mapping[str, str]) -> str:
    """What must be remembered of it: of our domain, without what is ours by its prefix."""
    ours = (key for key in wanted if key.startswith(labels.NODE_OWNED_PREFIX) and not key.startswith(OURS_BY_PREFIX))
    return ",".join(sorted(ours))
