"""What becomes of owned objects, as stories that every garbage collector tells the same."""

from contextlib import suppress

import msgspec

from applecart.api.apiextensions import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceNames,
    CustomResourceVersion,
)
from applecart.api.core import ConfigMap, Secret
from applecart.api.events import Event
from applecart.api.meta import Object, ObjectMeta, OwnerReference, Resource
from applecart.api.rbac import ClusterRole
from applecart.kube.errors import NotFound
from applecart.kube.owners import owner_reference
from applecart.kube.patch import Merge
from tests.embedded.controllers.scene import HOLD, Scenario, Scene, plain_reference

THINGS = "things.applecart.test"


class Thing(Object):
    resource = Resource("applecart.test", "v1", "Thing", "things")


async def a_chain_of_dependents_goes_with_its_first_owner(scene: Scene) -> None:
    first = await scene.config_map("first")
    second = await scene.config_map("second", [owner_reference(first)])
    third = await scene.client.create(
        Secret(metadata=ObjectMeta(name="third", namespace=scene.namespace, owner_references=(owner_reference(second),)))
    )
    bystander = await scene.config_map("bystander")
    await scene.delete(first)
    await scene.gone(second)
    await scene.gone(third)
    await scene.stays(bystander)


async def an_object_with_one_owner_left_stays_and_forgets_the_other(scene: Scene) -> None:
    gone, left = await scene.config_map("gone"), await scene.config_map("left")
    shared = await scene.config_map("shared", [plain_reference(gone), owner_reference(left)])
    await scene.delete(gone)
    await scene.owned_only_by(shared, left)
    await scene.stays(shared)
    await scene.delete(left)
    await scene.gone(shared)


async def orphans_live_on_without_their_owner(scene: Scene) -> None:
    owner, other = await scene.config_map("owner"), await scene.config_map("other")
    alone = await scene.config_map("alone", [owner_reference(owner)])
    shared = await scene.config_map("shared", [plain_reference(owner), owner_reference(other)])
    await scene.delete(owner, "Orphan")
    await scene.gone(owner)
    await scene.owned_only_by(alone)
    await scene.owned_only_by(shared, other)
    await scene.stays(alone, shared)


async def in_foreground_an_owner_waits_for_those_who_block(scene: Scene) -> None:
    owner = await scene.config_map("owner")
    blocking = await scene.config_map("blocking", [owner_reference(owner)], [HOLD])
    loose = await scene.config_map("loose", [plain_reference(owner)], [HOLD])
    await scene.delete(owner, "Foreground")
    await scene.until(ConfigMap, blocking.key, lambda now: now is not None and now.is_being_deleted, "it is being deleted")
    await scene.settled()
    waiting = await scene.client.get(ConfigMap, owner.key)
    assert waiting.metadata.finalizers == ("foregroundDeletion",)
    await scene.release(blocking)
    await scene.gone(blocking)
    await scene.gone(owner)
    await scene.until(ConfigMap, loose.key, lambda now: now is not None and now.is_being_deleted, "it is being deleted")
    await scene.release(loose)
    await scene.gone(loose)


async def in_foreground_the_last_dependent_goes_first(scene: Scene) -> None:
    top = await scene.config_map("top")
    middle = await scene.config_map("middle", [owner_reference(top)])
    bottom = await scene.config_map("bottom", [owner_reference(middle)], [HOLD])
    await scene.settled()
    await scene.delete(top, "Foreground")
    await scene.until(ConfigMap, bottom.key, lambda now: now is not None and now.is_being_deleted, "it is being deleted")
    await scene.settled()
    assert (await scene.client.get(ConfigMap, middle.key)).metadata.finalizers == ("foregroundDeletion",)
    await scene.release(bottom)
    for obj in (bottom, middle, top):
        await scene.gone(obj)


async def a_dependent_with_another_owner_does_not_hold_up_a_foreground_deletion(scene: Scene) -> None:
    going, staying = await scene.config_map("going"), await scene.config_map("staying")
    shared = await scene.config_map(
        "shared", [msgspec.structs.replace(owner_reference(going), controller=None), owner_reference(staying)]
    )
    await scene.delete(going, "Foreground")
    await scene.gone(going)
    await scene.owned_only_by(shared, staying)
    await scene.stays(shared)


async def a_dependent_that_stops_to_block_lets_its_owner_go(scene: Scene) -> None:
    owner, other = await scene.config_map("owner"), await scene.config_map("other")
    held = await scene.config_map("held", [owner_reference(owner)], [HOLD])
    await scene.delete(owner, "Foreground")
    await scene.until(ConfigMap, held.key, lambda now: now is not None and now.is_being_deleted, "it is being deleted")
    references = [msgspec.to_builtins(plain_reference(owner)), msgspec.to_builtins(plain_reference(other))]
    await scene.client.patch(ConfigMap, held.key, Merge({"metadata": {"ownerReferences": references}}))
    await scene.gone(owner)
    await scene.release(held)


async def a_circle_of_owners_goes_in_foreground(scene: Scene) -> None:
    await _circle_goes(scene, "Foreground")


async def a_circle_of_owners_goes_in_background(scene: Scene) -> None:
    await _circle_goes(scene, "Background")


async def _circle_goes(scene: Scene, propagation: str) -> None:
    first = await scene.config_map("first")
    second = await scene.config_map("second", [owner_reference(first)])
    third = await scene.config_map("third", [owner_reference(second)])
    back = [msgspec.to_builtins(owner_reference(third))]
    first = await scene.client.patch(ConfigMap, first.key, Merge({"metadata": {"ownerReferences": back}}))
    await scene.stays(first, second, third)
    await scene.delete(first, propagation)
    for obj in (first, second, third):
        await scene.gone(obj)


