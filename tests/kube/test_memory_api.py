"""What the API in memory has beyond the contract that it shares with real servers: time, snapshots, and its refusals."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kube.transport import Request, Response
from tests.kube.memory_api import MemoryApi
from tests.kube.memory_patches import apply_operations, merge
from tests.kube.memory_selectors import label_selector
from tests.kube.memory_store import BOOKMARK_EVERY_S, LAST_BOOKMARK_S, Kind, MemoryStore, Place
from tests.virtual_time import elapse

PODS = "/api/v1/namespaces/ci/pods"
PLACES = [Place(Kind("", "pods"), "ci", name) for name in "abc"]


@pytest.fixture
async def server(clock: Clock) -> MemoryApi:
    return MemoryApi(clock)


async def post(server: MemoryApi, path: str, body: dict[str, Any]) -> Response:
    return await server.send(Request("POST", path, body=json.dumps(body).encode()))


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {}}


async def test_bookmarks_come_once_a_minute_and_shortly_before_the_end(server: MemoryApi) -> None:
    now = asyncio.get_running_loop().time
    started_s = now()
    query = (("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "150"))
    stream = await server.open(Request("GET", PODS, query))
    times = []
    while chunk := await stream.read():
        assert json.loads(chunk)["type"] == "BOOKMARK"
        times.append(round(now() - started_s, 3))
    assert times == [BOOKMARK_EVERY_S, 2 * BOOKMARK_EVERY_S, 150 - LAST_BOOKMARK_S]
    assert now() - started_s == pytest.approx(150)


async def test_a_watch_that_asks_for_no_bookmarks_gets_none(server: MemoryApi) -> None:
    stream = await server.open(Request("GET", PODS, (("watch", "1"), ("timeoutSeconds", "150"))))
    assert await stream.read() == b""


async def test_a_watch_without_a_revision_begins_with_what_exists(server: MemoryApi) -> None:
    await post(server, PODS, pod("b"))
    await post(server, PODS, pod("a"))
    stream = await server.open(Request("GET", PODS, (("watch", "1"),)))
    events = [json.loads(line) for line in (await stream.read()).splitlines()]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_closed_server_ends_watches_and_answers_nothing(server: MemoryApi) -> None:
    stream = await server.open(Request("GET", PODS, (("watch", "1"),)))
    reading = asyncio.ensure_future(stream.read())
    await elapse(1)
    await server.aclose()
    with pytest.raises(Unreachable):
        await reading
    with pytest.raises(Unreachable):
        await server.send(Request("GET", PODS))


async def test_a_closed_watch_costs_the_server_nothing_more(server: MemoryApi) -> None:
    stream = await server.open(Request("GET", PODS, (("watch", "1"),)))
    assert len(server.store.watches) == 1
    await stream.aclose()
    assert len(server.store.watches) == 0


async def test_kinds_that_nobody_declared_are_served(server: MemoryApi) -> None:
    path = "/apis/example.com/v1/namespaces/ci/widgets"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"deep": [{"x": None}]}}
    assert (await post(server, path, body)).status == 201
    items = json.loads((await server.send(Request("GET", path))).body)["items"]
    assert [(item["kind"], item["spec"]) for item in items] == [("Widget", {"deep": [{"x": None}]})]


async def test_items_of_built_in_kinds_come_without_their_type(server: MemoryApi) -> None:
    await post(server, PODS, pod("a"))
    listed = json.loads((await server.send(Request("GET", PODS))).body)
    assert listed["kind"] == "PodList"
    assert "kind" not in listed["items"][0]


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps/v1", "/healthz", f"{PODS}/a/log/more"])
async def test_paths_that_lead_nowhere(server: MemoryApi, path: str) -> None:
    response = await server.send(Request("GET", path))
    assert (response.status, json.loads(response.body)["reason"]) == (404, "NotFound")


# The store


writes = st.lists(st.tuples(st.sampled_from(PLACES), st.booleans()), max_size=30)


@given(writes)
def test_every_revision_can_be_read_as_it_was(writes: list[tuple[Place, bool]]) -> None:
    store = MemoryStore()
    states = [(store.revision, dict(store.objects))]
    for place, removes in writes:
        if removes and place not in store.objects:
            continue
        store.commit(place, None if removes else {"metadata": {"name": place.name}})
        states.append((store.revision, dict(store.objects)))
    for revision, objects in states:
        assert store.as_of(revision) == objects
    assert all(later[0] == earlier[0] + 1 for earlier, later in pairwise(states))


# Selectors and patches


labels = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]))


@given(labels, st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]))
def test_every_selector_has_its_opposite(labels: dict[str, str], key: str, value: str) -> None:
    obj = {"metadata": {"labels": labels}}
    opposites = [(f"{key}={value}", f"{key}!={value}"), (f"{key} in ({value})", f"{key} notin ({value})"), (key, f"!{key}")]
    for one, other in opposites:
        assert label_selector(one)(obj) is not label_selector(other)(obj)


json_values = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@given(documents, documents)
def test_a_merge_done_twice_is_a_merge_done_once(target: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once


@given(documents, json_values)
def test_an_added_value_is_read_back_and_removed_again(target: dict[str, Any], value: Any) -> None:
    before = json.dumps(target, sort_keys=True)
    added = apply_operations(target, [{"op": "add", "path": "/new", "value": value}])
    assert added["new"] == value
    assert apply_operations(added, [{"op": "remove", "path": "/new"}]) == target
    assert json.dumps(target, sort_keys=True) == before
