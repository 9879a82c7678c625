"""What is decided about a new Pod from other objects: its ServiceAccount and what pulls its images, its priority, its runtime
class, how long it outlives its node.

Pure functions of a Pod and a `Reader`; a refusal names the Pod. The handlers call `admit_pod` after defaults and before
validation; it does things in the real server's order, because each sees what the ones before it filled in.
"""

from typing import Any

from applecart.api.pods import Pod
from applecart.embedded.auth.pod_references import is_mirror, secret_names
from applecart.embedded.field_errors import quoted
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, forbidden
from applecart.embedded.schema.budget import spend
from applecart.embedded.store.store import Reader

SERVICE_ACCOUNTS = "serviceaccounts"
DEFAULT_ACCOUNT = "default"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
STEPS_OF_A_SECRET = 10  # what becomes of it in the Pod included
DEFAULT_TOLERATION_S = 300  # how long a Pod stays on a node that is not ready or not heard of
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
# Two classes every cluster has; their names and values are part of the API.
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def admit_pod(pod: Document, reader: Reader, *, needs_service_account: bool) -> None:
    """Fill in what follows from other objects; refuse what names one that is not there."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    if needs_service_account:
        if is_mirror(pod):
            _admit_mirror(pod)
        else:
            _admit_service_account(pod, reader)
    admit_priority(pod, reader)
    tolerate_lost_node(spec)
    admit_runtime_class(pod, reader)


def _admit_mirror(pod: Document) -> None:
    """What a node says of a Pod that it runs by itself is not changed, and reaches nothing of others."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        raise _rejected(pod, "a mirror pod may not reference service accounts")
    if any(secret_names(spec)):
        raise _rejected(pod, "a mirror pod may not reference secrets")
    sources = [
        source for volume in spec.get("volumes") or () for source in (volume.get("projected") or {}).get("sources") or ()
    ]
    if any(source.get("serviceAccountToken") is not None for source in sources):
        raise _rejected(pod, "a mirror pod may not use ServiceAccountToken volume projections")


def _admit_service_account(pod: Document, reader: Reader) -> None:
    """A Pod that names no image pull secrets gets those of its account."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = reader.get(SERVICE_ACCOUNTS, namespace, name)
    if account is None:
        raise _rejected(pod, f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found')
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spend(STEPS_OF_A_SECRET * len(account["imagePullSecrets"]))  # a small Pod becomes a large one
        spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]


def tolerate_lost_node(spec: dict[str, Any]) -> None:
    """Tolerations that keep a Pod on a lost node for a while, unless it says something about such nodes itself."""
    tolerations = spec.get("tolerations") or ()
    for taint in (NOT_READY, UNREACHABLE):
        if any(one.get("key") in (taint, "", None) and one.get("effect") in ("NoExecute", "", None) for one in tolerations):
            continue
        added = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_TOLERATION_S}
        tolerations = spec["tolerations"] = [*tolerations, added]


def admit_priority(pod: Document, reader: Reader) -> None:
    """Sets the priority that the Pod's class gives; a Pod may not choose another."""
    spec = pod["spec"]
    name, priority, policy = _priority_of(pod, spec.get("priorityClassName") or "", reader)
    if name:
        spec["priorityClassName"] = name
    for member, value, what in (
        ("priority", priority, "integer value of priority"),
        ("preemptionPolicy", policy, "string value of PreemptionPolicy"),
    ):
        asked = spec.get(member)
        if asked is not None and asked != value:
            why = f"priority admission controller computed {value} from the given PriorityClass name"
            raise _rejected(pod, f"the {what} ({asked}) must not be provided in pod spec; {why}")
        spec[member] = value


def _priority_of(pod: Document, name: str, reader: Reader) -> tuple[str, int, str]:
    if not name:
        defaults = [one for one in reader.each(PRIORITY_CLASSES) if one.get("globalDefault")]
        if not defaults:
            return "", 0, "PreemptLowerPriority"
        found = min(defaults, key=lambda one: one.get("value") or 0)
        name = found["metadata"]["name"]
    else:
        stored = reader.get(PRIORITY_CLASSES, "", name)
        if stored is None and name in SYSTEM_CLASSES:
            return name, SYSTEM_CLASSES[name], "PreemptLowerPriority"
        if stored is None:
            raise _rejected(pod, f"no PriorityClass with name {name} was found")
        found = stored
    return name, found.get("value") or 0, found.get("preemptionPolicy") or "PreemptLowerPriority"


def admit_runtime_class(pod: Document, reader: Reader) -> None:
    """What the Pod's runtime costs and where it exists, from its RuntimeClass."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    found: Document = {}
    if name is not None:
        stored = reader.get(RUNTIME_CLASSES, "", name)
        if stored is None:
            raise _rejected(pod, f"pod rejected: RuntimeClass {quoted(name)} not found")
        found = stored
    if overhead := (found.get("overhead") or {}).get("podFixed"):
        if spec.get("overhead") and spec["overhead"] != overhead:
            raise _rejected(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = overhead
    elif spec.get("overhead"):
        raise _rejected(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    _place(pod, spec, found.get("scheduling") or {})


def _place(pod: Document, spec: dict[str, Any], scheduling: dict[str, Any]) -> None:
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            text = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise _rejected(pod, f"conflict: {text}")
        selector = spec["nodeSelector"] = {**selector, key: value}
    added = [one for one in scheduling.get("tolerations") or () if one not in (spec.get("tolerations") or ())]
    if added:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *added]


def _rejected(pod: Document, why: str) -> Refusal:
    return forbidden(Pod.resource, (pod.get("metadata") or {}).get("name") or "", why)
