"""One write, as a request to a real API server and as a call of ours, and how both answers are made comparable.

Each step is judged alone: both start from the object the real server has, so that one difference does not hide the next.
Defaults, which are not the patches' business, are left out of the comparison.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from applecart.embedded.patching.apply import apply
from applecart.embedded.patching.json_patch import apply_json_patch
from applecart.embedded.patching.managed_fields import Writer, track_update
from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.strategic import strategic_merge
from applecart.embedded.patching.values import copied
from applecart.embedded.refusals import Refusal
from applecart.embedded.server.writing import read_patch
from applecart.embedded.shape import Shape
from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.shapes import CONFIG_MAP, DEPLOYMENT, GROUP, NODE, POD, PROBE

How = Literal["apply", "merge", "strategic", "json", "put", "create"]
NOW = datetime(2100, 1, 1, tzinfo=UTC)  # after everything a real server has written
MEDIA_TYPES = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "namespace")


@dataclass(frozen=True)
class Subject:
    """A kind to write to."""

    path: str  # of the collection, with {namespace}
    shape: Shape
    api_version: str = "v1"
    blank: dict[str, Any] = field(default_factory=dict)
    has_status: bool = True
    status_reset: tuple[str, ...] = ("spec",)

    def reset(self, subresource: str) -> tuple[str, ...]:
        if subresource:
            return self.status_reset
        return ("status",) if self.has_status else ()


BLANK_DEPLOYMENT = {
    "metadata": {},
    "spec": {"selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "strategy": {}},
    "status": {},
}
SUBJECTS = {
    "ConfigMap": Subject("/api/v1/namespaces/{namespace}/configmaps", CONFIG_MAP, blank={"metadata": {}}, has_status=False),
    "Pod": Subject(
        "/api/v1/namespaces/{namespace}/pods",
        POD,
        blank={"metadata": {}, "spec": {"containers": None}, "status": {}},
        status_reset=("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    ),
    "Deployment": Subject("/apis/apps/v1/namespaces/{namespace}/deployments", DEPLOYMENT, "apps/v1", BLANK_DEPLOYMENT),
    "Node": Subject("/api/v1/nodes", NODE, blank={"metadata": {}, "spec": {}, "status": {}}),
    "Probe": Subject(
        f"/apis/{GROUP}/v1/namespaces/{{namespace}}/probes",
        PROBE,
        f"{GROUP}/v1",
        status_reset=("metadata", "spec"),
    ),
}


@dataclass(frozen=True)
class Step:
    how: How
    body: Any
    manager: str = "m1"
    force: bool = False
    subresource: str = ""


@dataclass(frozen=True)
class Answer:
    """What came of a step: an object, or a refusal's words."""

    document: dict[str, Any] | None
    code: int = 200
    reason: str = ""
    message: str = ""
    causes: tuple[tuple[str, str, str], ...] = ()

    @property
    def refusal(self) -> tuple[Any, ...]:
        return self.code, self.reason, self.message, self.causes


def really(api: RealApi, subject: Subject, namespace: str, name: str, step: Step) -> Answer:
    """What the real server answers."""
    collection = subject.path.format(namespace=namespace)
    query = f"?fieldManager={step.manager}" + ("&force=true" if step.force else "")
    if step.how == "create":
        code, document = api.call("POST", collection + query, step.body)
    else:
        method = "PUT" if step.how == "put" else "PATCH"
        path = f"{collection}/{name}" + (f"/{step.subresource}" if step.subresource else "")
        code, document = api.call(method, path + query, step.body, MEDIA_TYPES.get(step.how, "application/json"))
    if code < 300:
        return Answer(document)
    causes = _causes(document.get("details", {}).get("causes", []))
    return Answer(None, code, document.get("reason", ""), document["message"], causes)


def ours(subject: Subject, live: dict[str, Any] | None, step: Step) -> Answer:
    """What we answer, from the same object."""
    try:
        return Answer(_written(subject, copied(live), step))
    except Refusal as refusal:
        causes = (refusal.details or {}).get("causes", [])
        return Answer(None, refusal.code, refusal.reason, refusal.message, _causes(causes))


def assert_equal(got: Answer, expected: Answer, *, with_owners: bool = True) -> None:
    """Both answers say the same; where the real server fails with 500 we refuse as a bad request."""
    if expected.code == 500:
        assert got.code in (400, 422), f"{got} instead of {expected}"
        return
    assert got.refusal == expected.refusal, f"{got.refusal} instead of {expected.refusal}"
    (object_got, owners_got), (object_expected, owners_expected) = comparable(got.document), comparable(expected.document)
    assert object_got == object_expected, f"{object_got} instead of {object_expected}"
    assert not with_owners or owners_got == owners_expected, f"{owners_got} instead of {owners_expected}"


