"""The informer: equal to the API, whatever happened in between."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Unreachable
from applecart.kube.cache import Change
from applecart.kube.client import Client
from applecart.kube.informer import TELLS_EVERY_S, Informer, NotInTime, Tuning
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.kube.backends import Backend
from tests.kube.embedded_api import forget, lose
from tests.kube.faults import Cut, Ends, Fault, FaultyTransport, Refused, Says, Slow, Stalls, always, in_turn
from tests.virtual_time import elapse

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def config_map(namespace: str, name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels))


@asynccontextmanager
async def following(informer: Informer[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(informer: Informer[ConfigMap]) -> set[str]:
    return {obj.name for obj in informer}


class World:
    """An API in memory with a network in front of the informer, and none in front of the test."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.running = running
        self.direct = Client(running.transport(), clock)
        self.network = FaultyTransport(running.transport())
        self.client = Client(self.network, clock)

    def informer(self, **options: Any) -> Informer[ConfigMap]:
        return Informer(self.client, ConfigMap, "ci", **options)

    async def create(self, name: str, **labels: str) -> ConfigMap:
        return await self.direct.create(config_map("ci", name, **labels))

    async def label(self, name: str, value: str) -> ConfigMap:
        return await self.direct.patch(ConfigMap, Key("ci", name), Merge({"metadata": {"labels": {"v": value}}}))

    async def delete(self, name: str) -> None:
        await self.direct.delete(ConfigMap, Key("ci", name))

    def watches_opened(self) -> int:
        return sum(1 for request in self.network.calls if ("watch", "true") in request.query)

    def lists_read(self) -> int:
        return sum(1 for request in self.network.calls if ("watch", "true") not in request.query)


@pytest.fixture
async def world(running: RunningApi, clock: Clock) -> World:
    return World(running, clock)


# The same on every API


async def test_it_holds_what_was_there_and_follows_what_comes(api: Backend) -> None:
    await api.client.create(config_map(api.namespace, "old"))
    informer = Informer(api.client, ConfigMap, api.namespace, fields="metadata.name!=kube-root-ca.crt")
    async with following(informer):
        await informer.synced()
        assert names(informer) == {"old"}
        created = await api.client.create(config_map(api.namespace, "new"))
        await informer.wait_until(lambda: informer.get(created.key) == created)
        changed = await api.client.patch(ConfigMap, created.key, Merge({"data": {"k": "v"}}))
        await informer.wait_until(lambda: informer.get(created.key) == changed)
        await api.client.delete(ConfigMap, created.key)
        await informer.wait_until(lambda: informer.get(created.key) is None)
        assert names(informer) == {"old"}


async def test_a_list_of_many_pages_is_whole(api: Backend) -> None:
    for number in range(7):
        await api.client.create(config_map(api.namespace, f"page-{number}", paged="yes"))
    informer = Informer(api.client, ConfigMap, api.namespace, labels="paged=yes", tuning=Tuning(page_size=2))
    async with following(informer):
        await informer.synced()
        assert names(informer) == {f"page-{number}" for number in range(7)}


async def test_an_object_that_stops_matching_the_selector_is_gone(api: Backend) -> None:
    created = await api.client.create(config_map(api.namespace, "mine", fleet="runners"))
    informer = Informer(api.client, ConfigMap, api.namespace, labels="fleet=runners")
    async with following(informer):
        await informer.wait_until(lambda: informer.get(created.key) is not None)
        await api.client.patch(ConfigMap, created.key, Merge({"metadata": {"labels": {"fleet": "builders"}}}))
        await informer.wait_until(lambda: informer.get(created.key) is None)


async def test_an_index_finds_objects_by_value(api: Backend) -> None:
    informer = Informer(api.client, ConfigMap, api.namespace, indexes={"fleet": lambda obj: (obj.labels.get("fleet", "none"),)})
    async with following(informer):
        await informer.synced()
        created = await api.client.create(config_map(api.namespace, "mine", fleet="runners"))
        await informer.wait_until(lambda: informer.get(created.key) is not None)
        assert informer.by_index("fleet", "runners") == [created]
        assert informer.by_index("fleet", "builders") == []


