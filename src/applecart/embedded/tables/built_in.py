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


def _events(*, subject: str, message: str, first: str, last: str, count: str, source: str, reporter: str) -> BuiltInTable:
    """The two APIs of Events differ in what they call these members."""

    def row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
        first_seen = age(obj.get(first) or obj.get("eventTime"), now)
        last_seen = age(obj[last], now) if obj.get(last) else first_seen
        times = obj.get(count) or 1  # the newer API counts only what repeats
        if (series := obj.get("series")) is not None:
            last_seen = age(series.get("lastObservedTime"), now)
            times = series.get("count") or 0
        reported = obj.get(source) or {}
        component = reported.get("component") or obj.get(reporter) or ""
        instance = reported.get("host") or obj.get("reportingInstance")
        about = obj.get(subject) or {}
        kind, name = (about.get("kind") or "").lower(), about.get("name")
        return [
            last_seen,
            obj.get("type") or "",
            obj.get("reason") or "",
            f"{kind}/{name}" if name else kind,
            about.get("fieldPath") or "",
            f"{component}, {instance}" if instance else component,
            (obj.get(message) or "").strip(),
            first_seen,
            times,
            metadata.get("name", ""),
        ]

    return BuiltInTable(_EVENT_COLUMNS, row)


CORE_EVENTS = _events(
    subject="involvedObject",
    message="message",
    first="firstTimestamp",
    last="lastTimestamp",
    count="count",
    source="source",
    reporter="reportingComponent",
)
EVENTS = _events(
    subject="regarding",
    message="note",
    first="deprecatedFirstTimestamp",
    last="deprecatedLastTimestamp",
    count="deprecatedCount",
    source="deprecatedSource",
    reporter="reportingController",
)


def _status(node: Document) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = {one.get("type"): one.get("status") for one in conditions}.get("Ready", UNKNOWN)
    word = "Unknown" if ready == UNKNOWN else ("Ready" if ready == "True" else "NotReady")
    return f"{word},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else word


def _roles(node: Document) -> str:
    labels = node["metadata"].get("labels") or {}
    named = {label.removeprefix(ROLE_PREFIX) for label in labels if label.startswith(ROLE_PREFIX)}
    return ",".join(sorted((named | {labels.get(ROLE_LABEL, "")}) - {""})) or NONE


def _address(kind: str) -> Cell:
    def address(node: Document) -> str:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((one.get("address") or "" for one in addresses if one.get("type") == kind), NONE)

    return address


def _info(name: str, nothing: str = UNKNOWN) -> Cell:
    """What the agent says of its node."""
    return lambda node: ((node.get("status") or {}).get("nodeInfo") or {}).get(name) or nothing


def _kernel(node: Document) -> str:
    kernel, architecture = _info("kernelVersion")(node), _info("architecture", "")(node)
    return f"{kernel} ({architecture})" if architecture else kernel


NODES = _table(
    _shown("Status", "Whether the Node is ready, and whether Pods may be placed on it.", _status),
    _shown("Roles", "Roles that its labels name.", _roles),
    _AGE,
    _shown("Version", "Version of the agent on the Node.", _info("kubeletVersion", "")),
    _shown("Internal-IP", "Address inside the cluster.", _address("InternalIP"), priority=1),
    _shown("External-IP", "Address outside the cluster.", _address("ExternalIP"), priority=1),
    _shown("OS-Image", "Operating system the Node reports.", _info("osImage"), priority=1),
    _shown("Kernel-Version", "Kernel the Node reports, with its architecture.", _kernel, priority=1),
    _shown("Container-Runtime", "What runs the Pods, as the Node reports it.", _info("containerRuntimeVersion"), priority=1),
)


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
