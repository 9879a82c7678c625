"""What holds for every kind: it survives the wire, it decodes what Kubernetes sends, and its fields are Kubernetes' own."""

import importlib
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from applecart.api.containers import Container
from applecart.api.core import ConfigMap
from applecart.api.meta import Object
from tests.api.kinds import all_kinds, kind_id
from tests.api.strategies import structs

KINDS = all_kinds()
ORACLES = {
    "v1": "core_v1",
    "apps/v1": "apps_v1",
    "autoscaling/v1": "autoscaling_v1",
    "apiextensions.k8s.io/v1": "apiextensions_v1",
    "authentication.k8s.io/v1": "authentication_v1",
    "authorization.k8s.io/v1": "authorization_v1",
    "coordination.k8s.io/v1": "coordination_v1",
    "node.k8s.io/v1": "node_v1",
    "policy/v1": "policy_v1",
    "rbac.authorization.k8s.io/v1": "rbac_v1",
}
SAME_SCALAR: dict[type, tuple[type, ...]] = {
    inspect.StrType: (inspect.StrType, inspect.DateTimeType),  # MicroTime is a string with us
    inspect.AnyType: (inspect.AnyType, inspect.DictType, inspect.StructType),
}
BUILT_IN = [kind for kind in KINDS if kind.resource.api_version in ORACLES]


def test_every_kind_of_the_foundation_is_found() -> None:
    names = {kind.__name__ for kind in KINDS}
    assert names >= {
        *("Pod", "Node", "Secret", "ConfigMap", "ServiceAccount", "Namespace", "Service", "Event", "Lease", "Deployment"),
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "RuntimeClass", "CustomResourceDefinition"),
        *("TokenReview", "TokenRequest", "SubjectAccessReview", "Scale", "Eviction", "Binding"),
        *("Cluster", "Machine", "MachineSet", "MachineDeployment"),
        *("ScalewayAppleSiliconMachine", "ScalewayAppleSiliconMachineTemplate", "TuistCluster", "RunnerPool"),
    }


def test_a_kind_that_some_test_defines_is_not_held_against_kubernetes() -> None:
    """The order in which tests were loaded decided whether theirs were."""

    class Stray(Object):
        resource = ConfigMap.resource

    assert Stray not in all_kinds()


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_what_is_encoded_decodes_to_the_same(kind: type[Object], data: st.DataObject) -> None:
    obj = data.draw(structs(kind))
    assert msgspec.json.decode(msgspec.json.encode(obj), type=kind) == obj


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_fields_we_do_not_know_do_not_hinder_decoding(kind: type[Object]) -> None:
    """Newer servers send more. Decoding drops it; writes are patches, so it survives on the server."""
    required = {field.name: _smallest(field.type) for field in msgspec.structs.fields(kind) if field.required}
    document = msgspec.to_builtins(kind(**required))
    decoded = msgspec.convert({**document, "metadata": {"name": "a", "managedFields": [{}]}, "future": {"x": [1]}}, kind)
    assert decoded.name == "a"


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_nothing_is_sent_for_a_field_that_was_not_set(kind: type[Object]) -> None:
    required = {field.name: _smallest(field.type) for field in msgspec.structs.fields(kind) if field.required}
    sent = msgspec.to_builtins(kind(**required))
    assert set(sent) == {f.encode_name for f in msgspec.structs.fields(kind) if f.required}


@pytest.mark.parametrize("kind", BUILT_IN, ids=kind_id)
def test_fields_are_named_and_shaped_as_kubernetes_has_them(kind: type[Object]) -> None:
    """lightkube's models are generated from Kubernetes' OpenAPI document; a misspelt wire name is not in them."""
    module = importlib.import_module(f"lightkube.models.{ORACLES[kind.resource.api_version]}")
    oracle = inspect.type_info(getattr(module, kind.__name__))
    assert list(_differences(inspect.type_info(kind), oracle, kind.__name__)) == []


def test_the_comparison_with_the_oracle_notices_a_misspelt_name() -> None:
    class Misspelt(Object):
        resource = KINDS[0].resource
        spec: Container | None = None

    oracle = inspect.type_info(importlib.import_module("lightkube.models.core_v1").Pod)
    found = list(_differences(inspect.type_info(Misspelt), oracle, "Pod"))
    assert "Pod.spec.envFrom: Kubernetes has no such field" in found


def _smallest(type_: Any) -> Any:
    info = inspect.type_info(type_)
    if isinstance(info, inspect.StructType):
        return info.cls(**{f.name: _smallest_of(f.type) for f in info.fields if f.required})
    return _smallest_of(info)


def _smallest_of(info: inspect.Type) -> Any:
    if isinstance(info, inspect.Metadata):
        return _smallest_of(info.type)
    if isinstance(info, inspect.StructType):
        return info.cls(**{f.name: _smallest_of(f.type) for f in info.fields if f.required})
    return {inspect.StrType: "", inspect.IntType: 0, inspect.BoolType: False, inspect.VarTupleType: ()}[type(info)]


def _differences(ours: inspect.Type, oracle: inspect.Type, path: str) -> Iterator[str]:
    ours, oracle = _plain(ours), _plain(oracle)
    if isinstance(ours, inspect.StructType):
        if not isinstance(oracle, inspect.StructType):
            yield f"{path}: Kubernetes has {oracle} here, not an object"
            return
        theirs = {field.encode_name: field for field in oracle.fields}
        for field in ours.fields:
            here = f"{path}.{field.encode_name}"
            if field.encode_name not in theirs:
                yield f"{here}: Kubernetes has no such field"
            else:
                yield from _differences(field.type, theirs[field.encode_name].type, here)
    elif isinstance(ours, inspect.VarTupleType):
        if not isinstance(oracle, inspect.ListType):
            yield f"{path}: Kubernetes has {oracle} here, not a list"
        else:
            yield from _differences(ours.item_type, oracle.item_type, f"{path}[]")
    elif isinstance(ours, inspect.DictType):
        if not isinstance(oracle, inspect.DictType | inspect.StructType):  # a schema is plain values with us
            yield f"{path}: Kubernetes has {oracle} here, not a map"
    elif type(oracle) not in SAME_SCALAR.get(type(ours), (type(ours),)) or not _same_members(ours, oracle):
        yield f"{path}: Kubernetes has {oracle} here, not {ours}"


def _plain(type_: inspect.Type) -> inspect.Type:
    """Without metadata and without None."""
    if isinstance(type_, inspect.Metadata):
        return _plain(type_.type)
    if isinstance(type_, inspect.UnionType):
        others = tuple(t for t in type_.types if not isinstance(t, inspect.NoneType))
        return _plain(others[0]) if len(others) == 1 else inspect.UnionType(others)
    return type_


def _same_members(ours: inspect.Type, oracle: inspect.Type) -> bool:
    if isinstance(ours, inspect.UnionType) and isinstance(oracle, inspect.UnionType):
        return {type(t) for t in ours.types} == {type(t) for t in oracle.types}
    return True
