"""The tables of built-in kinds; Pods have a file of their own. A kind that is not listed shows its name and its creation."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column, Table
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.tables.columns import AGE_TEXT, DEFAULT, NAME, NONE, UNKNOWN, BuiltInTable, age
from applecart.embedded.tables.pods import PODS

_BINDING_COLUMNS = (
    NAME,
    Column("Role", description="The role that is given."),
    AGE_TEXT,
    Column("Users", description="Users it is given to.", priority=1),
    Column("Groups", description="Groups it is given to.", priority=1),
    Column("ServiceAccounts", description="ServiceAccounts it is given to.", priority=1),
)
_EVENT_COLUMNS = (
    Column("Last Seen", description="Time since it was last seen."),
    Column("Type", description="Normal or Warning."),
    Column("Reason", description="Why it was sent, in one word."),
    Column("Object", description="What it is about."),
    Column("Subobject", description="The part of the object it is about.", priority=1),
    Column("Source", description="Who reported it.", priority=1),
    Column("Message", description="What happened, as a sentence."),
    Column("First Seen", description="Time since it was first seen.", priority=1),
    Column("Count", description="How often it was seen.", priority=1),
    Column("Name", format="name", description="Name of the Event.", priority=1),
)
_NODE_COLUMNS = (
    NAME,
    Column("Status", description="Whether the Node is ready, and whether Pods may be placed on it."),
    Column("Roles", description="Roles that its labels name."),
    AGE_TEXT,
    Column("Version", description="Version of the agent on the Node."),
    Column("Internal-IP", description="Address inside the cluster.", priority=1),
    Column("External-IP", description="Address outside the cluster.", priority=1),
    Column("OS-Image", description="Operating system the Node reports.", priority=1),
    Column("Kernel-Version", description="Kernel the Node reports, with its architecture.", priority=1),
    Column("Container-Runtime", description="What runs the Pods, as the Node reports it.", priority=1),
)
ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"
_SERVICE_COLUMNS = (
    NAME,
    Column("Type", description="How the Service is reached."),
    Column("Cluster-IP", description="Address inside the cluster."),
    Column("External-IP", description="Addresses outside the cluster."),
    Column("Port(s)", description="Ports and their protocols."),
    AGE_TEXT,
    Column("Selector", description="Labels of the Pods behind it.", priority=1),
)
NOT_SET = "N/A"  # of a disruption budget, which has one of two limits


def _binding(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    return [
        metadata.get("name", ""),
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        age(metadata.get("creationTimestamp"), now),
        ", ".join(one.get("name") or "" for one in subjects if one.get("kind") == "User"),
        ", ".join(one.get("name") or "" for one in subjects if one.get("kind") == "Group"),
        ", ".join(
            f"{one.get('namespace') or ''}/{one.get('name') or ''}" for one in subjects if one.get("kind") == "ServiceAccount"
        ),
    ]


BINDINGS = BuiltInTable(_BINDING_COLUMNS, _binding)


def _core_event(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    source = obj.get("source") or {}
    return _event(
        obj,
        metadata,
        now,
        subject=obj.get("involvedObject") or {},
        message=obj.get("message"),
        first=obj.get("firstTimestamp"),
        last=obj.get("lastTimestamp"),
        count=obj.get("count"),
        source=source,
        reporter=obj.get("reportingComponent"),
    )


def _new_event(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return _event(
        obj,
        metadata,
        now,
        subject=obj.get("regarding") or {},
        message=obj.get("note"),
        first=obj.get("deprecatedFirstTimestamp"),
        last=obj.get("deprecatedLastTimestamp"),
        count=obj.get("deprecatedCount"),
        source=obj.get("deprecatedSource") or {},
        reporter=obj.get("reportingController"),
    )


def _event(
    obj: Document,
    metadata: dict[str, Any],
    now: datetime,
    *,
    subject: dict[str, Any],
    message: str | None,
    first: str | None,
    last: str | None,
    count: int | None,
    source: dict[str, Any],
    reporter: str | None,
) -> list[Any]:
    first_seen = age(first or obj.get("eventTime"), now)
    last_seen = age(last, now) if last else first_seen
    series = obj.get("series")
    if series is not None:
        last_seen = age(series.get("lastObservedTime"), now)
        count = series.get("count") or 0
    component = source.get("component") or reporter or ""
    instance = source.get("host") or obj.get("reportingInstance")
    kind, name = (subject.get("kind") or "").lower(), subject.get("name")
    return [
        last_seen,
        obj.get("type") or "",
        obj.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        subject.get("fieldPath") or "",
        f"{component}, {instance}" if instance else component,
        (message or "").strip(),
        first_seen,
        count if series is not None else count or 1,  # the newer API counts only what repeats
        metadata.get("name", ""),
    ]


CORE_EVENTS = BuiltInTable(_EVENT_COLUMNS, _core_event)
EVENTS = BuiltInTable(_EVENT_COLUMNS, _new_event)


def _node(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    architecture = info.get("architecture")
    return [
        metadata.get("name", ""),
        _status(status.get("conditions") or (), bool(spec.get("unschedulable"))),
        ",".join(sorted(_roles(metadata.get("labels") or {}))) or NONE,
        age(metadata.get("creationTimestamp"), now),
        info.get("kubeletVersion") or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _status(conditions: Any, is_unschedulable: bool) -> str:
    ready = {one.get("type"): one.get("status") for one in conditions}.get("Ready", UNKNOWN)
    word = "Unknown" if ready == UNKNOWN else ("Ready" if ready == "True" else "NotReady")
    return f"{word},SchedulingDisabled" if is_unschedulable else word


def _roles(labels: dict[str, str]) -> set[str]:
    named = {label.removeprefix(ROLE_PREFIX) for label in labels if label.startswith(ROLE_PREFIX)}
    return (named | {labels.get(ROLE_LABEL, "")}) - {""}


def _address(status: dict[str, Any], kind: str) -> str:
    return next((one.get("address") or "" for one in status.get("addresses") or () if one.get("type") == kind), NONE)


NODES = BuiltInTable(_NODE_COLUMNS, _node)


def _service(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs")
    selector = spec.get("selector") or {}
    return [
        metadata.get("name", ""),
        spec.get("type") or "",
        addresses[0] if addresses else NONE,
        _external(spec, obj.get("status") or {}),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(metadata.get("creationTimestamp"), now),
        ",".join(f"{label}={selector[label]}" for label in sorted(selector)) or NONE,
    ]


def _external(spec: dict[str, Any], status: dict[str, Any]) -> str:
    extra = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return extra or NONE
        case "LoadBalancer":
            entries = (status.get("loadBalancer") or {}).get("ingress") or ()
            found = ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in entries} - {""}))
            return ",".join(part for part in (found, extra) if part) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
    return UNKNOWN


def _port(port: dict[str, Any]) -> str:
    on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{on_node}/{port.get('protocol', '')}"


SERVICES = BuiltInTable(_SERVICE_COLUMNS, _service)


def _namespace(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    phase = (obj.get("status") or {}).get("phase") or ""
    return [metadata.get("name", ""), phase, age(metadata.get("creationTimestamp"), now)]


def _secret(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    # Only how many members there are: a table must never show a value.
    members = len(obj.get("data") or ())
    return [metadata.get("name", ""), obj.get("type") or "", members, age(metadata.get("creationTimestamp"), now)]


def _config_map(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    members = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [metadata.get("name", ""), members, age(metadata.get("creationTimestamp"), now)]


def _service_account(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [metadata.get("name", ""), age(metadata.get("creationTimestamp"), now)]


def _lease(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    holder = (obj.get("spec") or {}).get("holderIdentity") or ""
    return [metadata.get("name", ""), holder, age(metadata.get("creationTimestamp"), now)]


def _runtime_class(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [metadata.get("name", ""), obj.get("handler") or "", age(metadata.get("creationTimestamp"), now)]


def _priority_class(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [
        metadata.get("name", ""),
        obj.get("value") or 0,
        bool(obj.get("globalDefault")),
        age(metadata.get("creationTimestamp"), now),
        obj.get("preemptionPolicy") or "",
    ]


def _disruption_budget(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limits = [spec.get("minAvailable"), spec.get("maxUnavailable")]
    return [
        metadata.get("name", ""),
        *(NOT_SET if limit is None else str(limit) for limit in limits),
        (obj.get("status") or {}).get("disruptionsAllowed") or 0,
        age(metadata.get("creationTimestamp"), now),
    ]


NAMESPACES = BuiltInTable((NAME, Column("Status", description="Active or Terminating."), AGE_TEXT), _namespace)
SECRETS = BuiltInTable(
    (
        NAME,
        Column("Type", description="What the Secret is for."),
        Column("Data", description="How many members it has."),
        AGE_TEXT,
    ),
    _secret,
)
CONFIG_MAPS = BuiltInTable((NAME, Column("Data", description="How many members it has."), AGE_TEXT), _config_map)
SERVICE_ACCOUNTS = BuiltInTable((NAME, AGE_TEXT), _service_account)
LEASES = BuiltInTable((NAME, Column("Holder", description="Who holds the Lease."), AGE_TEXT), _lease)
RUNTIME_CLASSES = BuiltInTable((NAME, Column("Handler", description="What runs Pods of this class."), AGE_TEXT), _runtime_class)
PRIORITY_CLASSES = BuiltInTable(
    (
        NAME,
        Column("Value", type="integer", description="Priority of Pods of this class; higher goes first."),
        Column("Global-Default", type="boolean", description="Whether Pods without a class get this one."),
        AGE_TEXT,
        Column("PreemptionPolicy", description="Whether Pods of this class may push others away."),
    ),
    _priority_class,
)
DISRUPTION_BUDGETS = BuiltInTable(
    (
        NAME,
        Column("Min Available", description="How many Pods must stay."),
        Column("Max Unavailable", description="How many Pods may be missing."),
        Column("Allowed Disruptions", type="integer", description="How many Pods may be evicted now."),
        AGE_TEXT,
    ),
    _disruption_budget,
)


TABLES: dict[tuple[str, str], Table] = {
    ("", "configmaps"): CONFIG_MAPS,
    ("", "events"): CORE_EVENTS,
    ("", "namespaces"): NAMESPACES,
    ("", "nodes"): NODES,
    ("", "pods"): PODS,
    ("", "secrets"): SECRETS,
    ("", "serviceaccounts"): SERVICE_ACCOUNTS,
    ("", "services"): SERVICES,
    ("coordination.k8s.io", "leases"): LEASES,
    ("events.k8s.io", "events"): EVENTS,
    ("node.k8s.io", "runtimeclasses"): RUNTIME_CLASSES,
    ("policy", "poddisruptionbudgets"): DISRUPTION_BUDGETS,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): BINDINGS,
    ("rbac.authorization.k8s.io", "rolebindings"): BINDINGS,
    ("scheduling.k8s.io", "priorityclasses"): PRIORITY_CLASSES,
}


def table_of(group: str, plural: str) -> Table:
    """How objects of a built-in kind look as rows; Roles, ClusterRoles and CRDs have no table of their own."""
    return TABLES.get((group, plural), DEFAULT)
