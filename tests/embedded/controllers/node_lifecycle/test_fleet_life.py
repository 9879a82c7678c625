"""Hours of a fleet's life on the embedded API in memory: who is evicted, when, and above all who is not."""

import asyncio
import itertools
from datetime import timedelta
from functools import partial

import pytest

from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import VirtualClock
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.node_lifecycle.conftest import World
from tests.embedded.controllers.node_lifecycle.fleet import Fleet
from tests.embedded.controllers.node_lifecycle.objects import UNREACHABLE, leaves_after, pod, tolerates
from tests.kube.faults import Fault, Hung, Refused, Stalls, always
from tests.virtual_time import elapse

HOSTS = ("mac-1", "mac-2", "mac-3")
SHIFT_S = 2000.0
STILL_SILENT_S = 35.0  # with a hung call (5 s) and the pause after it (5 s) still less than the grace of 50 s
LONG_S = 500.0  # in which whoever would be lost is lost and evicted: 55 s and 300 s
TAINTED = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def settle(fleet: Fleet, hosts: tuple[str, ...] = HOSTS) -> None:
    """Hosts that are well, each with a Pod that has the tolerations every Pod gets."""
    for name in hosts:
        await fleet.host(name)
        await fleet.pod(pod(f"on-{name}", on=name))
    for name in hosts:
        await fleet.tainted(name)
    await elapse(37)  # the controller has seen every renewal so far


def nobody_leaves(fleet: Fleet, hosts: tuple[str, ...] = HOSTS) -> bool:
    return not any(fleet.is_leaving(f"on-{name}") for name in hosts)


async def lost_host(world: World) -> float:
    """One of three hosts falls silent; when its Pods began to be asked to leave."""
    await settle(world.fleet)
    await world.fleet.hosts["mac-1"].fall_silent()
    await world.fleet.tainted("mac-1", *TAINTED)
    return world.clock.monotonic()


async def test_the_pods_of_one_silent_host_leave_after_their_300_s_and_no_other_pod_does(world: World) -> None:
    await settle(world.fleet)
    began_s = world.clock.monotonic()
    await world.fleet.hosts["mac-1"].fall_silent()
    await world.fleet.tainted("mac-1", *TAINTED)
    assert 40 <= world.clock.monotonic() - began_s <= 60  # the last beat was up to 10 s before
    tainted_s = world.clock.monotonic()
    await elapse(299)
    assert nobody_leaves(world.fleet)
    await world.fleet.evicted("on-mac-1")
    assert 299 <= world.clock.monotonic() - tainted_s <= 302
    await elapse(LONG_S)
    assert not world.fleet.is_leaving("on-mac-2")
    assert not world.fleet.is_leaving("on-mac-3")


async def test_a_healthy_shift_changes_nothing_and_writes_nothing(world: World) -> None:
    await settle(world.fleet)
    await elapse(60)
    world.controllers.calls.clear()
    await elapse(SHIFT_S)
    assert nobody_leaves(world.fleet)
    assert [call.method for call in world.controllers.calls if call.method != "GET"] == []


async def test_when_all_hosts_are_silent_for_hours_nobody_is_evicted(world: World) -> None:
    await settle(world.fleet)
    for name in HOSTS:
        await world.fleet.hosts[name].fall_silent()
    await elapse(2 * 3600)
    assert nobody_leaves(world.fleet)
    assert all(world.fleet.says(name, "Ready")[0] == "Unknown" for name in HOSTS)
    assert all(("unreachable", "NoExecute") not in world.fleet.taints(name) for name in HOSTS)


async def test_after_a_dark_fleet_the_hosts_that_stay_away_are_given_their_whole_time_again(world: World) -> None:
    await settle(world.fleet)
    for name in HOSTS:
        await world.fleet.hosts[name].fall_silent()
    await elapse(LONG_S)
    await world.fleet.hosts["mac-1"].come_back()
    began_s = world.clock.monotonic()
    await elapse(290)
    assert nobody_leaves(world.fleet)
    await world.fleet.hosts["mac-2"].come_back()
    await world.fleet.evicted("on-mac-3")
    assert world.clock.monotonic() - began_s >= 300
    assert not world.fleet.is_leaving("on-mac-2")


@pytest.mark.parametrize("fault", [Refused(), Hung()], ids=["refused", "hung"])
@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "half open"])
@pytest.mark.parametrize("away_s", [30, 60, 301, 3600])
async def test_an_api_that_nobody_can_reach_evicts_nobody(world: World, fault: Fault, is_cut: bool, away_s: float) -> None:
    """Half open: nobody tells the controllers that their watches are dead."""
    await settle(world.fleet)
    for network in (world.agents, world.controllers):
        network.plan = always(fault)
        network.sever() if is_cut else network.freeze()
    await elapse(away_s)
    world.controllers.heal()  # after its backoff the controller is back first: the hosts are still silent
    await elapse(STILL_SILENT_S)
    world.agents.heal()
    await elapse(LONG_S)
    assert nobody_leaves(world.fleet)
    assert all(world.fleet.taints(name) == set() for name in HOSTS)
    assert all(world.fleet.says(name, "Ready")[0] == "True" for name in HOSTS)


