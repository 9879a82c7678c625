"""What the manager wires for everybody: restarts, shared informers, metrics, readiness, and one leader at a time."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from applecart.api.core import ConfigMap
from applecart.api.events import Event
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import ControlPlaneFault, Transient
from applecart.kube.background import RESTART, TASK_DOWN, WELL_AFTER_S, Background, Work
from applecart.kube.client import Client
from applecart.kube.controller import DEADLINE_S, DONE, WAIT, Controller, Result
from applecart.kube.election import Election
from applecart.kube.informer import Informer, Tuning
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import metadata_kind
from applecart.kube.patch import Merge
from applecart.kube.transport import NotLeading
from tests.kube.faults import FaultyTransport, Hung, Refused, Says, always
from tests.kube.objects import config_map
from tests.kube.test_own_writes import Slowly
from tests.virtual_time import elapse

LEASE = Key("test", "leader")
BACKGROUND = "a background task"


@asynccontextmanager
async def at_work(*managers: Manager) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(manager.run()) for manager in managers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.fixture
def manager(running: RunningApi, clock: Clock) -> Manager:
    return Manager(Client(running.transport(), clock))


class Failing:
    """Lives for a while, then ends."""

    def __init__(self, clock: Clock, lives_s: float, error: BaseException | None = None) -> None:
        self.started_at_s: list[float] = []
        self._clock = clock
        self._lives_s = lives_s
        self._error = error

    async def run(self) -> None:
        self.started_at_s.append(self._clock.monotonic())
        await elapse(self._lives_s)
        if self._error is not None:
            raise self._error

    @property
    def pauses_s(self) -> list[float]:
        pairs = zip(self.started_at_s, self.started_at_s[1:], strict=False)
        return [later - earlier - self._lives_s for earlier, later in pairs]


@pytest.mark.parametrize(
    "error",
    [ControlPlaneFault("the API is away"), ValueError("a bug"), asyncio.CancelledError(), None],
    ids=["ours", "bug", "stray cancellation", "end"],
)
async def test_a_task_that_ends_is_started_again_ever_later_and_the_others_go_on(
    manager: Manager, clock: Clock, error: BaseException | None, caplog: pytest.LogCaptureFixture
) -> None:
    failing, well = Failing(clock, 1.0, error), Failing(clock, 10_000.0)
    manager.background("failing", failing.run)
    manager.background("well", well.run)
    async with at_work(manager):
        await elapse(1.1)
        assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
            "a background task ended, starting it again"
        ]
        assert (manager.not_ready() or "").startswith("failing is down")
        assert [waiting.wait for waiting in manager.ages.oldest(1)] == [TASK_DOWN]
        await elapse(1000)
    assert len(failing.pauses_s) > 10
    assert failing.pauses_s[0] <= RESTART.first_s
    assert all(RESTART.longest_s / 2 <= pause_s <= RESTART.longest_s for pause_s in failing.pauses_s[8:])
    assert len(well.started_at_s) == 1


async def fail_at_the_end() -> None:
    try:
        await elapse(10_000)
    finally:
        raise RuntimeError("tidying up failed")


async def swallow_the_end() -> None:
    with suppress(asyncio.CancelledError):
        await elapse(10_000)


@pytest.mark.parametrize(("work", "is_said"), [(fail_at_the_end, True), (swallow_the_end, False)])
async def test_a_task_that_is_stopped_and_does_not_say_so_is_not_started_again(
    manager: Manager, work: Work, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen: one whose tidying up failed was started again, and the process could only be killed."""
    manager.background("stubborn", work)
    running = asyncio.create_task(manager.run())
    await elapse(1)
    running.cancel()
    await asyncio.wait({running}, timeout=0.1)
    is_stopped = running.done()
    running.cancel()  # so that this has an end where one is started again
    assert is_stopped
    said = [record for record in caplog.records if record.getMessage() == "a background task failed while it was stopped"]
    assert bool(said) is is_said


