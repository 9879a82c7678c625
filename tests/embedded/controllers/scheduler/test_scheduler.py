"""The effect: races with others and with the network, and how much it writes."""

import asyncio
from collections import Counter
from collections.abc import Generator
from types import SimpleNamespace

import msgspec
import pytest

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.api.scheduling import SchedulingGate
from applecart.clock import Clock
from applecart.embedded.controllers.scheduler import decide, scheduler
from applecart.embedded.controllers.scheduler.decide import Decider, Decision
from applecart.embedded.controllers.scheduler.fit import fits
from applecart.embedded.controllers.scheduler.fleet import NodeRoom
from applecart.embedded.controllers.scheduler.pod_shape import PodShape
from applecart.embedded.controllers.scheduler.scheduler import STEPS_OF_A_SHAPE, STEPS_OF_AN_ATTEMPT, Scheduler
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.manager import Manager
from applecart.kube.patch import Json, Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.scheduler.conftest import Play
from tests.embedded.controllers.scheduler.objects import node, pod
from tests.embedded.controllers.scheduler.stage import Stage
from tests.kube.faults import Fault, Hung, Late, Lost, Plan, Refused, Says, Slow
from tests.virtual_time import elapse


def is_binding(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/binding")


def on_bindings(*faults: Fault | None) -> Plan:
    """One fault per binding; after the last all is well."""
    left = list(faults)
    return lambda request: left.pop(0) if is_binding(request) and left else None


async def bind_as_somebody_else(play: Play, name: str, to: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": to}}
    path = f"/api/v1/namespaces/test/pods/{name}/binding"
    await play.client.call(Request("POST", path, body=msgspec.json.encode(body)))


async def test_the_page_tells_who_waits_for_what(running: RunningApi, clock: Clock) -> None:
    """Every queue of ours was measured but this one, which is no work queue."""
    client = Client(running.transport(), clock)
    manager = Manager(client)
    Scheduler(manager)
    await Stage(client, "test").pod(pod("fits-nowhere"))
    task = asyncio.create_task(manager.run())
    await elapse(10)
    page = manager.metrics.render().decode()
    task.cancel()
    await asyncio.wait([task])
    shown = {line for line in page.splitlines() if line.startswith("scheduler_pending_pods{")}
    counts = {"active": 0, "backoff": 0, "unschedulable": 1}
    assert shown == {f'scheduler_pending_pods{{queue="{queue}"}} {count}.0' for queue, count in counts.items()}


async def test_a_lost_answer_is_asked_again_and_tells_of_it_once(play: Play) -> None:
    await play.stage.node(node(pods="1"))
    play.network.plan = on_bindings(Lost())
    await play.stage.pod(pod("runner"))
    assert await play.stage.placed("runner") == "mac-1"
    await elapse(30)
    scheduled = [event for event in play.stage.events if event.reason == "Scheduled"]
    assert len(scheduled) <= 1


async def test_a_binding_of_unknown_outcome_keeps_its_room(play: Play) -> None:
    """A hung binding may still be carried out: its slot must not be given to somebody else meanwhile."""
    await play.stage.node(node(pods="1"))
    play.network.plan = on_bindings(Hung(), *[Says(500)] * 3)
    await play.stage.pod(pod("first"))
    await elapse(5)
    await play.stage.pod(pod("second"))
    await elapse(35)
    assert "second" not in play.bindings()
    assert await play.stage.placed("first") == "mac-1"
    await elapse(5)
    assert play.stage.node_of("second") == ""


async def test_a_refusal_after_an_unknown_outcome_proves_nothing(play: Play) -> None:
    await play.stage.node(node(pods="1"))
    await elapse(1)
    # The first binding happens and nobody learns of it; the second is refused for a reason of its own.
    play.network.plan = on_bindings(Lost(), *[Says(403)] * 3)
    await play.stage.pod(pod("first"))
    await play.stage.pod(pod("second"))
    await play.stage.until(play.stage.pods, lambda: bool(play.bindings()), "the first binding is on its way")
    play.network.freeze()
    assert await play.stage.placed("first") == "mac-1"
    await elapse(30)
    assert "second" not in play.bindings()


async def test_a_hung_binding_holds_up_nobody_else_for_long(play: Play) -> None:
    await play.stage.node(node(pods="2"))
    play.network.plan = lambda request: Hung() if is_binding(request) and "/stuck/" in request.path else None
    await play.stage.pod(pod("stuck"))
    await elapse(1)
    await play.stage.pod(pod("next"))
    await elapse(10)
    assert play.stage.node_of("next") == "mac-1"


async def test_a_refused_binding_gives_its_room_to_others(play: Play) -> None:
    await play.stage.node(node(pods="1"))
    play.network.plan = lambda request: Says(403) if is_binding(request) and "/first/" in request.path else None
    await play.stage.pod(pod("first"))
    await elapse(0.5)
    await play.stage.pod(pod("second"))
    assert await play.stage.placed("second") == "mac-1"
    assert play.stage.node_of("first") == ""


async def test_a_pod_that_somebody_else_bound_first_is_left_where_it_is(play: Play) -> None:
    await play.stage.node(node("mac-1", pods="2"))
    await play.stage.node(node("mac-2", pods="1"))
    play.network.plan = on_bindings(Slow(2.0))
    await play.stage.pod(pod("runner"))
    await elapse(1)
    await bind_as_somebody_else(play, "runner", "mac-2")
    await elapse(5)
    assert (await play.stored("runner")).spec.node_name == "mac-2"
    for name in ("two", "three"):  # both slots that were taken for it on mac-1 are free again
        await play.stage.pod(pod(name))
        assert await play.stage.placed(name) == "mac-1"


async def test_a_pod_that_is_gone_before_it_is_bound_leaves_its_room(play: Play) -> None:
    await play.stage.node(node(pods="1"))
    play.network.plan = on_bindings(Slow(2.0))
    await play.stage.pod(pod("leaving"))
    await elapse(1)
    await play.stage.delete("leaving")
    await play.stage.pod(pod("next"))
    assert await play.stage.placed("next") == "mac-1"


async def test_a_pod_that_is_gone_before_its_binding_is_answered_leaves_its_room(play: Play) -> None:
    play.network.plan = on_bindings(Late(2.0))
    await play.stage.node(node(pods="1"))
    await play.stage.pod(pod("leaving"))
    await play.stage.placed("leaving")
    await play.stage.delete("leaving")
    await elapse(5)
    await play.stage.pod(pod("next"))
    assert await play.stage.placed("next") == "mac-1"


async def test_a_pod_that_took_the_name_is_not_bound_by_the_decision_about_its_predecessor(play: Play) -> None:
    await play.stage.node(node(pods="1", labels={"fleet": "old"}))
    play.network.plan = on_bindings(Slow(2.0))
    await play.stage.pod(pod("runner"))
    await elapse(1)
    await play.stage.delete("runner")
    await play.stage.pod(pod("runner", node_selector={"fleet": "new"}))
    await elapse(60)
    assert (await play.stored("runner")).spec.node_name == ""


@pytest.mark.parametrize("when", ["on its way", "in doubt"])
@pytest.mark.parametrize("what", ["deleted", "replaced", "ended"])
async def test_a_pod_that_went_while_its_binding_was_unknown_leaves_its_room_and_nothing_is_kept_of_it(
    running: RunningApi, clock: Clock, what: str, when: str
) -> None:
    play = Play(running, clock)
    manager = Manager(Client(play.network, clock))
    scheduler = Scheduler(manager)
    play.network.plan = lambda request: Hung() if is_binding(request) and "/first/" in request.path else None
    tasks = [asyncio.create_task(work()) for work in (manager.run, play.stage.pods.run)]
    await play.stage.node(node(pods="1"))
    await play.stage.pod(pod("first"))
    await elapse(5 if when == "on its way" else 11)
    if what == "ended":
        await play.client.patch_status(Pod, Key("test", "first"), Merge({"status": {"phase": "Failed"}}))
    else:
        await play.client.delete(Pod, Key("test", "first"), grace_s=0)
    if what == "replaced":
        await play.stage.pod(pod("first", node_selector={"fleet": "none"}))
    await elapse(20)
    await play.stage.pod(pod("next"))
    await elapse(20)
    assert (await play.stored("next")).spec.node_name == "mac-1"
    assert scheduler._own_writes._lost == {}
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_the_room_of_a_binding_that_was_refused_in_the_end_goes_to_others(play: Play) -> None:
    await play.stage.node(node(pods="1", labels={"fleet": "a"}))
    play.network.plan = on_bindings(Hung(), Says(409))
    await play.stage.pod(pod("first", node_selector={"fleet": "a"}))
    await elapse(5)
    await play.client.patch(Node, Key("", "mac-1"), Merge({"metadata": {"labels": {"fleet": "b"}}}))
    await play.stage.pod(pod("second"))
    await elapse(30)
    assert play.bindings() == ["first", "first", "second"]
    assert play.stage.node_of("second") == "mac-1"


async def test_a_node_that_is_gone_meanwhile_does_not_hold_its_pod_back(play: Play) -> None:
    await play.stage.node(node("mac-1"))
    play.network.plan = on_bindings(Hung())
    await play.stage.pod(pod("runner"))
    await elapse(1)
    await play.client.delete(Node, Key("", "mac-1"))
    await play.stage.node(node("mac-2"))
    assert await play.stage.placed("runner") == "mac-2"


async def test_an_outage_only_delays(play: Play) -> None:
    await play.stage.node(node())
    play.network.plan = lambda request: Refused()
    play.network.sever()
    await play.stage.pod(pod("runner"))
    await elapse(600)
    assert play.stage.node_of("runner") == ""
    play.network.heal()
    assert await play.stage.placed("runner") == "mac-1"


async def test_the_same_sentence_is_written_once(play: Play) -> None:
    await play.stage.node(node(unschedulable=True))
    await play.stage.pod(pod("runner"))
    await elapse(2000)  # looked at six times
    assert play.writes_to("runner") == 1
    events = [event for event in play.stage.events if event.involved_object.name == "runner"]
    assert [event.reason for event in events] == ["FailedScheduling"]
    assert 2 <= events[0].count <= 8


async def test_a_sentence_that_changed_is_written_although_the_change_did_not_help(play: Play) -> None:
    await play.stage.node(node("mac-1", unschedulable=True))
    await play.stage.pod(pod("runner"))
    await elapse(5)
    await play.stage.node(node("mac-2", unschedulable=True))
    await elapse(15)
    said = play.stage.scheduled("runner")
    assert said is not None
    assert said.message.startswith("0/2 nodes are available: 2 node(s) were unschedulable.")


async def test_the_time_of_the_transition_stays_while_only_the_words_change(play: Play) -> None:
    await play.stage.pod(pod("runner"))
    await elapse(5)
    first = play.stage.scheduled("runner")
    await play.stage.node(node("mac-1", unschedulable=True))
    await elapse(60)
    second = play.stage.scheduled("runner")
    assert first is not None
    assert second is not None
    assert first.message != second.message
    assert first.last_transition_time == second.last_transition_time


async def test_heartbeats_of_nodes_and_labels_of_pods_cause_no_attempt(play: Play) -> None:
    await play.stage.node(node(unschedulable=True))
    await play.stage.pod(pod("runner"))
    await elapse(20)
    calls = len(play.network.calls)
    for number in range(50):
        await play.client.patch(Node, Key("", "mac-1"), Merge({"metadata": {"annotations": {"beat": str(number)}}}))
        await play.client.patch(Pod, Key("test", "runner"), Merge({"metadata": {"labels": {"beat": str(number)}}}))
        await elapse(1)
    assert len(play.network.calls) == calls


async def test_one_freed_slot_costs_one_attempt_however_many_wait(play: Play) -> None:
    await play.stage.node(node(pods="1"))
    await play.stage.pod(pod("resident"))
    await play.stage.placed("resident")
    for number in range(50):
        await play.stage.pod(pod(f"waiting-{number:02}"))
    await elapse(20)
    calls = len(play.network.calls)
    await play.stage.delete("resident")
    await elapse(1)
    assert len([name for name in play.bindings() if name.startswith("waiting")]) == 1
    assert len(play.network.calls) - calls <= 4  # the binding, its Event, and one look of the next in line


async def test_many_shapes_that_wait_are_held_against_a_changed_node_a_few_at_a_time(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3,000 shapes that waited took 176 ms of the loop whenever a Node changed."""
    monkeypatch.setattr(decide, "STEPS_OF_A_TURN", 5 * STEPS_OF_A_SHAPE)
    for number in range(30):
        await play.stage.pod(pod(f"p{number}", node_selector={"x": str(number)}))
    await elapse(20)
    turns, looks = [0], Counter[int]()

    def counted(shape: PodShape, room: NodeRoom | None) -> bool:
        looks[turns[0]] += 1
        return fits(shape, room)

    monkeypatch.setattr(scheduler, "fits", counted)

    async def most_looks_of_a_turn() -> int:
        while looks.total() < 30:
            turns[0] += 1
            await asyncio.sleep(0)
        return max(looks.values())

    most, _ = await asyncio.gather(most_looks_of_a_turn(), play.stage.node(node()))
    assert most <= 10


async def test_many_that_are_tried_in_vain_again_are_tried_a_few_at_a_time(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that has nothing new to say waits for nobody: 3,000 of them were one turn of the loop."""
    monkeypatch.setattr(decide, "STEPS_OF_A_TURN", 3 * STEPS_OF_AN_ATTEMPT)
    await play.stage.node(node(unschedulable=True))
    for number in range(30):
        await play.stage.pod(pod(f"p{number}", node_selector={"x": str(number)}))
    await elapse(20)
    await play.stop_scheduler()
    turns, tries = [0], Counter[int]()

    def counted(decider: Decider, wanted: PodShape) -> Generator[None, None, Decision]:
        tries[turns[0]] += 1
        asyncio.get_running_loop().call_soon(turns.__setitem__, 0, turns[0] + 1)
        return decided(decider, wanted)

    decided = Decider.decide
    monkeypatch.setattr(Decider, "decide", counted)
    play.start_scheduler()
    await elapse(20)
    await play.stage.label("mac-1", y="z")
    await elapse(20)
    assert tries.total() >= 60
    assert max(tries.values()) <= 5


def make_busy(monkeypatch: pytest.MonkeyPatch, turn_s: float) -> None:
    """A decision gives others a turn at each node, and each turn takes so long."""
    busy = SimpleNamespace(**{**vars(asyncio), "sleep": lambda _: asyncio.sleep(turn_s)})
    monkeypatch.setattr(scheduler, "asyncio", busy)
    monkeypatch.setattr(decide, "STEPS_OF_A_TURN", 1)


async def test_a_decision_on_a_busy_loop_takes_its_time(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After 10 s it was given up, as if the API had not answered, and began from nothing: the Pod was never placed."""
    for number in range(10):
        await play.stage.node(node(f"mac-{number}"))
    make_busy(monkeypatch, 2.0)
    await play.stage.pod(pod("runner"))
    await elapse(60)
    assert play.stage.node_of("runner")
    assert "could not be placed" not in caplog.text


async def test_a_node_that_opens_while_a_decision_gives_others_a_turn_is_not_missed(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        await play.stage.node(node(f"mac-{number}", unschedulable=True))
    make_busy(monkeypatch, 0.5)
    await play.stage.pod(pod("runner"))
    await elapse(3)  # the first nodes have been looked at
    await play.client.patch(Node, Key("", "mac-0"), Merge({"spec": {"unschedulable": False}}))
    await elapse(0.5)
    assert play.stage.scheduled("runner") is None
    await elapse(20)
    assert play.stage.node_of("runner") == "mac-0"


async def test_a_reason_is_not_written_over_a_pod_that_somebody_bound_meanwhile(play: Play) -> None:
    play.network.plan = lambda request: Slow(2.0) if request.path.endswith("/runner/status") else None
    await play.stage.pod(pod("runner"))
    await elapse(1)
    await bind_as_somebody_else(play, "runner", "mac-9")
    await elapse(30)
    condition = (await play.stored("runner")).condition("PodScheduled")
    assert condition is not None
    assert condition.status == "True"


async def test_a_gate_that_is_lifted_while_it_is_being_explained_is_not_missed(play: Play) -> None:
    await play.stage.node(node())
    play.network.plan = lambda request: Slow(2.0) if request.path.endswith("/runner/status") else None
    created = await play.stage.pod(pod("runner", scheduling_gates=(SchedulingGate(name="prefetch"),)))
    # An API server that says nothing about gates itself: the scheduler does.
    await play.client.patch_status(Pod, created.key, Merge({"status": {"conditions": None}}))
    await elapse(1)
    await play.client.patch(Pod, created.key, Json([{"op": "remove", "path": "/spec/schedulingGates"}]))
    assert await play.stage.placed("runner") == "mac-1"


async def test_a_restart_finds_every_pod_where_it_is(play: Play) -> None:
    await play.stage.node(node(pods="2"))
    for name in ("one", "two"):
        await play.stage.pod(pod(name))
        await play.stage.placed(name)
    await play.stop_scheduler()
    await play.stage.pod(pod("three"))
    play.start_scheduler()
    await elapse(5)
    said = play.stage.scheduled("three")
    assert said is not None
    assert "1 Too many pods" in said.message


@pytest.mark.parametrize("surprise", [RuntimeError("nobody foresaw this"), asyncio.CancelledError()])
async def test_a_bug_in_one_attempt_does_not_stop_the_others_and_it_is_tried_again(play: Play, surprise: BaseException) -> None:
    """Seen: a Pod whose attempt was cancelled was out of the queue for good, also when an election took the scheduler away."""
    await play.stage.node(node())
    broken = True

    def plan(request: Request) -> Fault | None:
        if broken and is_binding(request) and "/odd/" in request.path:
            raise surprise
        return None

    play.network.plan = plan
    await play.stage.pod(pod("odd"))
    await play.stage.pod(pod("even"))
    assert await play.stage.placed("even") == "mac-1"
    broken = False
    assert await play.stage.placed("odd") == "mac-1"