async def test_a_controller_that_cannot_read_declares_nobody_lost(world: World) -> None:
    """The hosts beat all the time; only the controllers' network is away, and comes back with an old view."""
    await settle(world.fleet)
    world.controllers.plan = always(Refused())
    world.controllers.sever()
    await elapse(600)
    world.controllers.heal()
    await elapse(120)
    assert all(world.fleet.says(name, "Ready")[0] == "True" for name in HOSTS)
    assert all(world.fleet.told("NodeNotReady", name) == [] for name in HOSTS)


async def test_a_watch_that_stops_silently_costs_nobody_its_pods(world: World) -> None:
    """Lists and reads work, every watch stays open and brings nothing: only live reads tell that the hosts are well."""
    await settle(world.fleet)

    def stalled(request: Request) -> Fault | None:
        return Stalls() if ("watch", "true") in request.query else None

    world.controllers.plan = stalled
    world.controllers.freeze()
    await elapse(LONG_S)
    assert nobody_leaves(world.fleet)
    assert all(world.fleet.says(name, "Ready")[0] == "True" for name in HOSTS)


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["back", "made anew"])
async def test_a_host_that_is_back_behind_a_silent_watch_keeps_its_pods(world: World, is_made_anew: bool) -> None:
    """What the watch does not bring is that nobody has to leave any more: the live read has the last word."""
    await lost_host(world)
    world.controllers.plan = lambda request: Stalls() if ("watch", "true") in request.query else None
    world.controllers.freeze()
    await elapse(200)
    client, key = world.fleet.client, Key("", "mac-1")
    if is_made_anew:
        node = await client.get(Node, key)
        await client.delete(Node, key)
        await client.create(Node(metadata=ObjectMeta(name="mac-1"), spec=node.spec))
    else:
        await world.fleet.hosts["mac-1"].come_back()
    await elapse(130)
    assert not world.fleet.is_leaving("on-mac-1")


async def test_a_host_that_dies_behind_a_silent_watch_is_found_out_by_live_reads(world: World) -> None:
    await settle(world.fleet)
    world.controllers.plan = lambda request: Stalls() if ("watch", "true") in request.query else None
    world.controllers.freeze()
    await elapse(15)
    await world.fleet.hosts["mac-1"].fall_silent()
    await world.fleet.lost("mac-1")
    assert all(world.fleet.says(name, "Ready")[0] == "True" for name in HOSTS[1:])


@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "half open"])
@pytest.mark.parametrize("away_s", [60, 600])
async def test_an_outage_begins_the_time_of_those_who_must_leave_anew(world: World, is_cut: bool, away_s: float) -> None:
    await lost_host(world)
    await elapse(280)
    world.controllers.plan = always(Refused())
    world.controllers.sever() if is_cut else world.controllers.freeze()
    await elapse(away_s)
    world.controllers.heal()
    healed_s = world.clock.monotonic()
    await elapse(290)
    assert nobody_leaves(world.fleet)
    await world.fleet.evicted("on-mac-1")
    assert world.clock.monotonic() - healed_s >= 300


async def test_a_restart_of_the_api_evicts_nobody(world: World) -> None:
    await settle(world.fleet)
    await world.stop_api()
    await elapse(900)
    await world.start_api()
    await elapse(LONG_S)
    assert nobody_leaves(world.fleet)
    assert all(world.fleet.taints(name) == set() for name in HOSTS)


async def test_a_restart_of_everything_gives_a_fresh_grace_to_hosts_that_are_slow_to_return(world: World) -> None:
    await settle(world.fleet)
    await world.stop_controller()
    await world.stop_api()
    world.agents.plan = always(Refused())
    await elapse(900)
    await world.start_api()
    world.start_controller()
    await elapse(STILL_SILENT_S)
    world.agents.heal()
    await elapse(LONG_S)
    assert nobody_leaves(world.fleet)
    assert all(world.fleet.told("NodeNotReady", name) == [] for name in HOSTS)


async def test_a_restart_of_the_controller_gives_those_who_must_leave_their_whole_time_again(world: World) -> None:
    await lost_host(world)
    await elapse(290)
    await world.stop_controller()
    world.start_controller()
    restarted_s = world.clock.monotonic()
    await elapse(290)
    assert nobody_leaves(world.fleet)
    await world.fleet.evicted("on-mac-1")
    assert world.clock.monotonic() - restarted_s >= 300