async def an_owner_is_known_by_its_uid_and_not_by_its_name(scene: Scene) -> None:
    owner = await scene.config_map("owner")
    stranger = msgspec.structs.replace(owner_reference(owner), uid="00000000-0000-4000-8000-000000000001")
    mistaken = await scene.config_map("mistaken", [stranger])
    await scene.gone(mistaken)
    kept = await scene.config_map("kept", [owner_reference(owner)])
    await scene.stays(kept)


async def an_owner_made_again_under_its_name_owns_nothing_of_its_predecessor(scene: Scene) -> None:
    owner = await scene.config_map("owner")
    dependent = await scene.config_map("dependent", [owner_reference(owner)])
    await scene.delete(owner)
    again = await scene.config_map("owner")
    await scene.gone(dependent)
    await scene.stays(again)


async def an_owner_in_another_namespace_counts_as_absent_and_is_told(scene: Scene) -> None:
    other = await scene.another_namespace()
    owner = await scene.config_map("far", namespace=other)
    await scene.present(ConfigMap, owner.key)
    await scene.settled()
    dependent = await scene.config_map("astray", [owner_reference(owner)])
    await scene.gone(dependent)
    eye = await scene.eye(Event)

    def told() -> list[Event]:
        return [event for event in eye if event.involved_object.uid == dependent.uid]

    await eye.wait_until(lambda: bool(told()))
    named = f"[v1/ConfigMap, namespace: {scene.namespace}, name: far, uid: {owner.uid}]"
    assert (told()[0].type, told()[0].reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert told()[0].message == f'ownerRef {named} does not exist in namespace "{scene.namespace}"'
    await scene.stays(owner)


async def an_owner_of_the_whole_cluster_takes_its_dependents_along(scene: Scene) -> None:
    owner = await scene.client.create(ClusterRole(metadata=ObjectMeta(name=f"{scene.namespace}-owner")))
    near = await scene.config_map("near", [owner_reference(owner)])
    far = await scene.config_map("far", [owner_reference(owner)], namespace=await scene.another_namespace())
    await scene.stays(near, far)
    await scene.delete(owner)
    await scene.gone(near)
    await scene.gone(far)


async def an_object_of_the_whole_cluster_with_an_owner_in_a_namespace_is_left_alone(scene: Scene) -> None:
    owner = await scene.config_map("owner")
    metadata = ObjectMeta(name=f"{scene.namespace}-owned", owner_references=(owner_reference(owner),))
    role = await scene.client.create(ClusterRole(metadata=metadata))
    await scene.stays(role)
    await scene.client.delete(ClusterRole, role.key)


async def an_object_whose_owners_kind_is_not_served_is_left_alone(scene: Scene) -> None:
    unknown = OwnerReference(api_version="nobody.test/v1", kind="Ghost", name="x", uid="00000000-0000-4000-8000-000000000002")
    haunted = await scene.config_map("haunted", [unknown])
    owner = await scene.config_map("owner")
    both = await scene.config_map("both", [unknown, plain_reference(owner)])
    await scene.delete(owner)
    await scene.stays(haunted, both)


async def an_owner_that_never_was_leaves_nothing(scene: Scene) -> None:
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name="never", uid="00000000-0000-4000-8000-000000000003")
    await scene.gone(await scene.config_map("left", [reference]))


async def a_kind_that_is_made_later_is_followed_too(scene: Scene) -> None:
    await ensure_things(scene)
    owner = await scene.client.create(Thing(metadata=ObjectMeta(name="owner", namespace=scene.namespace)))
    dependent = await scene.config_map("dependent", [owner_reference(owner)])
    small = await scene.client.create(
        Thing(metadata=ObjectMeta(name="small", namespace=scene.namespace, owner_references=(owner_reference(dependent),)))
    )
    await scene.stays(owner, dependent, small)
    await scene.delete(owner)
    await scene.gone(dependent)
    await scene.gone(small)


async def ensure_things(scene: Scene) -> None:
    names = CustomResourceNames(plural="things", kind="Thing", singular="thing", list_kind="ThingList")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = msgspec.convert({"name": "v1", "served": True, "storage": True, "schema": schema}, CustomResourceVersion)
    spec = CustomResourceDefinitionSpec(group="applecart.test", names=names, scope="Namespaced", versions=(version,))
    definition = CustomResourceDefinition(metadata=ObjectMeta(name=THINGS), spec=spec)
    with suppress(NotFound):
        await scene.client.get(CustomResourceDefinition, definition.key)
        return
    await scene.client.create(definition)
    await scene.until(
        CustomResourceDefinition, definition.key, lambda now: now is not None and now.is_established, "it is established"
    )


SCENARIOS: list[Scenario] = [
    a_chain_of_dependents_goes_with_its_first_owner,
    an_object_with_one_owner_left_stays_and_forgets_the_other,
    orphans_live_on_without_their_owner,
    in_foreground_an_owner_waits_for_those_who_block,
    in_foreground_the_last_dependent_goes_first,
    a_dependent_with_another_owner_does_not_hold_up_a_foreground_deletion,
    a_dependent_that_stops_to_block_lets_its_owner_go,
    a_circle_of_owners_goes_in_foreground,
    a_circle_of_owners_goes_in_background,
    an_owner_is_known_by_its_uid_and_not_by_its_name,
    an_owner_made_again_under_its_name_owns_nothing_of_its_predecessor,
    an_owner_in_another_namespace_counts_as_absent_and_is_told,
    an_owner_of_the_whole_cluster_takes_its_dependents_along,
    an_object_of_the_whole_cluster_with_an_owner_in_a_namespace_is_left_alone,
    an_object_whose_owners_kind_is_not_served_is_left_alone,
    an_owner_that_never_was_leaves_nothing,
    a_kind_that_is_made_later_is_followed_too,
]
