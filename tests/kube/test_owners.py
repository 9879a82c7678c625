"""Owners are matched by uid, and only one of them controls."""

import msgspec
import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Object, ObjectMeta, OwnerReference
from applecart.api.nodes import Node
from applecart.kube.owners import is_owned_by, owner_reference

OWNER = ConfigMap(metadata=ObjectMeta(name="pool", namespace="ci", uid="uid-1"))


def owned(*references: OwnerReference) -> Object:
    return ConfigMap(metadata=ObjectMeta(name="child", namespace="ci", uid="uid-9", owner_references=references))


def test_a_controlling_owner_is_named_in_full_and_blocks_its_own_deletion() -> None:
    assert msgspec.to_builtins(owner_reference(OWNER)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "pool",
        "uid": "uid-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_an_owner_that_does_not_control_says_nothing_about_it() -> None:
    reference = owner_reference(Node(metadata=ObjectMeta(name="mac-7", uid="uid-7")), controller=False)
    assert msgspec.to_builtins(reference) == {"apiVersion": "v1", "kind": "Node", "name": "mac-7", "uid": "uid-7"}


def test_an_object_the_api_does_not_have_yet_owns_nothing() -> None:
    with pytest.raises(ValueError, match="ConfigMap ci/new cannot own anything"):
        owner_reference(ConfigMap(metadata=ObjectMeta(name="new", namespace="ci")))


def test_an_owner_made_again_under_the_same_name_does_not_own_its_predecessors_children() -> None:
    child = owned(owner_reference(OWNER))
    reborn = msgspec.structs.replace(OWNER, metadata=msgspec.structs.replace(OWNER.metadata, uid="uid-2"))
    assert is_owned_by(child, OWNER)
    assert not is_owned_by(child, reborn)


def test_an_owner_among_several_owns_without_controlling() -> None:
    other = Node(metadata=ObjectMeta(name="mac-7", uid="uid-7"))
    child = owned(owner_reference(other, controller=False), owner_reference(OWNER))
    assert child.controller == owner_reference(OWNER)
    assert is_owned_by(child, other)
    assert owned().controller is None