# On virtual time, with a network that fails


async def test_an_outage_of_a_day_loses_and_invents_nothing(world: World) -> None:
    for name in ("stays", "goes", "is-reborn"):
        await world.create(name)
    informer = world.informer()
    seen: list[Change[ConfigMap]] = []
    async with following(informer):
        await informer.synced()
        informer.on_change(seen.append)
        await informer.following()
        seen.clear()
        world.network.plan = always(Refused())
        world.network.sever()
        await world.delete("goes")
        await world.delete("is-reborn")
        reborn = await world.create("is-reborn")
        await world.create("comes")
        await forget(world.running)
        await elapse(DAY_S)
        assert names(informer) == {"stays", "goes", "is-reborn"}, "what is known stays known while nobody answers"
        assert seen == []
        world.network.heal()
        await informer.wait_until(lambda: "comes" in names(informer))
    assert {obj.key: obj for obj in informer} == {obj.key: obj for obj in await world.direct.list(ConfigMap, "ci")}
    story = [(change.key.name, change.old is not None, change.new is not None) for change in seen]
    assert sorted(story) == [
        ("comes", False, True),
        ("goes", True, False),
        ("is-reborn", False, True),
        ("is-reborn", True, False),
    ]
    assert informer.get(reborn.key) == reborn


async def test_an_outage_is_told_once_and_its_end_too(world: World, caplog: pytest.LogCaptureFixture) -> None:
    informer = world.informer()
    async with following(informer):
        await informer.following()
        world.network.plan = always(Refused())
        world.network.sever()
        await elapse(DAY_S)
        assert informer.trouble is not None
        assert "connection" in informer.trouble.because
        assert asyncio.get_running_loop().time() - informer.trouble.since == pytest.approx(DAY_S, abs=60)
        world.network.heal()
        await elapse(90)  # a list, and a bookmark of the watch after it
        assert informer.trouble is None
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1


async def test_a_server_that_forgets_its_past_again_and_again_is_followed_without_growing_pauses(world: World) -> None:
    """What came in between says that it is well."""
    informer = world.informer()
    async with following(informer):
        for turn in range(12):
            await informer.following()
            made = await world.create(f"m-{turn}")
            await informer.wait_until(lambda made=made: informer.get(made.key) is not None)  # type: ignore[misc]
            world.network.plan = always(Refused())
            world.network.sever()
            await world.create(f"unseen-{turn}")
            await forget(world.running)
            world.network.heal()
            began_s = asyncio.get_running_loop().time()
            await informer.wait_until(lambda turn=turn: f"unseen-{turn}" in names(informer))  # type: ignore[misc]
            assert asyncio.get_running_loop().time() - began_s < 3.0


async def test_a_single_hiccup_is_not_worth_a_warning(world: World, caplog: pytest.LogCaptureFixture) -> None:
    informer = world.informer()
    world.network.plan = in_turn([None, Says(429, retry_after_s=7)])
    async with following(informer):
        await informer.synced()
        await elapse(1)
        assert informer.trouble is None
        await informer.following()
        assert asyncio.get_running_loop().time() >= 7, "the server asked for seven seconds"
    assert caplog.records == []


async def test_a_server_that_asks_for_a_day_is_asked_again_in_a_minute(world: World) -> None:
    """It was obeyed: ready, no log, and deaf until tomorrow."""
    informer = world.informer(tuning=Tuning(watch_s=20))
    watches = in_turn([None, Says(503, retry_after_s=86_400)])
    world.network.plan = lambda request: watches(request) if ("watch", "true") in request.query else None
    async with following(informer):
        await informer.following()
        await elapse(90)
        await world.create("a")
        await elapse(1)
        assert names(informer) == {"a"}
        assert informer.trouble is None


