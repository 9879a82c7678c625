"""The tables of built-in kinds; Pods have a file of their own. A kind that is not listed shows its name and its creation."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column, Table
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.tables.columns import AGE_TEXT, DEFAULT, NAME, NONE, UNKNOWN, BuiltInTable, age
from applecart.embedded.tables.pods import PODS

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


Cell = Callable[[Document], Any]
_AGE = (AGE_TEXT, None)


def _shown(name: str, description: str, cell: Cell, *, type: str = "string", priority: int = 0) -> tuple[Column, Cell]:
    return Column(name, type, description=description, priority=priority), cell


def _table(*shown: tuple[Column, Cell | None]) -> BuiltInTable:
    """The name, and these columns, each with what it shows of an object; for its age, nothing else is needed."""

    def row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
        created = metadata.get("creationTimestamp")
        return [metadata.get("name", ""), *(age(created, now) if cell is None else cell(obj) for _, cell in shown)]

    return BuiltInTable((NAME, *(column for column, _ in shown)), row)


def _role(obj: Document) -> str:
    role = obj.get("roleRef") or {}
    return f"{role.get('kind') or ''}/{role.get('name') or ''}"


def _subjects(kind: str) -> Cell:
    def names(obj: Document) -> str:
        subjects = [one for one in obj.get("subjects") or () if one.get("kind") == kind]
        homes = (f"{one.get('namespace') or ''}/" if kind == "ServiceAccount" else "" for one in subjects)
        return ", ".join(f"{home}{one.get('name') or ''}" for home, one in zip(homes, subjects, strict=True))

    return names


BINDINGS = _table(
    _shown("Role", "The role that is given.", _role),
    _AGE,
    _shown("Users", "Users it is given to.", _subjects("User"), priority=1),
    _shown("Groups", "Groups it is given to.", _subjects("Group"), priority=1),
    _shown("ServiceAccounts", "ServiceAccounts it is given to.", _subjects("ServiceAccount"), priority=1),
)


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


def _external(obj: Document) -> str:
    spec = obj.get("spec") or {}
    extra = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return extra or NONE
        case "LoadBalancer":
            entries = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
            found = ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in entries} - {""}))
            return ",".join(part for part in (found, extra) if part) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
    return UNKNOWN


def _ports(obj: Document) -> str:
    shown = []
    for port in (obj.get("spec") or {}).get("ports") or ():
        on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port', 0)}{on_node}/{port.get('protocol', '')}")
    return ",".join(shown) or NONE


def _selector(obj: Document) -> str:
    selector = (obj.get("spec") or {}).get("selector") or {}
    return ",".join(f"{label}={selector[label]}" for label in sorted(selector)) or NONE


def _member(name: str, nothing: Any = "", *, of: str = "") -> Cell:
    """A member of the object, or of one of its parts."""
    return lambda obj: ((obj.get(of) or {}) if of else obj).get(name) or nothing


def _limit(name: str) -> Cell:
    """One of the two limits of a disruption budget, which has only one of them."""
    return lambda obj: "N/A" if (limit := (obj.get("spec") or {}).get(name)) is None else str(limit)


SERVICES = _table(
    _shown("Type", "How the Service is reached.", _member("type", of="spec")),
    _shown("Cluster-IP", "Address inside the cluster.", lambda obj: _member("clusterIPs", [NONE], of="spec")(obj)[0]),
    _shown("External-IP", "Addresses outside the cluster.", _external),
    _shown("Port(s)", "Ports and their protocols.", _ports),
    _AGE,
    _shown("Selector", "Labels of the Pods behind it.", _selector, priority=1),
)
NAMESPACES = _table(_shown("Status", "Active or Terminating.", _member("phase", of="status")), _AGE)
SECRETS = _table(
    _shown("Type", "What the Secret is for.", _member("type")),
    # Only how many members there are: a table must never show a value.
    _shown("Data", "How many members it has.", lambda obj: len(obj.get("data") or ())),
    _AGE,
)
CONFIG_MAPS = _table(
    _shown("Data", "How many members it has.", lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ())),
    _AGE,
)
LEASES = _table(_shown("Holder", "Who holds the Lease.", _member("holderIdentity", of="spec")), _AGE)
RUNTIME_CLASSES = _table(_shown("Handler", "What runs Pods of this class.", _member("handler")), _AGE)
PRIORITY_CLASSES = _table(
    _shown("Value", "Priority of Pods of this class; higher goes first.", _member("value", 0), type="integer"),
    _shown("Global-Default", "Whether Pods without a class get this one.", _member("globalDefault", False), type="boolean"),
    _AGE,
    _shown("PreemptionPolicy", "Whether Pods of this class may push others away.", _member("preemptionPolicy")),
)
_allowed = _member("disruptionsAllowed", 0, of="status")
DISRUPTION_BUDGETS = _table(
    _shown("Min Available", "How many Pods must stay.", _limit("minAvailable")),
    _shown("Max Unavailable", "How many Pods may be missing.", _limit("maxUnavailable")),
    _shown("Allowed Disruptions", "How many Pods may be evicted now.", _allowed, type="integer"),
    _AGE,
)


TABLES: dict[tuple[str, str], Table] = {
    ("", "configmaps"): CONFIG_MAPS,
    ("", "events"): CORE_EVENTS,
    ("", "namespaces"): NAMESPACES,
    ("", "nodes"): NODES,
    ("", "pods"): PODS,
    ("", "secrets"): SECRETS,
    ("", "serviceaccounts"): _table(_AGE),
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
