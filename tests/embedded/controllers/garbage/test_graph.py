"""Who owns whom, whom a change concerns, and which kinds are followed."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.api.meta import Key, Object, ObjectMeta, OwnerReference, Resource
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.graph import (
    Graph,
    Monitors,
    followed,
    is_described_by,
    is_foreground,
    is_orphaning,
)
from applecart.kube.discovery import Discovery, Served
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import PartialObject
from tests.embedded.controllers.garbage.owned import CLUSTER_ROLES, owned, refers_to
from tests.embedded.controllers.garbage.scenarios import THINGS, Thing, ensure_things
from tests.embedded.controllers.scene import scene
from tests.embedded.controllers.stages import CA_PEM, api_in_memory
from tests.virtual_time import elapse

ALL = frozenset({"create", "delete", "get", "list", "patch", "update", "watch"})


def graph_of(*objects: PartialObject) -> Graph:
    graph = Graph()
    for obj in objects:
        graph.observe(obj)
    return graph


def uids(objects: list[Object]) -> list[str]:
    return [obj.uid for obj in objects]


def test_dependents_are_found_by_their_owners_uid() -> None:
    graph = graph_of(owned("a"), owned("b", ["a"]), owned("c", ["a", "b"]))
    assert uids(graph.dependents("a")) == ["b", "c"]
    assert uids(graph.dependents("b")) == ["c"]
    assert uids(graph.dependents("c")) == []


def test_dependents_of_an_owner_that_was_never_seen_are_found_too() -> None:
    assert uids(graph_of(owned("b", ["a"])).dependents("a")) == ["b"]


def test_only_dependents_that_say_so_block() -> None:
    blocking = owned("b", [refers_to("a", blocks=True)])
    graph = graph_of(owned("a"), blocking, owned("c", ["a"]), owned("d", [refers_to("a", blocks=False)]))
    assert uids(graph.blocking("a")) == ["b"]


def test_an_object_without_owners_needs_no_look() -> None:
    assert Graph().observe(owned("a")) == []


def test_an_object_whose_owner_is_known_needs_no_look() -> None:
    assert graph_of(owned("a")).observe(owned("b", ["a"])) == []


@pytest.mark.parametrize(
    "reference",
    [
        refers_to("unknown"),
        msgspec.structs.replace(refers_to("a"), name="other"),
        msgspec.structs.replace(refers_to("a"), kind="Secret"),
        msgspec.structs.replace(refers_to("a"), api_version="apps/v1"),
    ],
    ids=["unknown uid", "other name", "other kind", "other group"],
)
def test_an_object_whose_owner_is_not_what_it_says_is_looked_at(reference: OwnerReference) -> None:
    graph = graph_of(owned("a"))
    obj = owned("b", [reference])
    assert graph.observe(obj) == ["b"]
    assert graph.owner_of(reference, obj) is None


def test_another_version_of_the_owners_group_is_the_same_owner() -> None:
    owner = owned("a", resource=CLUSTER_ROLES)
    reference = msgspec.structs.replace(refers_to("a", resource=CLUSTER_ROLES), api_version=f"{CLUSTER_ROLES.group}/v1beta1")
    assert is_described_by(owner, reference)


def test_an_owner_in_another_namespace_is_none_but_one_of_the_cluster_is() -> None:
    graph = graph_of(owned("a", namespace="far"), owned("r", resource=CLUSTER_ROLES))
    assert graph.observe(owned("b", ["a"])) == ["b"]
    assert graph.observe(owned("c", [refers_to("r", resource=CLUSTER_ROLES)])) == []


def test_dependents_that_came_before_an_owner_elsewhere_are_looked_at_when_it_comes() -> None:
    graph = graph_of(owned("b", ["a"]), owned("c", ["a"], namespace="far"))
    assert graph.observe(owned("a", namespace="far")) == ["b"]


def test_when_an_owner_goes_its_dependents_are_looked_at() -> None:
    graph = graph_of(owned("a"), owned("b", ["a"]), owned("c", ["b"]))
    assert graph.forget("a") == ["b"]
    assert uids(graph.dependents("a")) == ["b"]


def test_an_object_that_is_only_dropped_has_no_consequences() -> None:
    graph = graph_of(owned("a"), owned("b", ["a"]))
    graph.drop("a")
    assert graph.get("a") is None
    assert uids(graph.dependents("a")) == ["b"]


def test_an_owner_that_begins_to_go_in_foreground_is_looked_at_with_its_dependents() -> None:
    graph = graph_of(owned("a"), owned("b", ["a"]), owned("c", ["a"]))
    assert graph.observe(owned("a", finalizers=[FOREGROUND_DELETION], is_deleted=True)) == ["b", "c", "a"]
    assert graph.observe(owned("a", finalizers=[FOREGROUND_DELETION, "x/y"], is_deleted=True)) == ["a"]


def test_a_new_dependent_of_an_owner_that_goes_in_foreground_is_looked_at() -> None:
    graph = graph_of(owned("a", finalizers=[FOREGROUND_DELETION], is_deleted=True))
    assert graph.observe(owned("b", ["a"])) == ["b"]


def test_an_owner_that_waits_is_looked_at_when_a_dependent_goes_or_stops_to_block() -> None:
    waiting = owned("a", finalizers=[FOREGROUND_DELETION], is_deleted=True)
    graph = graph_of(waiting, owned("b", [refers_to("a", blocks=True)]), owned("c", [refers_to("a", blocks=True)]))
    assert "a" in graph.observe(owned("b", [refers_to("a", blocks=False)]))
    assert "a" in graph.observe(owned("c"))
    graph.observe(owned("d", ["a"]))
    assert "a" in graph.forget("d")


def test_an_owner_that_does_not_wait_is_not_looked_at_when_a_dependent_goes() -> None:
    assert graph_of(owned("a"), owned("b", [refers_to("a", blocks=True)])).forget("b") == []


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"a": ["a"]}, True),
        ({"a": ["b"], "b": ["a"]}, True),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, True),
        ({"a": ["b"], "b": []}, False),
        ({"a": ["b"], "b": ["b"]}, False),
        ({"a": ["b", "d"], "b": ["a"]}, False),
        ({"a": ["b"], "b": ["a", "d"]}, False),
    ],
    ids=["itself", "two", "three", "a line", "a circle below", "another dependent", "another dependent below"],
)
def test_who_waits_only_for_those_who_wait_for_it(edges: dict[str, list[str]], expected: bool) -> None:
    """Edges lead from an owner to those who block it; `d` is not being deleted."""
    graph = Graph()
    for uid in "abcd":
        owners = [refers_to(owner, blocks=True) for owner, dependents in edges.items() if uid in dependents]
        is_going = uid != "d"
        graph.observe(owned(uid, owners, finalizers=[FOREGROUND_DELETION] if is_going else [], is_deleted=is_going))
    assert graph.waits_for_itself("a") is expected


class Uid(str):
    """Counts how often uids are compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Uid.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_the_uids_of_many_owners_are_not_compared_one_by_one() -> None:
    """A label on an object of 9,000 owners held up the whole API for 2 s."""
    owners = [msgspec.structs.replace(refers_to(str(number)), uid=Uid(number)) for number in range(100)]
    graph = graph_of(owned("a", owners))
    Uid.compared = 0
    graph.observe(owned("a", owners, finalizers=["x/y"]))
    assert Uid.compared <= 10 * len(owners)