@pytest.mark.parametrize("asked_s", [60, 61, 86_400])
async def test_a_server_that_asks_for_a_minute_or_more_is_asked_once_a_minute(world: World, asked_s: int) -> None:
    """One that asked for 61 s was asked three times as often as one that asked for 60."""
    world.network.plan = always(Says(429, retry_after_s=asked_s))
    async with following(world.informer()):
        await elapse(600)
    assert 5 < world.lists_read() <= 10


async def test_a_server_that_always_asks_for_a_day_is_trouble(world: World) -> None:
    world.network.plan = always(Says(503, retry_after_s=86_400))
    informer = world.informer()
    async with following(informer):
        await elapse(90)
        assert informer.trouble is not None


async def test_a_frozen_stream_is_noticed_and_opened_again_where_it_stopped(world: World) -> None:
    informer = world.informer()
    async with following(informer):
        await informer.following()
        world.network.freeze()
        await world.create("unseen")
        await informer.wait_until(lambda: "unseen" in names(informer))
    assert world.lists_read() == 1, "the revision was still known, so nothing was listed again"
    assert world.watches_opened() == 2


async def test_a_quiet_stream_with_bookmarks_is_not_frozen(world: World) -> None:
    informer = world.informer(tuning=Tuning(watch_s=3000))
    async with following(informer):
        await informer.synced()
        await elapse(2900)
    assert world.watches_opened() == 1


async def test_bookmarks_keep_a_quiet_informer_from_listing_again(world: World) -> None:
    """Without them a selector that matches nothing new would resume at a compacted revision and list everything again."""
    await world.create("mine", fleet="runners")
    informer = world.informer(labels="fleet=runners", tuning=Tuning(relist_s=DAY_S))
    async with following(informer):
        await informer.synced()
        for round_number in range(20):
            await world.create(f"foreign-{round_number}")
            await elapse(90)  # longer than the bookmark interval, shorter than a watch
            await forget(world.running)
    assert world.lists_read() == 1


@pytest.mark.parametrize("fault", [Stalls(), Ends(), Cut()], ids=["stalls", "ends", "is cut"])
async def test_a_watch_that_opens_and_tells_nothing_is_trouble(world: World, fault: Fault) -> None:
    """It counted as well from the moment it opened: ready, zero seconds behind, no line in the log, for an hour."""
    informer = world.informer()
    world.network.plan = lambda request: fault if ("watch", "true") in request.query else None
    async with following(informer):
        await informer.synced()
        await world.create("unseen")
        await elapse(HOUR_S / 2)
        assert informer.trouble is not None
        assert informer.behind_s() > HOUR_S / 3
        world.network.heal()
        await informer.wait_until(lambda: "unseen" in names(informer))
        assert informer.trouble is None
        assert informer.behind_s() == 0


async def test_watches_that_end_early_and_told_nothing_are_trouble(world: World) -> None:
    """Not only those that end at once: a watch that is well brings a bookmark a minute."""
    informer = world.informer()
    async with following(informer):
        await informer.following()
        for _ in range(2):
            assert informer.trouble is None
            await elapse(10)
            world.network.end()
        await elapse(1)
        assert informer.trouble is not None


async def test_a_short_watch_that_told_something_is_followed_by_the_next_at_once(world: World, clock: Clock) -> None:
    informer = world.informer()
    async with following(informer):
        await informer.following()
        await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        world.network.end()
        await elapse(0.001)
        assert world.watches_opened() == 2


async def test_a_server_that_always_answers_410_is_not_hammered_by_one_that_once_heard_of_it(world: World) -> None:
    informer = world.informer()
    async with following(informer):
        await informer.following()
        await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        world.network.plan = lambda request: Says(410) if ("watch", "true") in request.query else None
        world.network.sever()
        await elapse(HOUR_S)
    assert world.lists_read() < 300


async def test_a_watch_that_is_cut_after_minutes_of_work_is_opened_again_soon(world: World) -> None:
    """Each cut counted as one more failure in a row: in the end half a minute deaf after every one."""
    informer = world.informer()
    async with following(informer):
        await informer.following()
        for number in range(12):
            await elapse(100)
            await world.create(f"n-{number}")
            await elapse(1)
            assert f"n-{number}" in names(informer)
            world.network.sever()
            await elapse(0.001)
            await informer.wait_until(lambda: informer.behind_s() > 0, within_s=1)
            watches = world.watches_opened()
            await elapse(1)
            assert world.watches_opened() == watches + 1


