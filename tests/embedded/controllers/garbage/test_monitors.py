"""Which kinds are followed."""

import asyncio

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.meta import Key, ObjectMeta, Resource
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.graph import Graph
from applecart.embedded.controllers.garbage.monitors import Monitors, followed
from applecart.kube.discovery import Discovery, Served
from applecart.kube.informer import Tuning
from applecart.kube.metadata_only import MetadataClient
from tests.embedded.controllers.garbage.scenarios import THINGS, Thing, ensure_things
from tests.embedded.controllers.scene import scene
from tests.embedded.controllers.stages import CA_PEM, api_in_memory
from tests.virtual_time import elapse

ALL = frozenset({"create", "delete", "get", "list", "patch", "update", "watch"})


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
        monitors = Monitors(MetadataClient.of(client), graph, lambda _: None, found.append, clock, Tuning())
        task = asyncio.create_task(monitors.run())
        await monitors.ready()
        await ensure_things(stage)
        thing = await client.create(Thing(metadata=ObjectMeta(name="thing", namespace="test")))
        await elapse(10)
        assert graph.get(thing.uid) is not None
        assert found[-1].find("applecart.test/v1", "Thing") == Thing.resource
        await client.delete(CustomResourceDefinition, Key("", THINGS))
        await elapse(60)
        assert graph.get(thing.uid) is None
        assert found[-1].find("applecart.test/v1", "Thing") is None
        task.cancel()
        await asyncio.wait([task])
