"""The table of built-in types, and the shapes that patches and field ownership read from it."""

import pytest

from applecart.embedded.shape import UNTYPED, Shape
from applecart.embedded.structure.types import (
    SPECIALS,
    StructType,
    ValueType,
    built_in_kinds,
    parse,
    shape_of,
    struct_of,
    type_of,
)


def shape(path: str, kind: str = "Pod", api_version: str = "v1") -> Shape:
    found = shape_of(api_version, kind)
    for name in path.split("."):
        found = found.child(name)
    return found


def test_every_kind_can_be_read_to_its_last_field() -> None:
    seen: set[str] = set()

    def visit(type: ValueType) -> None:
        if type.element is not None:
            visit(type.element)
        elif type.form == "special":
            assert type.name in SPECIALS
        elif type.form == "struct" and type.name not in seen:
            seen.add(type.name)
            walk(type.struct)

    def walk(struct: StructType) -> None:
        for each in struct.fields.values():
            visit(each.type)

    for api_version, kind in built_in_kinds():
        type = type_of(api_version, kind)
        assert type is not None
        walk(type)
    assert len(seen) > 200


def test_kinds_are_known_by_version_and_name() -> None:
    assert ("v1", "Pod") in built_in_kinds()
    assert ("rbac.authorization.k8s.io/v1", "Role") in built_in_kinds()
    assert type_of("v1", "Deployment") is None
    assert type_of("v2", "Pod") is None


def test_delete_options_exist_in_every_group() -> None:
    assert type_of("coordination.k8s.io/v1", "DeleteOptions") is type_of("v1", "DeleteOptions") is not None


@pytest.mark.parametrize(
    ("text", "go"),
    [
        ("[]core/v1.Container", "[]v1.Container"),
        ("map[string][]byte", "map[string][]uint8"),
        ("*core/v1.PullPolicy", "v1.PullPolicy"),
        ("core/v1.ResourceList", "v1.ResourceList"),
        ("map[core/v1.ResourceName]resource.Quantity", "map[v1.ResourceName]resource.Quantity"),
        ("*int64", "int64"),
    ],
)
def test_types_are_named_as_go_prints_them(text: str, go: str) -> None:
    assert parse(text).go == go


def test_inline_members_are_found_beside_the_others_and_remember_where_they_come_from() -> None:
    volume = struct_of("core/v1.Volume")
    assert volume.fields["emptyDir"].embedded == ("VolumeSource",)
    assert [each.name for each in volume.by_number.values()] == ["name", ""]


@pytest.mark.parametrize(
    ("path", "list_type", "keys", "merge_key"),
    [
        ("spec.containers", "map", ("name",), "name"),
        ("spec.tolerations", "atomic", (), ""),
        ("metadata.finalizers", "set", (), ""),
        ("metadata.ownerReferences", "map", ("uid",), "uid"),
        ("status.conditions", "map", ("type",), "type"),
        ("status.podIPs", "map", ("ip",), "ip"),
    ],
)
def test_lists_know_what_identifies_an_item(path: str, list_type: str, keys: tuple[str, ...], merge_key: str) -> None:
    found = shape(path)
    assert (found.sort, found.list_type, found.list_keys, found.merge_key) == ("list", list_type, keys, merge_key)
    assert found.merges == (path != "spec.tolerations")


def test_ports_may_leave_out_their_protocol() -> None:
    containers = shape("spec.containers")
    assert containers.element is not None
    ports = containers.element.child("ports")
    assert (ports.list_keys, dict(ports.key_defaults)) == (("containerPort", "protocol"), {"protocol": "TCP"})
    assert ports.merge_key == "containerPort"
    assert shape("spec.ports", "Service").list_keys == ("port", "protocol")


def test_selectors_are_owned_as_a_whole() -> None:
    assert shape("spec.nodeSelector").is_atomic
    assert shape("spec.selector", "Service").is_atomic
    assert shape("involvedObject", "Event").is_atomic
    assert not shape("metadata.labels").is_atomic


def test_schemas_may_contain_themselves() -> None:
    found = shape("spec.versions", "CustomResourceDefinition", "apiextensions.k8s.io/v1")
    assert found.element is not None
    schema = found.element.child("schema").child("openAPIV3Schema")
    assert schema.child("properties").child("a").child("properties").child("b").fields is not None
    assert schema.child("default") is UNTYPED


def test_a_kind_that_is_not_built_in_has_no_shape() -> None:
    assert shape_of("applecart.dev/v1alpha1", "RunnerPool") is UNTYPED