async def test_a_server_that_refuses_every_watch_is_not_hammered(world: World) -> None:
    world.network.plan = lambda request: Says(500) if ("watch", "true") in request.query else None
    informer = world.informer(tuning=Tuning(relist_s=DAY_S))
    async with following(informer):
        await elapse(HOUR_S)
    assert world.watches_opened() < 300


async def test_whoever_asks_for_an_open_watch_during_an_outage_waits_for_its_end(world: World) -> None:
    informer = world.informer()
    async with following(informer):
        await informer.following()
        world.network.plan = always(Refused())
        world.network.sever()
        await elapse(10)
        waiting = asyncio.create_task(informer.following())
        await elapse(60)
        assert not waiting.done()
        world.network.heal()
        await waiting


async def test_informers_that_began_together_do_not_list_again_together(world: World) -> None:
    informers = [world.informer(tuning=Tuning(relist_s=HOUR_S)) for _ in range(10)]
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    await elapse(1.2 * HOUR_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    listed_at_s = [
        at_s
        for request, at_s in zip(world.network.calls, world.network.called_at_s, strict=True)
        if ("watch", "true") not in request.query
    ]
    assert len({round(at_s) for at_s in listed_at_s if at_s > 1}) == 10


async def test_no_watch_is_asked_for_beyond_the_next_relist(world: World) -> None:
    informer = world.informer(tuning=Tuning(relist_s=20))
    async with following(informer):
        await informer.following()
    asked = dict(world.network.calls[-1].query)
    assert int(asked["timeoutSeconds"]) <= 22  # the relist is spread out by a tenth


async def test_a_time_out_of_a_bug_is_not_taken_for_a_relist_that_is_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise TimeoutError

    informer = world.informer()
    monkeypatch.setattr(informer, "_watch_once", broken)
    async with following(informer):
        await elapse(60)
        assert len(world.network.calls) < 20


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(world: World) -> None:
    informer = world.informer(tuning=Tuning(relist_s=DAY_S))

    def ends_watches(request: Request) -> Ends | None:
        return Ends() if ("watch", "true") in request.query else None

    world.network.plan = ends_watches
    async with following(informer):
        await elapse(HOUR_S)
    assert world.watches_opened() < 300


async def test_a_server_that_always_answers_410_is_not_hammered(world: World) -> None:
    def refuses_watches(request: Request) -> Says | None:
        return Says(410) if ("watch", "true") in request.query else None

    world.network.plan = refuses_watches
    informer = world.informer()
    async with following(informer):
        await elapse(HOUR_S)
    assert world.lists_read() < 300


async def test_a_server_that_answers_every_list_and_410_to_every_watch_is_trouble(world: World) -> None:
    """Each list counted as its recovery: up to half a minute behind for ever, and ready."""
    world.network.plan = lambda request: Says(410) if ("watch", "true") in request.query else None
    informer = world.informer()
    async with following(informer):
        await elapse(60)
        for _ in range(600):
            assert informer.trouble is not None
            await elapse(1)
        world.network.heal()
        await informer.following()
        await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        assert informer.trouble is None


async def test_410_to_every_watch_stays_trouble_while_lists_come_and_go(world: World) -> None:
    """A list that failed made the next one count as the recovery: sixty changes of it in twenty minutes, each with a line."""
    lists = in_turn([None, Says(403)] * 1000)
    world.network.plan = lambda request: Says(410) if ("watch", "true") in request.query else lists(request)
    informer = world.informer()
    async with following(informer):
        await elapse(60)
        for _ in range(1200):
            assert informer.trouble is not None
            await elapse(1)


async def test_a_refusal_is_survived_until_somebody_grants_the_right(world: World) -> None:
    world.network.plan = always(Says(403))
    informer = world.informer()
    async with following(informer):
        await elapse(HOUR_S)
        assert not informer.is_synced
        assert informer.trouble is not None
        world.network.heal()
        await informer.synced()


async def test_a_list_that_outlives_its_snapshot_begins_again(world: World) -> None:
    for number in range(6):
        await world.create(f"n-{number}")
    disturbances: list[asyncio.Task[None]] = []

    async def disturb() -> None:
        await world.create("late")
        await forget(world.running)

    def between_pages(request: Request) -> Slow | None:
        is_second_page = any(name == "continue" for name, _ in request.query) and not disturbances
        if is_second_page:
            disturbances.append(asyncio.create_task(disturb()))
        return Slow(1.0) if is_second_page else None

    world.network.plan = between_pages
    informer = world.informer(tuning=Tuning(page_size=2))
    async with following(informer):
        await informer.synced()
        assert len(informer) == 7
    begun = [call for call in world.network.calls if not {"watch", "continue"} & {name for name, _ in call.query}]
    assert len(begun) == 2


async def test_the_periodic_relist_repairs_what_a_watch_did_not_say(world: World) -> None:
    await world.create("real")
    informer = world.informer()
    async with following(informer):
        await informer.following()
        lose(world.running, "configmaps", Key("ci", "real"))
        await informer.wait_until(lambda: not names(informer), within_s=7200.0)
    assert asyncio.get_running_loop().time() <= 1.2 * HOUR_S


@pytest.mark.parametrize("error", [ValueError("a bug"), asyncio.CancelledError()])
async def test_a_failing_handler_does_not_stop_the_others(
    world: World, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def broken(change: Change[ConfigMap]) -> None:
        raise error

    informer = world.informer()
    informer.on_change(broken)
    informer.on_change(lambda change: seen.append(change.key.name))
    async with following(informer):
        await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        await world.create("b")
        await informer.wait_until(lambda: "b" in names(informer))
    assert seen == ["a", "b"]
    assert "a change handler failed" in caplog.text


async def test_an_index_that_fails_on_an_object_keeps_no_change_from_the_handlers(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen: what came in one batch with such an object was told to nobody, by no list either."""
    seen: list[str] = []
    informer = world.informer(indexes={"v": lambda obj: [obj.labels["v"]]})
    informer.on_change(lambda change: seen.append(change.key.name))
    async with following(informer):
        await informer.following()
        await asyncio.gather(world.create("a", v="x"), world.create("poison"), world.create("b", v="x"))
        await informer.wait_until(lambda: len(names(informer)) == 3)
    assert seen == ["a", "poison", "b"]
    assert [obj.name for obj in informer.by_index("v", "x")] == ["a", "b"]
    assert "an index function failed" in caplog.text


async def test_an_index_that_ends_as_cancelled_keeps_no_change_from_the_handlers(world: World) -> None:
    seen: list[str] = []

    def cancelled(_: ConfigMap) -> list[str]:
        raise asyncio.CancelledError

    informer = world.informer(indexes={"v": cancelled})
    informer.on_change(lambda change: seen.append(change.key.name))
    async with following(informer):
        await informer.following()
        await world.create("a")
        await elapse(1)
    assert seen == ["a"]


async def test_an_index_value_that_cannot_be_one_keeps_no_change_from_the_handlers(world: World) -> None:
    """It failed where no guard was, after the object was stored: no list told it either."""
    seen: list[str] = []
    informer = world.informer(indexes={"labels": lambda obj: [obj.labels]})
    informer.on_change(lambda change: seen.append(change.key.name))
    async with following(informer):
        await informer.following()
        await world.create("a")
        await elapse(1)
    assert seen == ["a"]


@pytest.mark.parametrize("by_list", [False, True], ids=["by a watch", "by a list"])
async def test_what_is_stored_is_told_even_if_what_came_with_it_fails(world: World, by_list: bool) -> None:
    seen: list[str] = []
    fails = True

    def values(obj: ConfigMap) -> list[str]:
        if fails and obj.name == "poison":
            raise ValueError("a bug below every guard")
        return []

    informer = world.informer()
    informer._cache.add_index("v", values)
    informer.on_change(lambda change: seen.append(change.key.name))
    if by_list:
        await asyncio.gather(world.create("a"), world.create("poison"), world.create("z"))
    async with following(informer):
        if not by_list:
            await informer.following()
            await asyncio.gather(world.create("a"), world.create("poison"), world.create("z"))
        await elapse(60)
        assert (seen, names(informer)) == (["a"], {"a"})
        assert informer.trouble is not None
        assert informer.position < world.running.store.revision, "what it lacks is not behind it"
        fails = False
        await elapse(60)
    assert seen == ["a", "poison", "z"]


async def test_two_functions_have_no_index_of_one_name(world: World) -> None:
    """The second one found by the first one's values, without a word."""
    informer = world.informer(indexes={"owner": lambda obj: [obj.labels.get("a", "")]})
    with pytest.raises(ValueError, match="the index 'owner' finds by another function already"):
        informer.add_index("owner", lambda obj: [obj.labels.get("b", "")])


async def test_two_functions_of_one_code_are_two_if_they_find_by_another_value(world: World) -> None:
    """Made by a function that takes the label: the second one found by the first one's values, without a word."""

    def by(label: str) -> Callable[[ConfigMap], list[str]]:
        return lambda obj: [obj.labels.get(label, "")]

    informer = world.informer(indexes={"owner": by("a")})
    informer.add_index("owner", by("a"))
    with pytest.raises(ValueError, match="the index 'owner' finds by another function already"):
        informer.add_index("owner", by("b"))


async def test_a_handler_that_leaves_takes_no_change_from_the_next(world: World) -> None:
    informer = world.informer()
    heard: list[str] = []

    def once(change: Change[ConfigMap]) -> None:
        heard.append("once")
        informer.off_change(once)

    informer.on_change(once)
    informer.on_change(lambda change: heard.append(change.key.name))
    for name in "ab":
        await world.create(name)
    async with following(informer):
        await informer.synced()
    assert heard == ["once", "a", "b"]


async def test_a_handler_hears_at_once_of_all_that_it_failed_on(world: World) -> None:
    """A thousand changes of one object left a thousand timers, which went on when it was gone."""
    calls: list[tuple[str, str]] = []
    fails = True

    def broken(change: Change[ConfigMap]) -> None:
        calls.append((change.old.uid if change.old else "", change.new.uid if change.new else ""))
        if fails:
            raise ValueError("a bug")

    informer = world.informer()
    informer.on_change(broken)
    async with following(informer):
        first = await world.create("a")
        for number in range(100):
            await world.client.patch(ConfigMap, first.key, Merge({"data": {"n": str(number)}}))
        await informer.wait_until(lambda: [obj.data for obj in informer] == [{"n": "99"}])
        assert informer.untold_count == 1
        await world.client.delete(ConfigMap, first.key)
        await elapse(HOUR_S)
        assert informer.untold_count == 0  # it never knew of it
        calls.clear()
        fails = False
        first = await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        fails = True
        await world.client.delete(ConfigMap, first.key)
        await informer.wait_until(lambda: "a" not in names(informer))
        second = await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        fails = False
        await elapse(HOUR_S)
    assert calls == [("", first.uid), (first.uid, ""), (first.uid, ""), ("", second.uid)]


async def test_a_handler_that_failed_hears_of_the_object_again_as_it_is_by_then(world: World) -> None:
    """What it missed was never told again: a Pod that the scheduler did not hear of had no node until somebody changed it."""
    heard: list[tuple[str, bool]] = []
    fails = True

    def broken(change: Change[ConfigMap]) -> None:
        if fails:
            raise MemoryError
        heard.append((change.key.name, change.new is not None))

    informer = world.informer()
    async with following(informer):
        known = await world.create("goes")
        await informer.wait_until(lambda: "goes" in names(informer))
        informer.on_change(broken)
        await world.create("stays")
        await informer.wait_until(lambda: "stays" in names(informer))
        await elapse(300)
        fails = False
        await elapse(300)
        assert sorted(heard) == [("goes", True), ("stays", True)]
        fails, heard = True, []
        await world.client.delete(ConfigMap, known.key)
        await informer.wait_until(lambda: "goes" not in names(informer))
        fails = False
        await elapse(2)
        assert heard == [("goes", False)]


async def test_a_handler_that_failed_and_went_hears_nothing_more(world: World) -> None:
    calls: list[str] = []

    def broken(change: Change[ConfigMap]) -> None:
        calls.append(change.key.name)
        raise ValueError("a bug")

    informer = world.informer()
    informer.on_change(broken)
    async with following(informer):
        await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        informer.off_change(broken)
        await elapse(HOUR_S)
    assert calls == ["a"]
    assert informer.untold_count == 0


async def test_a_handler_that_fails_on_the_second_half_is_told_that_half_again(world: World) -> None:
    heard: list[tuple[bool, bool]] = []
    fails_on_new = fails = False

    def broken(change: Change[ConfigMap]) -> None:
        heard.append((change.old is not None, change.new is not None))
        if fails or (fails_on_new and change.new is not None):
            raise ValueError("a bug")

    informer = world.informer()
    informer.on_change(broken)
    async with following(informer):
        made = await world.create("a")
        await informer.wait_until(lambda: "a" in names(informer))
        fails = True
        await world.delete("a")
        again = await world.create("a")
        await informer.wait_until(lambda: informer.get(made.key) == again)
        heard.clear()
        fails, fails_on_new = False, True
        await elapse(60)
        fails_on_new = False
        await elapse(600)
    assert heard[0] == (True, False)
    assert set(heard[1:]) == {(False, True)}


async def test_a_late_handler_first_hears_what_is_already_known(world: World) -> None:
    known = await world.create("known")
    informer = world.informer()
    seen: list[Change[ConfigMap]] = []
    async with following(informer):
        await informer.synced()
        informer.on_change(seen.append)
    assert seen == [Change(known.key, None, known)]


async def test_a_failure_of_our_own_is_repaired_by_listing_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def breaks_once(request: Request) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("a bug below the informer")

    world.network.plan = breaks_once
    informer = world.informer()
    async with following(informer):
        await informer.synced()
        await world.create("after")
        await informer.wait_until(lambda: "after" in names(informer))
    assert "a bug below the informer" in caplog.text


async def test_closing_the_client_does_not_end_the_informer_in_a_traceback(world: World) -> None:
    informer = world.informer()
    async with following(informer):
        await informer.synced()
        await world.client.aclose()
        await elapse(1)
        assert informer.trouble is not None
        with pytest.raises(Unreachable):
            await world.client.list(ConfigMap)


async def test_whoever_waits_for_an_open_watch_hears_of_it_at_once(world: World) -> None:
    informer = world.informer()
    async with following(informer):
        async with asyncio.timeout(1):
            await informer.following()
        await world.create("a")
        await informer.wait_until(lambda: names(informer) == {"a"}, 1)


async def test_waiting_for_a_sentence_has_a_deadline_and_says_what_keeps_it(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport(), always(Refused()))
    informer = Informer(Client(network, clock), ConfigMap)
    task = asyncio.create_task(informer.run())
    with pytest.raises(NotInTime, match=r"configmaps.*90 s \(.*connection refused"):
        await informer.wait_until(lambda: informer.is_synced, within_s=90.0)
    task.cancel()


async def test_whoever_waits_for_the_first_list_through_an_outage_says_so(
    running: RunningApi, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    network = FaultyTransport(running.transport(), always(Refused()))
    informer = Informer(Client(network, clock), ConfigMap)
    task = asyncio.create_task(informer.run())
    waiting = asyncio.create_task(informer.synced())
    await elapse(2 * TELLS_EVERY_S)
    assert "still waiting for the API" in caplog.text
    network.heal()
    await waiting
    task.cancel()