def test_who_waits_for_itself_is_found_without_a_look_at_every_reference_of_every_dependent() -> None:
    """Objects that all own each other, deleted in foreground: each step read all references of all that block."""
    uids = [str(number) for number in range(20)]
    owners = [msgspec.structs.replace(refers_to(uid, blocks=True), uid=Uid(uid)) for uid in uids]
    graph = graph_of(*(owned(uid, owners, finalizers=[FOREGROUND_DELETION], is_deleted=True) for uid in uids))
    Uid.compared = 0
    assert graph.waits_for_itself("0")
    assert Uid.compared <= 2 * len(owners) ** 2


def test_an_object_that_orphans_is_looked_at_alone() -> None:
    graph = graph_of(owned("a"), owned("b", ["a"]))
    assert graph.observe(owned("a", finalizers=[ORPHAN_DEPENDENTS], is_deleted=True)) == ["a"]


@pytest.mark.parametrize(
    ("finalizers", "is_deleted"), [((), True), ((FOREGROUND_DELETION, ORPHAN_DEPENDENTS), False), (("x/y",), True)]
)
def test_a_finalizer_means_something_only_on_a_deleted_object(finalizers: tuple[str, ...], is_deleted: bool) -> None:
    obj = owned("a", finalizers=finalizers, is_deleted=is_deleted)
    assert not is_foreground(obj)
    assert not is_orphaning(obj)


