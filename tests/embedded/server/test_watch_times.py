"""When a watch says something and what its first words are, on virtual time; and how lists show their items."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from applecart.api.crd import Definition
from applecart.api.meta import Object, Part, Resource
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.embedded.server.watching import BOOKMARK_BEFORE_END_S, BOOKMARK_EVERY_S, LONGEST_S, SHORTEST_S
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.kube.embedded_api import define, forget, serving
from tests.kube.objects import config_map, pod
from tests.virtual_time import elapse

PODS = "/api/v1/namespaces/ci/pods"
MAPS = "/api/v1/namespaces/ci/configmaps"


class WidgetSpec(Part):
    size: int = 0


class Widget(Object):
    resource = Resource("example.com", "v1", "Widget", "widgets")

    spec: WidgetSpec = WidgetSpec()


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock, ["ci"]) as running:
        yield running


@pytest.fixture
async def client(running: RunningApi, clock: Clock) -> Client:
    return Client(running.transport(), clock)


async def frames(running: RunningApi, path: str, **query: str) -> list[tuple[float, dict[str, Any]]]:
    """Everything a watch says until the server ends it, with the seconds since it began."""
    now = asyncio.get_running_loop().time
    started_s = now()
    stream = await running.transport().open(Request("GET", path, (("watch", "1"), *query.items())))
    seen = []
    while chunk := await stream.read():
        seen += [(round(now() - started_s, 3), json.loads(line)) for line in chunk.splitlines()]
    seen.append((round(now() - started_s, 3), {"type": "END"}))
    return seen


async def test_bookmarks_come_once_a_minute_and_shortly_before_the_end(running: RunningApi) -> None:
    seen = await frames(running, PODS, allowWatchBookmarks="true", timeoutSeconds="150")
    assert [(at_s, frame["type"]) for at_s, frame in seen] == [
        (BOOKMARK_EVERY_S, "BOOKMARK"),
        (2 * BOOKMARK_EVERY_S, "BOOKMARK"),
        (150 - BOOKMARK_BEFORE_END_S, "BOOKMARK"),
        (150, "END"),
    ]


async def test_a_bookmark_is_of_the_kind_and_at_the_newest_revision(running: RunningApi, client: Client) -> None:
    watching = asyncio.create_task(frames(running, PODS, allowWatchBookmarks="true", timeoutSeconds="10"))
    await elapse(1)
    other = await client.create(config_map("ci", "a"))
    [(_, frame), _] = await watching
    assert (frame["object"]["kind"], frame["object"]["apiVersion"]) == ("Pod", "v1")
    assert frame["object"]["metadata"]["resourceVersion"] == other.revision


async def test_a_watch_that_asks_for_no_bookmarks_gets_none(running: RunningApi) -> None:
    assert [at_s for at_s, _ in await frames(running, PODS, timeoutSeconds="150")] == [150]


async def test_a_watch_that_names_no_end_is_ended_after_half_an_hour_to_an_hour(running: RunningApi) -> None:
    ends = {(await frames(running, PODS))[-1][0] for _ in range(5)}
    assert all(SHORTEST_S <= end_s <= LONGEST_S for end_s in ends)
    assert len(ends) == 5


@pytest.mark.parametrize("revision", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}], ids=repr)
async def test_a_watch_without_a_revision_begins_with_what_exists(
    running: RunningApi, client: Client, revision: dict[str, str]
) -> None:
    for name in ("b", "a"):
        await client.create(pod("ci", name))
    seen = await frames(running, PODS, timeoutSeconds="1", **revision)
    told = [(frame["type"], frame["object"]["metadata"]["name"]) for _, frame in seen[:-1]]
    assert told == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_streaming_list_says_when_the_state_is_complete(running: RunningApi, client: Client) -> None:
    await client.create(config_map("ci", "a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    first, second, *_ = await frames(running, MAPS, timeoutSeconds="1", **query)
    assert (first[1]["type"], second[1]["type"]) == ("ADDED", "BOOKMARK")
    assert second[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_revision_that_the_server_forgot_is_one_error_and_the_end(running: RunningApi, client: Client) -> None:
    before = await client.create(config_map("ci", "a"))
    await client.create(config_map("ci", "b"))
    await forget(running)
    seen = await frames(running, MAPS, resourceVersion=before.revision)
    assert [(at_s, frame["type"]) for at_s, frame in seen] == [(0, "ERROR"), (0, "END")]
    assert (seen[0][1]["object"]["code"], seen[0][1]["object"]["reason"]) == (410, "Expired")


async def test_items_of_built_in_kinds_come_without_their_type_and_others_with_it(running: RunningApi, client: Client) -> None:
    await define(client, Definition(Widget, "wid"))
    await client.create(pod("ci", "a"))
    body = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":7}}'
    widgets = "/apis/example.com/v1/namespaces/ci/widgets"
    await client.call(Request("POST", widgets, body=body))
    of_pods = json.loads((await client.call(Request("GET", PODS))).body)
    assert (of_pods["kind"], "kind" in of_pods["items"][0]) == ("PodList", False)
    of_widgets = json.loads((await client.call(Request("GET", widgets))).body)
    (item,) = of_widgets["items"]
    assert (of_widgets["kind"], item["kind"], item["spec"]) == ("WidgetList", "Widget", {"size": 7})


@pytest.mark.parametrize("path", ["/nowhere", "/apis/apps/v1", "/apis/example.com/v1/widgets", f"{PODS}/a/nothing", "/api/v2"])
async def test_paths_that_lead_nowhere(running: RunningApi, path: str) -> None:
    assert (await running.transport().send(Request("GET", path))).status == 404


async def test_the_ages_that_a_watch_shows_are_those_of_its_events(running: RunningApi, client: Client) -> None:
    """`kubectl get -w` once said 0s for ever: the age was that of the moment the watch began."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    made = await client.create(pod("ci", "job-1"))
    stream = await running.transport().open(Request("GET", PODS, (("watch", "1"),), accept=accept))
    ages: list[str] = []
    names: list[str] = []
    for _ in range(2):
        frame = json.loads((await stream.read()).splitlines()[0])
        names = names or [column["name"] for column in frame["object"]["columnDefinitions"]]
        ages.append(frame["object"]["rows"][0]["cells"][names.index("Age")])
        await elapse(90)
        await client.patch(type(made), made.key, Merge({"metadata": {"labels": {"seen": "yes"}}}))
    assert ages == ["0s", "90s"]
    await stream.aclose()
