"""Watching, on every API server: order, selectors, bookmarks, the server's timeout, and revisions that are too old."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest

from applecart.api.core import ConfigMap
from applecart.api.events import Event
from applecart.api.meta import Key
from applecart.api.runners import RunnerPool
from applecart.kube.codec import Frame
from applecart.kube.errors import Expired
from applecart.kube.patch import Merge
from applecart.kube.watch import watch
from tests.kube.backends import ANCIENT_REVISION, Backend
from tests.kube.objects import config_map, runner_pool

Frames = AsyncGenerator[list[Frame[ConfigMap]], None]


async def current_revision(api: Backend) -> str:
    async for page in api.client.pages(ConfigMap, api.namespace):
        return page.metadata.resource_version
    raise AssertionError("a list has at least one page")


def watching(api: Backend, revision: str, labels: str = "", watch_s: int = 30) -> "aclosing[Frames]":
    return aclosing(watch(api.client, ConfigMap, revision, api.namespace, labels=labels, watch_s=watch_s))


async def take(batches: Frames, count: int) -> list[Frame[ConfigMap]]:
    """At least this many of the next events, bookmarks left out."""
    seen: list[Frame[ConfigMap]] = []
    while len(seen) < count:
        seen += [frame for frame in await anext(batches) if frame.type != "BOOKMARK"]
    return seen


def told(frames: list[Frame[ConfigMap]]) -> list[tuple[str, str]]:
    return [(frame.type, frame.object.name) for frame in frames]


async def test_events_come_in_the_order_of_the_writes_whether_they_happened_before_or_after_the_watch_began(
    api: Backend,
) -> None:
    revision = await current_revision(api)
    first = await api.client.create(config_map(api.namespace, "a"))
    await api.client.create(config_map(api.namespace, "b"))
    async with watching(api, revision) as batches:
        before = told(await take(batches, 2))
        await api.client.patch(ConfigMap, first.key, Merge({"data": {"a": "1"}}))
        await api.client.delete(ConfigMap, first.key)
        await api.client.create(config_map(api.namespace, "a"))
        after = told(await take(batches, 3))
    assert before == [("ADDED", "a"), ("ADDED", "b")]
    assert after == [("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_revisions_only_grow_and_a_deletion_has_its_own(api: Backend) -> None:
    revision = await current_revision(api)
    created = await api.client.create(config_map(api.namespace, "a"))
    await api.client.delete(ConfigMap, created.key)
    async with watching(api, revision) as batches:
        frames = await take(batches, 2)
    positions = [int(frame.object.revision) for frame in frames]
    assert int(revision) < positions[0] < positions[1]
    assert positions[0] == int(created.revision)
    assert frames[1].object.uid == created.uid


async def test_a_write_that_changes_nothing_is_no_event(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "a", colour="green"))
    async with watching(api, created.revision) as batches:
        await api.client.patch(ConfigMap, created.key, Merge({"data": {"colour": "green"}}))
        await api.client.create(config_map(api.namespace, "b"))
        assert told(await take(batches, 1)) == [("ADDED", "b")]


async def test_an_object_enters_and_leaves_a_selector_as_if_created_and_deleted(api: Backend) -> None:
    revision = await current_revision(api)
    key = Key(api.namespace, "a")
    await api.client.create(config_map(api.namespace, "a", labels={"pool": "one"}, colour="green"))
    await api.client.patch(ConfigMap, key, Merge({"metadata": {"labels": {"pool": "two"}}}))
    changed = await api.client.patch(ConfigMap, key, Merge({"data": {"colour": "red"}}))
    left = await api.client.patch(
        ConfigMap, key, Merge({"metadata": {"labels": {"pool": "three"}}, "data": {"colour": "blue"}})
    )
    await api.client.delete(ConfigMap, key)
    async with watching(api, revision, labels="pool=two") as batches:
        frames = await take(batches, 3)
    assert [frame.type for frame in frames] == ["ADDED", "MODIFIED", "DELETED"]
    assert frames[1].object.revision == changed.revision
    # The last state that matched, at the revision at which it stopped matching.
    assert frames[2].object.data == {"colour": "red"}
    assert frames[2].object.revision == left.revision


async def test_removing_the_last_finalizer_of_an_object_that_is_going_is_its_deletion(api: Backend) -> None:
    held = await api.client.create(config_map(api.namespace, "a", finalizers=("applecart.dev/test",)))
    await api.client.delete(ConfigMap, held.key)
    await api.client.patch(ConfigMap, held.key, Merge({"metadata": {"finalizers": None}}))
    async with watching(api, held.revision) as batches:
        assert told(await take(batches, 2)) == [("MODIFIED", "a"), ("DELETED", "a")]


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("make", [config_map, runner_pool])  # one whose kind requires a spec, which no bookmark has
async def test_a_quiet_watch_gets_a_bookmark_before_the_server_ends_it(
    api: Backend, make: Callable[[str, str], ConfigMap | RunnerPool]
) -> None:
    """It is beyond what the selector hid, so that resuming there needs no event of others."""
    created = await api.client.create(make(api.namespace, "a"))
    fields = "metadata.name=a"
    for watch_s in (4, 16, 64):  # a busy machine may take longer for the other object than the bookmark waits
        quiet = watch(api.client, type(created), created.revision, api.namespace, fields=fields, watch_s=watch_s)
        async with aclosing(quiet) as batches:
            assert await anext(batches) == []
            other = await api.client.create(make(api.namespace, f"b{watch_s}"))
            frames = [frame async for batch in batches for frame in batch]
        assert {frame.type for frame in frames} == {"BOOKMARK"}
        if int(frames[-1].object.revision) >= int(other.revision):
            return
    pytest.fail("no bookmark was beyond what the selector hid")


async def test_a_watch_resumed_from_its_last_revision_misses_and_repeats_nothing(api: Backend) -> None:
    revision = await current_revision(api)
    for name in ("a", "b"):
        await api.client.create(config_map(api.namespace, name))
    async with watching(api, revision) as batches:
        frames = await take(batches, 1)
    await api.client.create(config_map(api.namespace, "c"))
    first = [frame.object.name for frame in frames]
    async with watching(api, frames[-1].object.revision) as batches:
        rest = [frame.object.name for frame in await take(batches, 3 - len(first))]
    assert first + rest == ["a", "b", "c"]


async def test_a_revision_that_the_server_forgot_is_expired(api: Backend) -> None:
    """On Events, which a real API server serves from its store and not from a cache that remembers longer."""
    await api.compact()
    async with aclosing(watch(api.client, Event, ANCIENT_REVISION, api.namespace)) as batches:
        assert await anext(batches) == []
        with pytest.raises(Expired) as caught:
            await anext(batches)
    assert caught.value.status.code == 410