async def test_an_election_that_is_down_is_told(running: RunningApi, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was restarted and logged, but nobody who asked whether the manager is ready heard of it."""

    async def broken(self: Election, work: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Election, "lead", broken)
    manager = Manager(Client(running.transport(), clock), lease=LEASE, identity="one")
    async with at_work(manager):
        await elapse(0.1)
        assert manager.not_ready() == f"election on {LEASE} is down and will be started again: RuntimeError: a bug"


async def test_a_task_that_fails_in_a_part_of_it_is_told_by_what_failed(manager: Manager) -> None:
    """`ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)` on the readiness page says nothing to anybody."""

    async def of_two_parts() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(Failing(manager.clock, 10.0).run())
            group.create_task(Failing(manager.clock, 0.1, ControlPlaneFault("the disk is full")).run())

    manager.background("two parts", of_two_parts)
    async with at_work(manager):
        await elapse(0.2)
        told = "two parts is down and will be started again: ControlPlaneFault: the disk is full"
        assert manager.not_ready() == told


async def test_a_task_that_was_down_when_the_lease_was_lost_is_not_told_as_down_for_ever(
    running: RunningApi, clock: Clock
) -> None:
    network = FaultyTransport(running.transport())
    manager = Manager(Client(network, clock), lease=LEASE, identity="one")
    failing = Failing(clock, 0.1, ValueError("a bug"))
    manager.background("failing", failing.run)
    async with at_work(manager):
        await elapse(60)  # its pauses are as long by now
        assert "failing is down" in (manager.not_ready() or "")
        network.plan = lambda request: Says(500) if "leases" in request.path else None
        await elapse(20)
        assert (manager.not_ready() or "").startswith("nobody knows who holds Lease test/leader: ")
        failing._lives_s = 10_000.0
        network.heal()
        await elapse(60)
        assert manager.not_ready() is None


async def test_a_lease_that_may_not_be_used_is_told_on_the_page(running: RunningApi, clock: Clock) -> None:
    """A day without any leader, for want of a right: ready, and one line in the log."""
    network = FaultyTransport(running.transport(), lambda request: Says(403) if "leases" in request.path else None)
    manager = Manager(Client(network, clock), lease=LEASE, identity="one")
    async with at_work(manager):
        await elapse(60)
        assert "(403)" in (manager.not_ready() or "")
        network.heal()
        await elapse(60)
        assert manager.not_ready() is None


async def test_what_cannot_be_had_leaves_nothing_behind(manager: Manager) -> None:
    """A kind as a whole after its metadata: the second one that asked got an informer that never ran."""
    whole, part = manager.informer(Pod, "test"), manager.informer(metadata_kind(Pod.resource), "test")
    async with at_work(manager):
        await whole.synced()
        await part.synced()
    names = [task.name for task in manager.tasks]
    assert names == ["informer of pods in test", "informer of metadata of pods in test"]


async def test_an_informer_of_metadata_goes_on_while_a_controller_reads_it(manager: Manager) -> None:
    part = manager.informer(metadata_kind(Pod.resource), "test")
    heard: list[object] = []
    handler = heard.append
    part.on_change(handler)
    manager.controller("reads", failing_reconcile).read_from(part)
    manager.drop(part, handler)
    assert part in manager.informers


async def test_one_handler_that_goes_leaves_the_informer_to_the_others(manager: Manager) -> None:
    part = manager.informer(metadata_kind(ConfigMap.resource), "ci")
    goes: list[object] = []
    stays: list[object] = []
    handler = goes.append
    part.on_change(handler)
    part.on_change(stays.append)
    async with at_work(manager):
        await part.following()
        manager.drop(part, handler)
        await manager.client.create(config_map("ci", "a"))
        await elapse(1)
    assert (len(goes), len(stays)) == (0, 1)


async def test_an_informer_that_nobody_needs_any_more_ends(manager: Manager) -> None:
    """It would follow, and hold in memory, a kind that is gone."""

    def handler(_: object) -> None: ...

    part = manager.informer(metadata_kind(Pod.resource), "test")
    part.on_change(handler)
    async with at_work(manager):
        await part.following()
        manager.drop(part, handler)
        await elapse(1)
        assert "informer of metadata of pods in test" not in {task.get_name() for task in asyncio.all_tasks()}
        assert "metadata of pods" not in manager.metrics.render().decode()


async def test_a_whole_informer_keeps_its_series_when_the_one_of_metadata_ends(manager: Manager) -> None:
    """They shared the labels: the numbers of the second one stood for both, then for none."""
    whole, part = manager.informer(ConfigMap, "ci"), manager.informer(metadata_kind(ConfigMap.resource), "ci")

    def handler(_: object) -> None: ...

    part.on_change(handler)
    async with at_work(manager):
        await whole.following()
        await part.following()
        for kind in ("configmaps", "metadata of configmaps"):
            assert f'applecart_informer_objects{{kind="{kind}",scope="in ci"}}' in manager.metrics.render().decode()
        manager.drop(part, handler)
        page = manager.metrics.render().decode()
        assert 'applecart_informer_objects{kind="configmaps",scope="in ci"}' in page
        assert "metadata of configmaps" not in page


async def test_what_is_added_between_two_terms_runs_in_the_next(clock: Clock) -> None:
    background, late = Background(clock), Failing(clock, 10_000.0)
    for _ in range(2):
        task = asyncio.create_task(background.run())
        await elapse(1)
        task.cancel()
        await asyncio.wait([task])
        if not background.tasks:
            background.add("late", late.run)
    assert late.started_at_s == [1]


async def test_a_task_that_never_failed_has_a_series(manager: Manager) -> None:
    """So that an alert on its increase sees the first time."""
    manager.background("well", Failing(manager.clock, 10_000.0).run)
    async with at_work(manager):
        await elapse(1)
        assert 'applecart_task_restarts_total{task="well"} 0.0' in manager.metrics.render().decode()


async def test_what_a_reconcile_starts_in_the_background_is_no_part_of_it(manager: Manager) -> None:
    """Its writes would be refused once that reconcile has ended."""
    async with at_work(manager):
        with manager.own_writes().noted():
            recorder = manager.recorder("late")
        made = await manager.client.create(config_map("ci", "a"))
        recorder.event(made, "Normal", "Made", "it was made")
        await recorder.flushed()
    assert recorder.dropped == 0


async def test_a_task_that_ran_well_for_long_is_started_again_soon(manager: Manager, clock: Clock) -> None:
    failing = Failing(clock, WELL_AFTER_S + 1, ValueError("a bug"))
    manager.background("failing", failing.run)
    async with at_work(manager):
        await elapse(20 * WELL_AFTER_S)
    assert len(failing.pauses_s) > 10
    assert all(pause_s <= RESTART.first_s for pause_s in failing.pauses_s)


class Copies:
    """Copies every ConfigMap that is labelled, and counts its reconciles."""

    def __init__(self, manager: Manager, name: str = "copies") -> None:
        self.manager = manager
        self.keys: list[Key] = []
        self.maps = manager.informer(ConfigMap, "ci", labels="copied=yes")
        self.events = manager.recorder("copier")
        self.controller = manager.controller(name, self.reconcile)
        self.controller.watch(self.maps)

    async def reconcile(self, key: Key) -> Result:
        self.keys.append(key)
        found = self.maps.get(key)
        if found is not None:
            self.events.event(found, "Normal", "Copied", "a copy was made")
            await self.manager.client.create(config_map("ci", f"{key.name}-copy"))
        return DONE


async def failing_reconcile(_: str) -> Result:
    raise Transient("down")


async def test_a_reconcile_that_swallows_its_deadline_is_told(
    manager: Manager, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten hours without a log line, ready, and the only worker gone."""
    end = asyncio.get_running_loop().create_future()

    async def reconcile(_: str) -> Result:
        with suppress(asyncio.CancelledError):  # as around a task of its own that it cancelled
            await elapse(10_000)
        await end
        return DONE

    manager.controller("stuck", reconcile).queue.add("x")
    async with at_work(manager):
        await elapse(1.5 * DEADLINE_S)
        assert (manager.not_ready(), caplog.records) == (None, [])  # it may need a while to tidy up
        await elapse(36_000)
        assert (manager.not_ready() or "").startswith("stuck: x is worked on for 36450 s")
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        end.set_result(None)
        await elapse(1)
        assert manager.not_ready() is None


async def test_a_server_that_asks_for_a_day_is_asked_again_within_minutes(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport(), lambda request: Says(503, 86_400) if request.method == "POST" else None)
    manager = Manager(Client(network, clock))

    async def reconcile(_: str) -> Result:
        await manager.client.create(config_map("ci", "a"))
        return DONE

    manager.controller("c", reconcile).queue.add("x")
    async with at_work(manager):
        await elapse(10)
        network.heal()
        await elapse(120)
        assert (await manager.client.get(ConfigMap, Key("ci", "a"))).name == "a"


async def test_a_reconcile_that_writes_and_fails_is_tried_ever_less_often_and_a_fix_seen_soon(manager: Manager) -> None:
    """One that annotated its object and then failed was woken by its own change: 6,001 attempts a minute."""
    maps = manager.informer(ConfigMap, "ci")
    attempts = 0

    async def reconcile(key: Key) -> Result:
        nonlocal attempts
        attempts += 1
        found = maps.get(key)
        if found is not None and found.data:
            return DONE
        await manager.client.patch(ConfigMap, key, Merge({"metadata": {"annotations": {"attempt": str(attempts)}}}))
        await elapse(0.01)
        raise Transient("the host is away")

    controller: Controller[Key] = manager.controller("c", reconcile)
    controller.watch(maps)
    async with at_work(manager):
        await maps.following()
        made = await manager.client.create(config_map("ci", "a"))
        await elapse(10)
        assert attempts > 6
        await elapse(590)
        attempts = 0
        await elapse(600)
        assert attempts < 100
        await manager.client.patch(ConfigMap, made.key, Merge({"data": {"host": "back"}}))
        await elapse(15)
        assert controller.queue.failures(made.key) == 0


async def test_everything_that_the_manager_runs_is_measured(manager: Manager) -> None:
    """Nothing of the controllers of embedded mode was: who wired them by hand forgot it every time."""
    Copies(manager)
    manager.background(BACKGROUND, Failing(manager.clock, 0.5, ValueError("a bug")).run)
    manager.controller("fails", failing_reconcile).queue.add("key")
    async with at_work(manager):
        await manager.informers[0].following()
        await manager.client.create(config_map("ci", "a", labels={"copied": "yes"}))
        await elapse(5)
        page = manager.metrics.render().decode()
    for series in (
        'applecart_informer_objects{kind="configmaps",scope="in ci labels copied=yes"} 1.0',
        'applecart_informer_behind_seconds{kind="configmaps",scope="in ci labels copied=yes"} 0.0',
        'controller_runtime_reconcile_total{controller="copies",result="done"} 1.0',
        'applecart_wait_count{wait="fails-retry"} 1.0',
        'workqueue_depth{name="copies"} 0.0',
        'workqueue_adds_total{name="copies"} 1.0',
        'applecart_informer_untold_objects{kind="configmaps",scope="in ci labels copied=yes"} 0.0',
        'applecart_events_total{component="copier",outcome="written"} 1.0',
        'applecart_events_waiting{component="copier"} 0.0',
        f'applecart_task_restarts_total{{task="{BACKGROUND}"}}',
        f'applecart_wait_count{{wait="{TASK_DOWN}"}}',
    ):
        assert series in page, series


async def test_whoever_asks_for_the_same_scope_gets_the_same_informer(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport())
    manager = Manager(Client(network, clock))
    one = manager.informer(Pod)
    other = manager.informer(Pod, indexes={"node": lambda pod: [pod.spec.node_name]})
    assert one is other
    assert manager.informer(Pod, "ci") is not one
    assert manager.informer(Pod, labels="a=b") is not one
    assert manager.informer(Node, fields="metadata.name=mac-1") is not manager.informer(Node)
    async with at_work(manager):
        await one.following()
        late = manager.informer(Pod, indexes={"name": lambda pod: [pod.name]})
        await Client(running.transport(), clock).create(config_map("ci", "no-pod"))
        assert late.by_index("name", "none") == []
    assert sum(call.path == "/api/v1/pods" and ("watch", "true") in call.query for call in network.calls) == 1 + 1


async def test_an_index_that_is_asked_for_late_knows_what_is_there(manager: Manager) -> None:
    maps = manager.informer(ConfigMap, "ci")
    async with at_work(manager):
        await maps.following()
        made = await manager.client.create(config_map("ci", "a", x="1"))
        await maps.wait_until(lambda: maps.get(made.key) is not None)
        manager.informer(ConfigMap, "ci", indexes={"x": lambda one: [one.data.get("x", "")]})
        assert maps.by_index("x", "1") == [made]


async def test_an_informer_of_all_follows_all_and_only_one_of_metadata_ends_with_its_last_handler(manager: Manager) -> None:
    def handler(_: object) -> None: ...

    some = manager.informer(ConfigMap, "ci")
    assert manager.informer_of_all(ConfigMap.resource) is None
    every, partial = manager.informer(ConfigMap), manager.informer(metadata_kind(Pod.resource))
    assert manager.informer_of_all(ConfigMap.resource) is every
    informer: Informer[Any]
    for informer in (every, partial):
        informer.on_change(handler)
        manager.drop(informer, handler)  # type: ignore[misc]
    assert manager.informers == [some, every]


async def test_no_key_is_worked_on_before_what_must_come_first(manager: Manager) -> None:
    order = []

    async def first() -> None:
        await elapse(1)
        order.append("first")

    async def reconcile(key: Key) -> Result:
        order.append("key")
        return DONE

    manager.controller("ordered", reconcile, after=first).queue.add(Key("ci", "a"))
    async with at_work(manager):
        await elapse(5)
    assert order == ["first", "key"]


async def test_a_new_leader_decides_only_once_it_sees_what_the_one_before_wrote(running: RunningApi, clock: Clock) -> None:
    wire = Slowly(running.transport())
    manager = Manager(Client(wire, clock), lease=LEASE, identity="new")
    maps, writes, seen = manager.informer(ConfigMap, "ci"), manager.own_writes(), []
    writes.read_from(maps)

    async def decide() -> None:
        await writes.seen()
        seen.append([one.name for one in maps])
        await elapse(1000)

    manager.background("decides", decide)
    before = Manager(Client(running.transport(), clock), lease=LEASE, identity="before")

    async def lead() -> None:
        await elapse(20)
        wire.lag_s = 3.0
        await before.client.create(config_map("ci", "a"))
        raise asyncio.CancelledError

    before.background("leads", lead)
    async with at_work(before):
        await elapse(5)
        standby = asyncio.create_task(manager.run())
        await elapse(14)
        assert seen == []
        await elapse(1.5)
    await elapse(60)
    standby.cancel()
    await asyncio.wait([standby])
    assert seen == [["a"]]


async def test_it_is_ready_when_every_cache_is_up_to_date(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport(), always(Refused()))
    manager = Manager(Client(network, clock))
    manager.informer(Node)
    assert manager.not_ready() == "informer of nodes: the first list is not complete"
    async with at_work(manager):
        await elapse(31)  # the client has given up once
        assert "connection refused" in (manager.not_ready() or "")
        await elapse(30)
        behind = 'applecart_informer_behind_seconds{kind="nodes",scope=""} '
        (line,) = [line for line in manager.metrics.render().decode().splitlines() if line.startswith(behind)]
        assert float(line.removeprefix(behind)) > 30
        network.heal()
        await elapse(60)
        assert manager.not_ready() is None


async def test_two_tasks_of_one_name_are_refused(manager: Manager) -> None:
    Copies(manager)
    with pytest.raises(ValueError, match="give this one a name of its own"):
        Copies(manager)


async def test_only_who_holds_the_lease_works_and_a_standby_takes_over_warm(running: RunningApi, clock: Clock) -> None:
    first_network = FaultyTransport(running.transport())
    first = Manager(Client(first_network, clock), lease=LEASE, identity="first")
    second = Manager(Client(running.transport(), clock), lease=LEASE, identity="second")
    copies = [Copies(first), Copies(second)]
    async with at_work(first):
        await elapse(5)
        async with at_work(second):
            await elapse(5)
            await Client(running.transport(), clock).create(config_map("ci", "a", labels={"copied": "yes"}))
            await elapse(5)
            assert [len(one.keys) for one in copies] == [1, 0]
            assert len(copies[1].maps) == 1
            assert b'leader_election_master_status{name="test/leader"} 1.0' in first.metrics.render()
            first_network.plan = always(Refused())
            await elapse(60)
            assert len(copies[1].keys) >= 1
    assert b'leader_election_master_status{name="test/leader"} 0.0' in first.metrics.render()


async def test_an_event_on_its_way_when_the_lease_is_lost_is_written_later(running: RunningApi, clock: Clock) -> None:
    """It was neither written nor counted."""
    network = FaultyTransport(running.transport())
    people = Client(running.transport(), clock)
    manager = Manager(Client(network, clock), lease=LEASE, identity="one")
    recorder = manager.recorder("c")
    made = await people.create(config_map("ci", "a"))
    async with at_work(manager):
        await elapse(1)
        network.plan = lambda request: (
            Hung() if request.path.endswith("/events") else Says(500) if "leases" in request.path else None
        )
        await elapse(8.5)
        recorder.event(made, "Normal", "Made", "it was made")
        await elapse(5)
        network.heal()
        await elapse(60)
    assert [(event.message, event.count) for event in await people.list(Event, "ci")] == [("it was made", 1)]


async def test_what_waits_is_measured_again_when_the_lease_comes_back(running: RunningApi, clock: Clock) -> None:
    """The key was still in the queue for up to half an hour, and its age forgotten."""
    network = FaultyTransport(running.transport())
    manager = Manager(Client(network, clock), lease=LEASE, identity="one")

    async def reconcile(_: str) -> Result:
        return WAIT

    manager.controller("c", reconcile).queue.add("x")
    async with at_work(manager):
        await elapse(5)
        network.plan = always(Refused())
        await elapse(30)
        assert manager.ages.oldest(1) == []
        network.heal()
        await elapse(60)
        (waiting,) = manager.ages.oldest(2)
        assert (waiting.wait, waiting.key) == ("c-event", "x")


async def test_the_deadline_of_the_given_client_holds_behind_the_fence(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport(), always(Hung()))
    manager = Manager(Client(network, clock, deadline_s=5.0), lease=LEASE, identity="one")
    with pytest.raises(Transient):
        await manager.client.list(ConfigMap)
    assert clock.monotonic() == pytest.approx(5)


async def test_events_of_a_standby_are_not_sent(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport())
    manager = Manager(Client(network, clock), lease=LEASE, identity="late")
    recorder = manager.recorder("late")
    made = await Client(running.transport(), clock).create(config_map("ci", "a"))
    recorder.event(made, "Normal", "Made", "it was made")
    task = asyncio.create_task(recorder.run())
    await recorder.flushed()
    assert network.calls == []
    assert recorder.dropped == 1
    task.cancel()


async def test_informers_are_as_patient_as_the_manager_was_told(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport())
    manager = Manager(Client(network, clock), tuning=Tuning(watch_s=7))
    maps = manager.informer(ConfigMap, "ci")
    async with at_work(manager):
        await maps.following()
    assert ("timeoutSeconds", "7") in network.calls[-1].query


async def test_what_a_standby_decides_is_not_sent(running: RunningApi, clock: Clock) -> None:
    manager = Manager(Client(running.transport(), clock), lease=LEASE, identity="late")
    with pytest.raises(NotLeading):
        await manager.client.create(config_map("ci", "a"))