@pytest.mark.parametrize("days", [1, -1])
async def test_a_jump_of_the_wall_clock_evicts_nobody(world: World, clock: VirtualClock, days: int) -> None:
    await settle(world.fleet)
    await elapse(30)
    clock.jump(timedelta(days=days))
    await elapse(LONG_S)
    assert nobody_leaves(world.fleet)
    assert all(world.fleet.taints(name) == set() for name in HOSTS)


async def test_a_jump_of_the_wall_clock_does_not_hurry_an_eviction(world: World, clock: VirtualClock) -> None:
    tainted_s = await lost_host(world)
    clock.jump(timedelta(days=1))
    await elapse(290)
    assert nobody_leaves(world.fleet)
    await world.fleet.evicted("on-mac-1")
    assert world.clock.monotonic() - tainted_s <= 302


async def test_a_host_whose_own_clock_was_set_back_is_still_heard(world: World, clock: VirtualClock) -> None:
    """A renewal with an older time than the last one is news all the same."""
    await settle(world.fleet)
    clock.jump(timedelta(days=-365))
    await elapse(600)
    assert all(world.fleet.says(name, "Ready")[0] == "True" for name in HOSTS)


def are_given_up(fleet: Fleet, hosts: tuple[str, ...], count: int) -> bool:
    return sum(fleet.taints(name) == TAINTED for name in hosts) >= count


async def test_lost_hosts_are_given_up_one_at_a_time(world: World) -> None:
    hosts = tuple(f"mac-{number}" for number in range(1, 11))
    await settle(world.fleet, hosts)
    for name in hosts[:4]:
        await world.fleet.hosts[name].fall_silent()
    began_s = world.clock.monotonic()
    given_up: list[float] = []
    for count in range(1, 5):
        await world.fleet.until(partial(are_given_up, world.fleet, hosts, count), f"{count} hosts are given up")
        given_up.append(world.clock.monotonic() - began_s)
    assert all(later - earlier >= 10 for earlier, later in itertools.pairwise(given_up))


async def test_when_most_of_a_small_fleet_is_lost_nobody_is_moved(world: World) -> None:
    hosts = tuple(f"mac-{number}" for number in range(1, 6))
    await settle(world.fleet, hosts)
    for name in hosts[:3]:
        await world.fleet.hosts[name].fall_silent()
    await elapse(LONG_S)
    evicted = [name for name in hosts if world.fleet.is_leaving(f"on-{name}")]
    assert len(evicted) <= 1  # the first may have been given up before the others were known to be lost
    assert not any(world.fleet.is_leaving(f"on-{name}") for name in hosts[3:])


async def test_when_a_dark_fleet_lights_up_a_host_that_is_about_to_be_lost_has_its_whole_grace_again(world: World) -> None:
    await settle(world.fleet, ("mac-1",))
    await world.fleet.hosts["mac-1"].fall_silent()
    await world.fleet.lost("mac-1")
    await world.fleet.host("mac-2", beats=False, posts=False)
    await elapse(55)
    await world.fleet.hosts["mac-1"].come_back()
    lit_s = world.clock.monotonic()
    await world.fleet.lost("mac-2")
    assert world.clock.monotonic() - lit_s >= 60


async def test_a_pod_bound_to_a_lost_host_is_marked_and_leaves_like_the_others(world: World) -> None:
    await lost_host(world)
    await elapse(100)
    await world.fleet.pod(pod("late", on="mac-1", tolerations=leaves_after(30)))
    await world.fleet.evicted("late")
    late = world.fleet.pod_named("late")
    assert late is not None
    ready = late.condition("Ready")
    assert ready is not None
    assert ready.status == "False"


async def test_a_node_that_is_created_again_under_its_name_begins_with_a_fresh_grace(world: World) -> None:
    await lost_host(world)
    await world.fleet.client.delete(Node, Key("", "mac-1"))
    await world.fleet.hosts["mac-1"].register()
    await world.fleet.tainted("mac-1")
    await elapse(40)
    assert world.fleet.says("mac-1", "Ready")[0] == "True"
    await world.fleet.lost("mac-1")


async def test_a_pod_with_a_finalizer_is_asked_to_leave_and_its_finalizer_stays(world: World) -> None:
    await settle(world.fleet)
    held = pod("held", on="mac-1", tolerations=(tolerates(UNREACHABLE, 5),))
    made = await world.fleet.pod(held)
    await world.fleet.client.patch(Pod, made.key, _finalizer())
    await world.fleet.hosts["mac-1"].fall_silent()
    await world.fleet.evicted("held")
    await elapse(LONG_S)
    stored = world.fleet.pod_named("held")
    assert stored is not None
    assert stored.metadata.finalizers == ("tuist.dev/tart-kubelet",)


async def test_the_controller_ends_when_it_is_cancelled(world: World) -> None:
    await settle(world.fleet)
    await world.stop_controller()
    left = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(("nodes-", "evictions-"))]
    assert left == []


def _finalizer() -> Merge:
    return Merge({"metadata": {"finalizers": ["tuist.dev/tart-kubelet"]}})
