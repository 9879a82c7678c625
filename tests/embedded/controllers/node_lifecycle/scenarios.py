"""What a node lifecycle must do, told as scenarios that any one on any Kubernetes API can play.

The same list runs with ours and with kube-controller-manager, so what holds here is not our opinion. Nobody plays a kubelet
that finishes deletions: a Pod with a node that is being deleted stays, and that counts as evicted.
"""

from collections.abc import Awaitable, Callable

from applecart.api.nodes import Node
from applecart.kube.patch import Merge, Strategic
from tests.embedded.controllers.node_lifecycle.fleet import Fleet
from tests.embedded.controllers.node_lifecycle.objects import leaves_after, pod, tolerates

STOPPED = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
UNREACHABLE = (("unreachable", "NoSchedule"), ("unreachable", "NoExecute"))
NOT_READY = (("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
SOON_S = 2  # a toleration that runs out while a test watches

Scenario = Callable[[Fleet], Awaitable[None]]
SCENARIOS: list[Scenario] = []


def scenario(play: Scenario) -> Scenario:
    SCENARIOS.append(play)
    return play


@scenario
async def a_silent_host_is_unknown_tainted_and_loses_its_pods_when_they_tolerate_it_no_longer(fleet: Fleet) -> None:
    lost = await fleet.host("lost")
    await fleet.host("well")
    await fleet.pod(pod("short", on="lost", tolerations=leaves_after(SOON_S)))
    await fleet.pod(pod("patient", on="lost", tolerations=(tolerates("node.kubernetes.io/unreachable"),)))
    await fleet.pod(pod("elsewhere", on="well", tolerations=leaves_after(SOON_S)))
    await fleet.tainted("lost")
    await lost.fall_silent()
    await fleet.until(lambda: {fleet.says("lost", type_) for type_ in CONDITIONS} == {STOPPED}, "all conditions are unknown")
    await fleet.tainted("lost", *UNREACHABLE)
    await fleet.evicted("short")
    await fleet.said("NodeNotReady", "lost", "Node lost status is now: NodeNotReady")
    await fleet.said("NodeNotReady", "short", "Node is not ready")
    await fleet.said("TaintManagerEviction", "short", f"Marking for deletion Pod {fleet.namespace}/short")
    evicted = fleet.pod_named("short")
    assert evicted is not None
    target = evicted.condition("DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason) == ("True", "DeletionByTaintManager")
    assert target.message == "Taint manager: deleting due to NoExecute taint"
    for name in ("short", "patient"):
        stored = fleet.pod_named(name)
        assert stored is not None
        ready = stored.condition("Ready")
        assert ready is not None
        assert ready.status == "False"
    assert not fleet.is_leaving("patient")
    assert not fleet.is_leaving("elsewhere")
    assert fleet.taints("well") == set()


@scenario
async def a_host_that_comes_back_loses_its_taints_and_keeps_its_pods(fleet: Fleet) -> None:
    lost = await fleet.host("lost")
    await fleet.host("well")
    await fleet.pod(pod("runner", on="lost", tolerations=leaves_after(600)))
    await fleet.tainted("lost")
    await lost.fall_silent()
    await fleet.tainted("lost", *UNREACHABLE)
    await lost.come_back()
    await fleet.tainted("lost")
    await fleet.said("TaintManagerEviction", "runner", f"Cancelling deletion of Pod {fleet.namespace}/runner")
    assert not fleet.is_leaving("runner")


@scenario
async def when_all_hosts_are_silent_nobody_is_evicted(fleet: Fleet) -> None:
    hosts = [await fleet.host(f"dark-{number}") for number in range(3)]
    for host in hosts:
        await fleet.pod(pod(f"on-{host.name}", on=host.name, tolerations=leaves_after(SOON_S + 3)))
        await fleet.tainted(host.name)
    for host in hosts:
        await host.fall_silent()
    for host in hosts:
        await fleet.lost(host.name)
        await fleet.tainted(host.name, ("unreachable", "NoSchedule"))
    assert not any(fleet.is_leaving(f"on-{host.name}") for host in hosts)


@scenario
async def a_node_whose_agent_never_said_anything_is_unknown_after_its_first_grace(fleet: Fleet) -> None:
    await fleet.host("mute", beats=False, posts=False)
    await fleet.host("well")
    await fleet.until(lambda: {fleet.says("mute", type_) for type_ in CONDITIONS} == {NEVER}, "it never posted")
    await fleet.tainted("mute", *UNREACHABLE)


@scenario
async def a_host_that_says_it_is_not_ready_is_tainted_as_such(fleet: Fleet) -> None:
    sick = await fleet.host("sick")
    await fleet.host("well")
    await fleet.pod(pod("runner", on="sick", tolerations=leaves_after(SOON_S)))
    await fleet.tainted("sick")
    await sick.post("False")
    await fleet.tainted("sick", *NOT_READY)
    await fleet.evicted("runner")
    await sick.post("True")
    await fleet.tainted("sick")


@scenario
async def a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not(fleet: Fleet) -> None:
    host = await fleet.host("cordoned")
    await fleet.tainted("cordoned")
    await fleet.client.patch(Node, host.key, Merge({"spec": {"unschedulable": True}}))
    await fleet.tainted("cordoned", ("unschedulable", "NoSchedule"))
    await fleet.client.patch(Node, host.key, Merge({"spec": {"unschedulable": None}}))
    await fleet.tainted("cordoned")


@scenario
async def pressure_keeps_new_pods_away_and_taints_of_others_stay(fleet: Fleet) -> None:
    host = await fleet.host("full")
    await fleet.tainted("full")
    mine = [{"key": "tuist.dev/macos", "value": "true", "effect": "NoSchedule"}]
    await fleet.client.patch(Node, host.key, Merge({"spec": {"taints": mine}}))
    pressed = {"status": {"conditions": [{"type": "DiskPressure", "status": "True"}]}}
    await fleet.client.patch_status(Node, host.key, Strategic(pressed))
    await fleet.tainted("full", ("tuist.dev/macos", "NoSchedule"), ("disk-pressure", "NoSchedule"))
    await host.post("True")
    await fleet.tainted("full", ("tuist.dev/macos", "NoSchedule"))


@scenario
async def a_taint_that_a_person_sets_evicts_at_once_who_does_not_tolerate_it_and_others_in_time(fleet: Fleet) -> None:
    host = await fleet.host("mended")
    await fleet.pod(pod("stranger", on="mended"))
    await fleet.pod(pod("limited", on="mended", tolerations=(tolerates("maintenance", SOON_S),)))
    await fleet.pod(pod("welcome", on="mended", tolerations=(tolerates("maintenance"),)))
    await fleet.tainted("mended")
    taint = {"key": "maintenance", "effect": "NoExecute"}
    await fleet.client.patch(Node, host.key, Merge({"spec": {"taints": [taint]}}))
    await fleet.evicted("stranger")
    await fleet.evicted("limited")
    assert not fleet.is_leaving("welcome")


@scenario
async def a_posted_status_is_a_heartbeat_too(fleet: Fleet) -> None:
    talks = await fleet.host("talks", beats=False)
    talks.beat(by_status=True)
    await fleet.host("mute", beats=False)
    await fleet.lost("mute")
    await fleet.tainted("mute", *UNREACHABLE)
    assert fleet.says("talks", "Ready")[0] == "True"
    assert fleet.taints("talks") == set()
