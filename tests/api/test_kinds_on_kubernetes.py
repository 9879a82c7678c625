"""Our structs against a real API server and against Cluster API's own definitions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect

from applecart.api import capi
from applecart.api.apps import Deployment
from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.core import ConfigMap, Namespace, Secret, Service, ServiceAccount
from applecart.api.events import Event, EventSeries
from applecart.api.meta import Object, ObjectMeta, document, micro_time
from applecart.api.pods import ObjectReference, Pod
from applecart.api.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from tests.api.kinds import kind_id
from tests.api.raw_api import RawApi, collection
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

WHOLE_SECOND = datetime(2026, 1, 1, tzinfo=UTC)
TYPE_NAMES: dict[type, str] = {
    inspect.StrType: "string",
    inspect.DateTimeType: "string",
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.DictType: "object",
}
POD = {
    "containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}}]
}
VOLUMES = [
    {"name": "s", "secret": {"secretName": "s"}},
    {"name": "h", "hostPath": {"path": "/h"}},
    {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
]
MINIMAL: list[tuple[type[Object], dict[str, Any]]] = [
    (Pod, {"spec": {**POD, "serviceAccountName": "a", "volumes": VOLUMES, "tolerations": [{"key": "k", "value": "v"}]}}),
    (Service, {"spec": {"ports": [{"port": 80}]}}),
    (
        Deployment,
        {
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
            }
        },
    ),
    (ServiceAccount, {}),
    (Secret, {"data": {"a": "Yg=="}}),
    (Lease, {"spec": {"holderIdentity": "a"}}),
]

PRESENT: list[type[Object]] = [Namespace, ConfigMap, Service, Lease, ClusterRole, ClusterRoleBinding, Role, RoleBinding]


@pytest.fixture
def api(real_cluster: FullCluster) -> RawApi:
    return RawApi(real_cluster)


@pytest.mark.parametrize(("kind", "document"), MINIMAL, ids=lambda value: getattr(value, "__name__", ""))
def test_a_default_the_server_fills_in_is_never_masked_by_one_of_ours(
    api: RawApi, namespace: str, kind: type[Object], document: dict[str, Any]
) -> None:
    """Where the server has a default, unset must be None with us: else an explicit zero could not be told from nothing."""
    resource = kind.resource
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}, **document}
    code, stored = api.create(resource, namespace, body)
    assert code == 201, stored
    masked = list(_masked(inspect.type_info(kind), body, stored, kind.__name__))
    assert [path for path in masked if path not in SET_ON_EVERY_OBJECT] == []


# Not defaults but facts of this object, which nobody leaves out on purpose.
SET_ON_EVERY_OBJECT = {
    *("Pod.status.phase", "Pod.status.qosClass", "Secret.type"),
    *("Service.spec.clusterIP", "Service.spec.clusterIPs"),
}


def _masked(type_: inspect.Type, sent: Any, stored: Any, path: str) -> Iterator[str]:
    """Fields the server filled in with something, for which our struct has a default that is not None."""
    if isinstance(type_, inspect.Metadata):
        yield from _masked(type_.type, sent, stored, path)
    elif isinstance(type_, inspect.UnionType):
        for choice in type_.types:
            yield from _masked(choice, sent, stored, path)
    elif isinstance(type_, inspect.VarTupleType) and isinstance(stored, list):
        for mine, theirs in zip(sent or [], stored, strict=False):  # what the server adds, it adds whole
            yield from _masked(type_.item_type, mine, theirs, f"{path}[]")
    elif isinstance(type_, inspect.StructType) and isinstance(stored, dict) and type_.cls is not ObjectMeta:
        for field in type_.fields:
            name, here = field.encode_name, f"{path}.{field.encode_name}"
            mine = sent.get(name) if isinstance(sent, dict) else None
            theirs = stored.get(name)
            is_filled_in = mine is None and theirs is not None and not isinstance(theirs, dict)
            if is_filled_in and theirs and not field.required and field.default is not None:
                yield here
            yield from _masked(field.type, mine, theirs, here)


@pytest.mark.parametrize("kind", PRESENT, ids=kind_id)
def test_whatever_a_fresh_cluster_holds_can_be_decoded(api: RawApi, kind: type[Object]) -> None:
    """Roles with null rules, objects without a spec, fields from newer versions: nothing may stop a list."""
    _, listed = api.call("GET", collection(kind.resource, ""))
    assert listed["items"], "a fresh cluster holds some"
    for item in listed["items"]:
        assert msgspec.convert(item, kind).name == item["metadata"]["name"]


def test_a_lease_renewed_on_a_whole_second_is_accepted(api: RawApi, namespace: str) -> None:
    spec = LeaseSpec(holder_identity="a", acquire_time=micro_time(WHOLE_SECOND), renew_time=micro_time(WHOLE_SECOND))
    lease = Lease(metadata=ObjectMeta(name="a"), spec=spec)
    code, stored = api.create(Lease.resource, namespace, document(lease))
    assert (code, stored["spec"]["renewTime"]) == (201, "2026-01-01T00:00:00.000000Z")


def test_a_micro_time_without_its_digits_is_what_the_server_refuses(api: RawApi, namespace: str) -> None:
    """The reason why such fields are strings with us; when this fails they may become datetimes."""
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "b"}}
    code, _ = api.create(Lease.resource, namespace, {**body, "spec": {"renewTime": "2026-01-01T00:00:00Z"}})
    assert code == 400


def test_an_event_with_a_series_is_accepted(api: RawApi, namespace: str) -> None:
    event = Event(
        metadata=ObjectMeta(name="a", namespace=namespace),
        involved_object=ObjectReference(kind="Pod", namespace=namespace, name="p"),
        type="Normal",
        reason="Adopted",
        action="Adopt",
        event_time=micro_time(WHOLE_SECOND),
        series=EventSeries(count=2, last_observed_time=micro_time(WHOLE_SECOND)),
        reporting_component="applecart.dev/provider",
        reporting_instance="a",
    )
    code, stored = api.create(Event.resource, namespace, document(event))
    assert code == 201, stored
    assert msgspec.convert(stored, Event).series == event.series


@pytest.mark.parametrize(
    ("version", "kind"),
    [(version, kind) for version, kinds in capi.KINDS.items() for kind in kinds],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_cluster_api_has_every_field_we_read_of_it(kube_programs: Path, version: str, kind: type[Object]) -> None:
    path = kube_programs / "cluster-api-crds" / f"cluster.x-k8s.io_{kind.resource.plural}.yaml"
    definition = yaml.safe_load(path.read_text(encoding="utf-8"))
    (schema,) = [v["schema"]["openAPIV3Schema"] for v in definition["spec"]["versions"] if v["name"] == version]
    assert list(_missing(inspect.type_info(kind), schema, kind.__name__)) == []


def _missing(type_: inspect.Type, schema: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(type_, inspect.Metadata):
        yield from _missing(type_.type, schema, path)
    elif isinstance(type_, inspect.UnionType):
        others = [t for t in type_.types if not isinstance(t, inspect.NoneType)]
        if len(others) == 1:
            yield from _missing(others[0], schema, path)
        elif not schema.get("x-kubernetes-int-or-string"):
            yield f"{path} is no int-or-string"
    elif isinstance(type_, inspect.StructType):
        if type_.cls is ObjectMeta:
            return
        properties = schema.get("properties", {})
        for field in type_.fields:
            here = f"{path}.{field.encode_name}"
            if field.encode_name not in properties:
                yield f"{here} is no field of Cluster API"
            else:
                yield from _missing(field.type, properties[field.encode_name], here)
    elif isinstance(type_, inspect.VarTupleType):
        yield from _missing(type_.item_type, schema.get("items", {}), f"{path}[]")
    elif schema.get("type") != TYPE_NAMES[type(type_)]:
        yield f"{path} is a {schema.get('type')}"