UIDS = st.sampled_from("abcdef")

CHANGES = st.lists(st.tuples(st.sampled_from(["observe", "forget", "drop"]), UIDS, st.lists(UIDS, max_size=3)), max_size=30)


@given(CHANGES)
def test_the_index_is_what_a_scan_of_all_objects_would_find(changes: list[tuple[str, str, list[str]]]) -> None:
    graph, model = Graph(), dict[str, list[str]]()
    for what, uid, owners in changes:
        if what == "observe":
            looks = graph.observe(owned(uid, owners))
            model[uid] = owners
        else:
            looks = graph.forget(uid) if what == "forget" else []
            graph.drop(uid)
            model.pop(uid, None)
        assert set(looks) <= {*model, uid}
    for uid in "abcdef":
        assert {obj.uid for obj in graph.dependents(uid)} == {one for one, owners in model.items() if uid in owners}
    assert len(graph) == len(model)


@given(CHANGES)
def test_whoever_loses_an_owner_is_looked_at(changes: list[tuple[str, str, list[str]]]) -> None:
    graph = Graph()
    for what, uid, owners in changes:
        if what == "observe":
            known, obj = graph.get(uid), owned(uid, owners)
            is_news = known is None or known.metadata.owner_references != obj.metadata.owner_references
            looks = graph.observe(obj)
            if is_news and any(graph.get(owner) is None for owner in owners):
                assert uid in looks
        elif what == "forget":
            orphans = {obj.uid for obj in graph.dependents(uid)} - {uid}
            assert orphans <= set(graph.forget(uid))


def served(group: str, plural: str, *, lacks: str = "", is_preferred: bool = True, version: str = "v1") -> Served:
    return Served(Resource(group, version, plural, plural), ALL - {lacks}, is_preferred)


def test_what_can_be_deleted_listed_and_watched_is_followed_except_events() -> None:
    discovery = Discovery(
        (
            served("", "pods"),
            served("", "events"),
            served("events.k8s.io", "events"),
            served("x.test", "events"),
            served("a.test", "undeletable", lacks="delete"),
            served("a.test", "unlistable", lacks="list"),
            served("a.test", "unwatchable", lacks="watch"),
            served("a.test", "readonly", lacks="update"),
        )
    )
    assert list(followed(discovery)) == ["pods", "events.x.test", "readonly.a.test"]


def test_a_resource_is_followed_once_in_its_preferred_version() -> None:
    discovery = Discovery(
        (served("a.test", "things", version="v2"), served("a.test", "things", version="v1", is_preferred=False))
    )
    assert [resource.version for resource in followed(discovery).values()] == ["v2"]


async def test_objects_of_a_kind_are_known_while_the_kind_is_served(clock: Clock) -> None:
    async with api_in_memory(clock) as (client, _), scene(client, "test", CA_PEM) as stage:
        graph, found = Graph(), list[Discovery]()
        manager = Manager(client)
        monitors = Monitors(manager, graph, lambda _: None, found.append)
        manager.background("monitors", monitors.run)
        task = asyncio.create_task(manager.run())
        await monitors.ready()
        await ensure_things(stage)
        thing = await client.create(Thing(metadata=ObjectMeta(name="thing", namespace="test")))
        await elapse(10)
        assert graph.get(thing.uid) is not None
        assert found[-1].find("applecart.test/v1", "Thing") == Thing.resource
        await client.delete(CustomResourceDefinition, Key("", THINGS))
        await elapse(60)
        assert graph.get(thing.uid) is None
        assert THINGS not in {informer.kind.resource.label for informer in manager.informers}
        assert found[-1].find("applecart.test/v1", "Thing") is None
        task.cancel()
        await asyncio.wait([task])