def _causes(causes: list[dict[str, Any]]) -> tuple[tuple[str, str, str], ...]:
    return tuple(sorted((cause.get("reason", ""), cause.get("message", ""), cause.get("field", "")) for cause in causes))


def _written(subject: Subject, live: dict[str, Any] | None, step: Step) -> dict[str, Any]:
    reset = subject.reset(step.subresource)
    writer = Writer(step.manager, subject.shape, subject.api_version, NOW, step.subresource, reset, subject.blank)
    if step.how == "apply":
        result = apply(live, step.body, writer, force=step.force)
    else:
        result = _changed(subject, live, step)
        if subject.api_version != f"{GROUP}/v1":
            _drop_empty(result, subject.shape)
        track_update(live, result, writer)
        result = msgspec.json.decode(msgspec.json.encode(result))  # as it is stored and read again
    return _kept(result, live, reset)


def _changed(subject: Subject, live: dict[str, Any] | None, step: Step) -> Any:
    if live is None or step.how == "create":
        return copied(step.body)

    def patch() -> Any:
        return read_patch(MEDIA_TYPES[step.how], msgspec.json.encode(step.body))

    ways: dict[str, Callable[[], Any]] = {
        "merge": lambda: merge(copied(live), patch()),
        "strategic": lambda: strategic_merge(copied(live), patch(), subject.shape),
        "json": lambda: apply_json_patch(copied(live), patch()),
        "put": lambda: _with_identity(copied(step.body), live),
    }
    return ways[step.how]()


def _drop_empty(obj: dict[str, Any], shape: Shape) -> None:
    """What decoding does to built-in kinds: empty maps and lists are left out."""
    for name, value in list(obj.items()):
        child = shape.child(name)
        if child.sort in ("map", "list") and not value:
            del obj[name]
        elif child.sort == "struct" and type(value) is dict:
            _drop_empty(value, child)


def _with_identity(obj: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    for name in SERVERS_OWN:
        if name in live["metadata"]:
            obj["metadata"].setdefault(name, live["metadata"][name])
    return obj


def _kept(result: dict[str, Any], live: dict[str, Any] | None, reset: tuple[str, ...]) -> dict[str, Any]:
    """What the endpoint does not let a caller change is as it was; managedFields are never reset."""
    managed = result["metadata"].get("managedFields")
    for path in reset:
        if "." in path:
            continue
        old = copied((live or {}).get(path))
        if old is None:
            result.pop(path, None)
        else:
            result[path] = old
    result["metadata"].pop("managedFields", None)
    if managed:
        result["metadata"]["managedFields"] = managed
    return result


def comparable(document: dict[str, Any] | None) -> tuple[Any, list[dict[str, Any]]]:
    """The object and its owners, without what differs by nature: identities, times, defaults, empty structs."""
    if document is None:
        return None, []
    document = copied(document)
    metadata = document["metadata"]
    for name in SERVERS_OWN:
        metadata.pop(name, None)
    entries = metadata.pop("managedFields", [])
    for entry in entries:
        entry["time"] = "time" in entry
    entries.sort(key=lambda entry: (entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", "")))
    return _undefaulted(document), entries


DEFAULTS: dict[str, Any] = {
    "imagePullPolicy": ("Always", "IfNotPresent"),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "protocol": ("TCP",),
    "dnsPolicy": ("ClusterFirst",),
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "terminationGracePeriodSeconds": (30,),
    "enableServiceLinks": (True,),
    "preemptionPolicy": ("PreemptLowerPriority",),
    "priority": (0,),
    "progressDeadlineSeconds": None,
    "revisionHistoryLimit": None,
    "maxSurge": ("25%",),
    "maxUnavailable": ("25%",),
    "creationTimestamp": None,
    "replicas": (1,),
    "allocatable": None,
    "nodeInfo": None,
    "daemonEndpoints": None,
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "lastHeartbeatTime": None,
    "phase": ("Pending",),
    "qosClass": None,
    "type": ("",),
    "status": ("",),
}


def _undefaulted(value: Any) -> Any:
    if isinstance(value, list):
        return [_undefaulted(one) for one in value if not _is_default_toleration(one)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, one in value.items():
        if name in DEFAULTS and (DEFAULTS[name] is None or one in DEFAULTS[name]):
            continue
        one = _undefaulted(one)
        if one not in ({}, [], None):
            kept[name] = one
    return kept


def _is_default_toleration(item: Any) -> bool:
    return isinstance(item, dict) and item.get("effect") == "NoExecute" and item.get("tolerationSeconds") == 300
