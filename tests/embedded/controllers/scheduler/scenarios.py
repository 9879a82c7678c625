"""What a scheduler must do, told as scenarios that any scheduler on any Kubernetes API can play.

Each writes Nodes and Pods on an empty stage and states what must become of them: the node, the condition, the Event, in the
words of the real scheduler. The same list runs with our scheduler and with kube-scheduler, so what holds here is not our
opinion. Pods are removed with no grace: nobody plays the kubelet.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from applecart.api.containers import Container, Resources
from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, Overhead, RuntimeClass, RuntimeClassScheduling, Taint
from applecart.api.pods import Pod
from applecart.api.scheduling import SchedulingGate, Toleration
from applecart.kube.errors import AlreadyExists
from applecart.kube.patch import Json, Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.scheduler.objects import affinity, container, needs, node, pod, term
from tests.embedded.controllers.scheduler.stage import NO_CLAIMS, Stage, ensure

MACOS = Taint(key="tuist.dev/macos", effect="NoSchedule", value="true")
TOLERATES_MACOS = Toleration(key="tuist.dev/macos", operator="Exists", effect="NoSchedule")
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
MISMATCH = "node(s) didn't match Pod's node affinity/selector"

Scenario = Callable[[Stage], Awaitable[None]]
SCENARIOS: list[Scenario] = []


def scenario(play: Scenario) -> Scenario:
    SCENARIOS.append(play)
    return play


def unhelpful(count: int) -> str:
    return f"{NO_CLAIMS}, preemption: 0/{count} nodes are available: {count} {NOT_HELPFUL}."


def no_victims(count: int) -> str:
    return f"{NO_CLAIMS}, preemption: 0/{count} nodes are available: {count} {NO_VICTIMS}."


@scenario
async def a_pod_gets_the_node_it_fits_and_an_event_says_so(stage: Stage) -> None:
    await stage.node(node("mac-1"))
    await stage.pod(pod("runner"))
    assert await stage.placed("runner") == "mac-1"
    event = await stage.told("runner", "Scheduled", f"Successfully assigned {stage.namespace}/runner to mac-1")
    assert (event.type, event.reporting_component) == ("Normal", "default-scheduler")
    condition = stage.scheduled("runner")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("True", "", "")


@scenario
async def without_nodes_a_pod_waits_and_takes_the_first_that_comes(stage: Stage) -> None:
    await stage.pod(pod("runner"))
    await stage.refused("runner", "no nodes available to schedule pods")
    event = await stage.told("runner", "FailedScheduling", "no nodes available to schedule pods")
    assert event.type == "Warning"
    await stage.node(node("mac-1"))
    assert await stage.placed("runner") == "mac-1"


@scenario
async def a_node_selector_that_no_node_has_is_named(stage: Stage) -> None:
    await stage.node(node("mac-1", labels={"tuist.dev/fleet": "other"}))
    await stage.node(node("mac-2"))
    await stage.pod(pod("runner", node_selector={"tuist.dev/fleet": "ci"}))
    message = f"0/2 nodes are available: 2 {MISMATCH}. {unhelpful(2)}"
    await stage.refused("runner", message)
    await stage.told("runner", "FailedScheduling", message)
    await stage.label("mac-2", **{"tuist.dev/fleet": "ci"})
    assert await stage.placed("runner") == "mac-2"


@scenario
async def a_taint_keeps_away_who_does_not_tolerate_it(stage: Stage) -> None:
    await stage.node(node("mac-1", taints=(MACOS,)))
    await stage.pod(pod("stranger"))
    await stage.refused("stranger", f"0/1 nodes are available: 1 node(s) had untolerated taint(s). {unhelpful(1)}")
    await stage.pod(pod("runner", tolerations=(TOLERATES_MACOS,)))
    assert await stage.placed("runner") == "mac-1"
    await stage.taint("mac-1")
    assert await stage.placed("stranger") == "mac-1"


@scenario
async def a_taint_that_evicts_also_keeps_away(stage: Stage) -> None:
    await stage.node(node("mac-1", taints=(Taint(key="maintenance", effect="NoExecute"),)))
    await stage.pod(pod("runner", tolerations=(Toleration(key="maintenance", operator="Exists", effect="NoSchedule"),)))
    await stage.refused("runner", f"0/1 nodes are available: 1 node(s) had untolerated taint(s). {unhelpful(1)}")


@scenario
async def a_cordoned_node_takes_nobody_until_it_is_uncordoned(stage: Stage) -> None:
    cordoned = await stage.node(node("mac-1", unschedulable=True))
    await stage.pod(pod("runner"))
    await stage.refused("runner", f"0/1 nodes are available: 1 node(s) were unschedulable. {unhelpful(1)}")
    await stage.client.patch(Node, cordoned.key, Merge({"spec": {"unschedulable": None, "taints": None}}))
    assert await stage.placed("runner") == "mac-1"


@scenario
async def what_is_short_is_listed_by_how_many_nodes_lack_it(stage: Stage) -> None:
    await stage.node(node("mac-1", cpu="2", memory="4Gi"))
    await stage.node(node("mac-2", cpu="16", memory="4Gi"))
    await stage.node(node("mac-3", taints=(MACOS,)))
    await stage.pod(pod("runner", requests={"cpu": "4", "memory": "8Gi"}))
    reasons = "1 Insufficient cpu, 1 node(s) had untolerated taint(s), 2 Insufficient memory"
    await stage.refused("runner", f"0/3 nodes are available: {reasons}. {unhelpful(3)}")


@scenario
async def a_resource_of_a_vendor_is_counted_like_any_other(stage: Stage) -> None:
    await stage.node(node("mac-1", more={"example.com/probe": "1"}))
    wanted = Resources(requests={"example.com/probe": "1"}, limits={"example.com/probe": "1"})
    for name in ("first", "second"):
        await stage.pod(pod(name, containers=(Container(name="runner", image="image", resources=wanted),)))
    await stage.until(stage.pods, lambda: any(stage.node_of(name) for name in ("first", "second")), "one has the probe")
    loser = "second" if stage.node_of("first") else "first"
    await stage.refused(loser, f"0/1 nodes are available: 1 Insufficient example.com/probe. {no_victims(1)}")


@scenario
async def a_third_vm_waits_until_one_of_two_is_gone(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="2"))
    for name in ("one", "two"):
        await stage.pod(pod(name))
        await stage.placed(name)
    await stage.pod(pod("three"))
    await stage.refused("three", f"0/1 nodes are available: 1 Too many pods. {no_victims(1)}")
    await stage.delete("one")
    assert await stage.placed("three") == "mac-1"


@scenario
async def a_pod_that_is_being_deleted_counts_until_it_is_gone(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="1"))
    await stage.pod(pod("leaving"))
    await stage.placed("leaving")
    await stage.delete("leaving", grace_s=3600)
    await stage.pod(pod("next"))
    await stage.refused("next", f"0/1 nodes are available: 1 Too many pods. {no_victims(1)}")
    await stage.delete("leaving")
    assert await stage.placed("next") == "mac-1"


@scenario
async def a_finished_pod_gives_its_room_back(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="1"))
    await stage.pod(pod("finished"))
    await stage.placed("finished")
    await stage.pod(pod("next"))
    await stage.refused("next", f"0/1 nodes are available: 1 Too many pods. {no_victims(1)}")
    await stage.finish("finished")
    assert await stage.placed("next") == "mac-1"


@scenario
async def a_pod_that_somebody_pinned_to_a_node_counts_there(stage: Stage) -> None:
    await stage.node(node("mac-1", memory="16Gi"))
    await stage.pod(pod("pinned", on="mac-1", requests={"memory": "12Gi"}))
    await stage.until(stage.pods, lambda: stage.node_of("pinned") == "mac-1", "the pinned Pod is there")
    await stage.pod(pod("runner", requests={"memory": "8Gi"}))
    await stage.refused("runner", f"0/1 nodes are available: 1 Insufficient memory. {no_victims(1)}")


@scenario
async def a_preferred_node_wins_over_an_emptier_one(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="4"))
    await stage.node(node("mac-2", pods="4", labels={"tuist.dev/golden-abc": "true"}))
    await stage.pod(pod("resident", on="mac-2", requests={"cpu": "1", "memory": "1Gi"}))
    likes = affinity(preferred=((100, term(needs("tuist.dev/golden-abc", "Exists"))),))
    await stage.pod(pod("runner", affinity=likes, requests={"cpu": "1", "memory": "1Gi"}))
    assert await stage.placed("runner") == "mac-2"


@scenario
async def a_preference_that_has_no_room_is_only_a_preference(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="2"))
    await stage.node(node("mac-2", pods="1", labels={"tuist.dev/golden-abc": "true"}))
    likes = affinity(preferred=((100, term(needs("tuist.dev/golden-abc", "Exists"))),))
    await stage.pod(pod("first", affinity=likes))
    assert await stage.placed("first") == "mac-2"
    await stage.pod(pod("second", affinity=likes))
    assert await stage.placed("second") == "mac-1"


@scenario
async def a_soft_taint_makes_another_node_better(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="1", taints=(Taint(key="slow-disk", effect="PreferNoSchedule"),)))
    await stage.node(node("mac-2", pods="1"))
    await stage.pod(pod("first"))
    assert await stage.placed("first") == "mac-2"
    await stage.pod(pod("second"))
    assert await stage.placed("second") == "mac-1"


@scenario
async def pods_spread_over_equal_nodes(stage: Stage) -> None:
    for name in ("mac-1", "mac-2"):
        await stage.node(node(name, pods="4"))
    for name in ("first", "second"):
        await stage.pod(pod(name, requests={"cpu": "2", "memory": "4Gi"}))
        await stage.placed(name)
    assert {stage.node_of("first"), stage.node_of("second")} == {"mac-1", "mac-2"}


@scenario
async def required_affinity_compares_numbers_and_any_term_will_do(stage: Stage) -> None:
    await stage.node(node("mac-1", labels={"generation": "1"}))
    await stage.node(node("mac-4", labels={"generation": "4"}))
    newer = affinity(term(needs("fleet", "In", "gone")), term(needs("generation", "Gt", "2")))
    await stage.pod(pod("runner", affinity=newer))
    assert await stage.placed("runner") == "mac-4"
    neither = affinity(term(needs("generation", "NotIn", "1", "4")), term(needs("generation", "DoesNotExist")))
    await stage.pod(pod("picky", affinity=neither))
    await stage.refused("picky", f"0/2 nodes are available: 2 {MISMATCH}. {unhelpful(2)}")


@scenario
async def a_pod_that_names_its_node_never_looks_at_others(stage: Stage) -> None:
    for name in ("mac-1", "mac-2", "mac-3"):
        await stage.node(node(name, pods="1"))
    named = affinity(term(fields=(needs("metadata.name", "In", "mac-2"),)))
    await stage.pod(pod("first", affinity=named))
    assert await stage.placed("first") == "mac-2"
    await stage.pod(pod("second", affinity=named))
    reasons = "1 Too many pods, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]"
    preemption = f"0/3 nodes are available: 1 {NO_VICTIMS}, 2 {NOT_HELPFUL}"
    await stage.refused("second", f"0/3 nodes are available: {reasons}. {NO_CLAIMS}, preemption: {preemption}.")


@scenario
async def two_pods_cannot_have_the_same_port_of_a_host(stage: Stage) -> None:
    await stage.node(node("mac-1"))
    await stage.pod(pod("first", host_port=8080))
    await stage.placed("first")
    await stage.pod(pod("second", host_port=8080))
    ports = "1 node(s) didn't have free ports for the requested pod ports"
    await stage.refused("second", f"0/1 nodes are available: {ports}. {no_victims(1)}")
    await stage.pod(pod("other", host_port=8081))
    assert await stage.placed("other") == "mac-1"


@scenario
async def an_init_container_needs_room_only_while_it_starts_and_a_sidecar_always(stage: Stage) -> None:
    await stage.node(node("mac-1", cpu="4", pods="10"))
    starting = (container("setup", cpu="3"),)
    await stage.pod(pod("first", init_containers=starting, requests={"cpu": "1"}))
    await stage.placed("first")  # takes 3 of 4
    with_sidecar = (container("cache", restart_policy="Always", cpu="500m"), container("setup", cpu="250m"))
    await stage.pod(pod("second", init_containers=with_sidecar, requests={"cpu": "600m"}))
    await stage.refused("second", f"0/1 nodes are available: 1 Insufficient cpu. {no_victims(1)}")
    await stage.pod(pod("third", init_containers=with_sidecar, requests={"cpu": "500m"}))
    assert await stage.placed("third") == "mac-1"


@scenario
async def the_overhead_of_a_runtime_class_is_paid_by_its_pods(stage: Stage) -> None:
    overhead = RuntimeClass(
        metadata=ObjectMeta(name="kata"),
        handler="kata",
        overhead=Overhead(pod_fixed={"memory": "2Gi"}),
        scheduling=RuntimeClassScheduling(node_selector={"microvm": "true"}),
    )
    await ensure(stage.client, overhead)
    await stage.node(node("mac-1", memory="9Gi", labels={"microvm": "true"}))
    await stage.node(node("mac-2", memory="64Gi"))
    await stage.pod(pod("runner", runtime_class_name="kata", requests={"memory": "8Gi"}))
    reasons = f"1 Insufficient memory, 1 {MISMATCH}"
    await stage.refused("runner", f"0/2 nodes are available: {reasons}. {unhelpful(2)}")
    await stage.pod(pod("smaller", runtime_class_name="kata", requests={"memory": "7Gi"}))
    assert await stage.placed("smaller") == "mac-1"


@scenario
async def a_gated_pod_says_so_and_is_placed_when_the_gate_is_lifted(stage: Stage) -> None:
    await stage.node(node("mac-1"))
    await stage.pod(pod("runner", scheduling_gates=(SchedulingGate(name="tuist.dev/prefetch"),)))
    gated = "Scheduling is blocked due to non-empty scheduling gates"
    await stage.refused("runner", gated, reason="SchedulingGated")
    await stage.client.patch(Pod, stage.key("runner"), Json([{"op": "remove", "path": "/spec/schedulingGates"}]))
    assert await stage.placed("runner") == "mac-1"


@scenario
async def a_pod_of_another_scheduler_is_left_alone(stage: Stage) -> None:
    await stage.node(node("mac-1", pods="1"))
    await stage.pod(pod("foreign", scheduler_name="somebody-else"))
    await stage.pod(pod("ours"))
    await stage.placed("ours")
    assert stage.node_of("foreign") == ""
    assert stage.scheduled("foreign") is None


@scenario
async def the_higher_priority_comes_first_and_never_preempts_when_told_so(stage: Stage) -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
        "preemptionPolicy": "Never",
    }
    with suppress(AlreadyExists):
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await stage.client.call(Request("POST", path, body=msgspec.json.encode(urgent)))
    await stage.node(node("mac-1", pods="1"))
    await stage.pod(pod("resident"))
    await stage.placed("resident")
    await stage.pod(pod("patient"))
    await stage.refused("patient", f"0/1 nodes are available: 1 Too many pods. {no_victims(1)}")
    await stage.pod(pod("hasty", priority_class_name="urgent", priority=1000, preemption_policy="Never"))
    never = f"{NO_CLAIMS}, preemption: not eligible due to preemptionPolicy=Never."
    await stage.refused("hasty", f"0/1 nodes are available: 1 Too many pods. {never}")
    await stage.delete("resident")
    assert await stage.placed("hasty") == "mac-1"
    assert stage.node_of("patient") == ""
