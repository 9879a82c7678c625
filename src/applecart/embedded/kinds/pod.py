"""How Pods behave: graceful deletion, a spec that hardly changes, a status that the node agent reports."""

from typing import Any

from applecart.embedded.field_errors import FieldError
from applecart.embedded.kinds.pod_admission import tolerate_lost_node
from applecart.embedded.kinds.pod_defaults import default_pod
from applecart.embedded.kinds.pod_spec import validate_pod
from applecart.embedded.kinds.pod_update import validate_pod_status, validate_pod_update
from applecart.embedded.kinds.pod_warnings import pod_warnings
from applecart.embedded.kinds.qos import qos_class
from applecart.embedded.kinds.rules import Document, Rules, keep

FINISHED = ("Succeeded", "Failed")
GATED_SAID = "Scheduling is blocked due to non-empty scheduling gates"
_FIELDS = frozenset(
    {
        "spec.hostNetwork",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.nominatedNodeName",
        "status.phase",
        "status.podIP",
        "status.podIPs",
    }
)


class PodRules(Rules):
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
        return pod_warnings(obj)

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

    def field_names(self) -> frozenset[str]:
        return _FIELDS

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
