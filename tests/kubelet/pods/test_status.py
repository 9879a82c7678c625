"""A Pod's status is complete at every moment and only goes forward."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import Container, Resources
from applecart.api.core import ServiceAccount
from applecart.api.meta import ObjectMeta
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED, Pod, PodCondition, PodIP, PodSpec, PodStatus, ReadinessGate
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import Conflict, Invalid
from applecart.kube.patch import Strategic
from applecart.kubelet.entry import Exit, JournalEntry, Stage, Trouble
from applecart.kubelet.pods.status import View, pod_status, refused_status, status_patch
from applecart.kubelet.pods.trouble import never_ran
from applecart.secrets import Secret
from tests.kube.embedded_api import serving
from tests.kubernetes.cluster import FullCluster
from tests.secret_guard import SecretGuard

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
DIGEST = "registry.example/macos@sha256:" + "a" * 64
SCHEDULED = PodCondition(type="PodScheduled", status="True", last_transition_time=NOON)
FOREIGN = PodCondition(type="example.dev/Warm", status="True", last_transition_time=NOON)
CONDITIONS = ("Ready", "ContainersReady", "Initialized", "PodReadyToStartContainers", "PodScheduled")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def pod(status: PodStatus | None = None, **spec: Any) -> Pod:
    container = Container(name="runner", image="registry.example/macos:15", resources=Resources(limits={"cpu": "4"}))
    given = status or PodStatus(phase=PENDING, conditions=(SCHEDULED,), qos_class="Burstable")
    return Pod(
        metadata=ObjectMeta(name="runner-1", namespace="ci", uid="7f0c"),
        spec=PodSpec(**{"containers": (container,), "node_name": "mac-7", **spec}),
        status=given,
    )


def entry(stage: Stage = Stage.ACCEPTED, **changes: Any) -> JournalEntry:
    known = JournalEntry(uid="7f0c", namespace="ci", name="runner-1", vm="ci-runner-1", stage=stage, accepted_at=at(1.5))
    return msgspec.structs.replace(known, **changes)


UP = entry(Stage.RUNNING, digest=DIGEST, started_at=at(5.25), booted_at=at(20))
DONE = Exit(SUCCEEDED, "", "", "Completed", 0, finished_at=at(100.7))
BROKEN = Exit(FAILED, "TartRunFailed", "tart run was killed", "TartRunFailed", 137, 9, at(100))
VIEW = View(host_ip="10.0.0.7", pod_ip="192.168.64.9")


def said(status: PodStatus) -> dict[str, str]:
    return {condition.type: condition.status for condition in status.conditions}


def test_a_pod_whose_vm_is_being_made_waits_for_its_container() -> None:
    status = pod_status(pod(), entry(), View(host_ip="10.0.0.7", waiting="pulling the image"), at(2))
    (container,) = status.container_statuses
    assert status.phase == PENDING
    assert container.state is not None
    assert container.state.waiting is not None
    assert (container.state.waiting.reason, container.state.waiting.message) == ("ContainerCreating", "pulling the image")
    assert (status.host_ip, status.start_time, status.reason) == ("10.0.0.7", at(1), "")
    assert said(status) == {
        "PodScheduled": "True",
        "Initialized": "True",
        "PodReadyToStartContainers": "False",
        "ContainersReady": "False",
        "Ready": "False",
    }


def test_a_pod_in_trouble_says_which_in_two_places() -> None:
    trouble = Trouble("config", "CreateContainerConfigError", "Secret ci/login does not exist", 3, NOON, at(60))
    status = pod_status(pod(), entry(trouble=trouble), VIEW, at(2))
    waiting = status.container_statuses[0].state
    assert (status.phase, status.reason, status.message) == (PENDING, "TartCreateFailed", trouble.sentence)
    assert waiting is not None
    assert waiting.waiting is not None
    assert (waiting.waiting.reason, waiting.waiting.message) == (trouble.reason, trouble.sentence)


def test_a_running_guest_is_one_of_one_ready() -> None:
    """Incident 10: kubectl showed 0/1 for healthy VMs, because no container was ever told of."""
    status = pod_status(pod(), UP, VIEW, at(30))
    (container,) = status.container_statuses
    assert (status.phase, status.pod_ip, status.pod_ips) == (RUNNING, "192.168.64.9", (PodIP(ip="192.168.64.9"),))
    assert (container.ready, container.started, container.restart_count) == (True, True, 0)
    assert (container.container_id, container.image, container.image_id) == (
        "tart://ci-runner-1",
        "registry.example/macos:15",
        DIGEST,
    )
    assert container.state is not None
    assert container.state.running is not None
    assert container.state.running.started_at == at(5)
    assert set(said(status).values()) == {"True"}


def test_a_guest_without_an_address_is_not_running_yet() -> None:
    """Incident 5: a slow first boot takes minutes and is no failure."""
    booting = entry(Stage.RUNNING, started_at=at(5))
    assert pod_status(pod(), booting, View(host_ip="10.0.0.7"), at(200)).phase == PENDING


def test_a_guest_whose_probe_fails_runs_and_is_not_ready() -> None:
    status = pod_status(pod(), UP, View("10.0.0.7", "192.168.64.9", is_ready=False, not_ready="dial tcp: refused"), at(30))
    assert status.phase == RUNNING
    assert status.container_statuses[0].ready is False
    assert (said(status)["Ready"], said(status)["PodReadyToStartContainers"]) == ("False", "True")
    ready = next(condition for condition in status.conditions if condition.type == "Ready")
    assert ready.reason == "ContainersNotReady"
    assert "[runner]" in ready.message
    assert "dial tcp: refused" in ready.message


def test_a_guest_that_is_still_starting_is_neither_started_nor_ready() -> None:
    status = pod_status(pod(), UP, View("10.0.0.7", "192.168.64.9", is_started=False), at(30))
    assert (status.container_statuses[0].started, status.container_statuses[0].ready) == (False, False)


def test_one_failed_look_takes_nothing_back() -> None:
    """Weakness 11: one failed `tart ip` put a running Pod back to Pending, without address and conditions."""
    up = pod_status(pod(), UP, VIEW, at(30))
    again = pod_status(pod(up), UP, View(), at(60))
    assert again == up
    forgotten = pod_status(pod(up), entry(Stage.RUNNING), View(), at(60))
    assert (forgotten.phase, forgotten.pod_ip) == (RUNNING, "192.168.64.9")


@pytest.mark.parametrize(("end", "reason"), [(DONE, "PodCompleted"), (BROKEN, "PodFailed")])
def test_an_end_tells_code_signal_reason_and_times(end: Exit, reason: str) -> None:
    """Incident 11: terminal Pods had no container status, so nobody could see exit codes or bill the time."""
    up = pod_status(pod(), UP, VIEW, at(30))
    status = pod_status(pod(up), msgspec.structs.replace(UP, stage=Stage.ENDED, exit=end), View(), at(110))
    (container,) = status.container_statuses
    assert container.state is not None
    terminated = container.state.terminated
    assert terminated is not None
    assert (status.phase, status.reason, status.message) == (end.phase, end.reason, end.message)
    assert (terminated.exit_code, terminated.signal, terminated.reason) == (end.code, end.signal, end.container_reason)
    assert (terminated.started_at, terminated.finished_at) == (at(5), at(100))
    assert (terminated.container_id, container.container_id, container.image_id) == (*["tart://ci-runner-1"] * 2, DIGEST)
    assert (container.ready, container.started) == (False, False)
    assert (status.pod_ip, status.start_time) == ("192.168.64.9", at(1))
    assert {said(status)[name] for name in ("Ready", "ContainersReady", "PodReadyToStartContainers")} == {"False"}
    assert next(condition for condition in status.conditions if condition.type == "Ready").reason == reason


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED])
def test_a_pod_that_ended_stays_as_it_ended(phase: str) -> None:
    """Incident 2: a finished Pod was booted again and looked alive."""
    ended = pod(PodStatus(phase=phase, reason="Evicted"))
    for known in (None, entry(), UP, msgspec.structs.replace(UP, exit=BROKEN)):
        assert pod_status(ended, known, VIEW, at(200)) is ended.status
    assert refused_status(ended, BROKEN, VIEW, at(200)) is ended.status


def test_a_refused_pod_tells_of_each_of_its_containers() -> None:
    """Weakness 18: Pods that could not be VMs got no status at all."""
    two = pod(containers=(Container(name="a", image="x"), Container(name="b", image="y")))
    end = never_ran("UnsupportedPod", "it has 2 containers", at(3))
    status = refused_status(two, end, VIEW, at(3))
    assert (status.phase, status.reason, status.message) == (FAILED, "UnsupportedPod", "it has 2 containers")
    assert [container.name for container in status.container_statuses] == ["a", "b"]
    assert all(container.state and container.state.terminated for container in status.container_statuses)
    assert all(container.container_id == "" for container in status.container_statuses)
    assert status.start_time == at(3)


def test_what_others_wrote_is_kept() -> None:
    """Weakness 11: the whole status was replaced, and PodScheduled with it."""
    given = pod(PodStatus(phase=PENDING, conditions=(SCHEDULED, FOREIGN), qos_class="Guaranteed", nominated_node_name="x"))
    for known in (entry(), UP, msgspec.structs.replace(UP, exit=BROKEN)):
        status = pod_status(given, known, VIEW, at(30))
        assert {SCHEDULED, FOREIGN} <= set(status.conditions)
        assert (status.qos_class, status.nominated_node_name) == ("Guaranteed", "x")


def test_a_pod_that_no_scheduler_saw_is_scheduled_all_the_same() -> None:
    assert said(pod_status(pod(PodStatus(phase=PENDING)), entry(), VIEW, at(2)))["PodScheduled"] == "True"
    waits = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", last_transition_time=NOON)
    assert waits in pod_status(pod(PodStatus(phase=PENDING, conditions=(waits,))), entry(), VIEW, at(2)).conditions


def test_a_gate_that_others_keep_shut_keeps_the_pod_from_being_ready() -> None:
    gated = pod(readiness_gates=(ReadinessGate(condition_type="example.dev/Warm"),))
    status = pod_status(gated, UP, VIEW, at(30))
    assert (said(status)["ContainersReady"], said(status)["Ready"]) == ("True", "False")
    opened = msgspec.structs.replace(status, conditions=(*status.conditions, FOREIGN))
    gated = pod(opened, readiness_gates=(ReadinessGate(condition_type="example.dev/Warm"),))
    assert said(pod_status(gated, UP, VIEW, at(40)))["Ready"] == "True"


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    pending = pod_status(pod(), entry(), VIEW, at(2))
    later = pod_status(pod(pending), entry(), VIEW, at(10))
    up = pod_status(pod(later), UP, VIEW, at(30))
    since = {condition.type: condition.last_transition_time for condition in up.conditions}
    assert later == pending
    assert (since["Initialized"], since["Ready"], since["PodScheduled"]) == (at(2), at(30), NOON)


def test_a_secret_in_a_sentence_is_masked(secret_guard: SecretGuard) -> None:
    password = Secret("hunter2-hunter2")
    trouble = Trouble("tart", "TartCreateFailed", f"login {password.reveal()} failed", 1, NOON, at(60))
    with secret_guard.looking_away():
        status = pod_status(pod(), entry(trouble=trouble), VIEW, at(2))
    assert status.message == "login *** failed"


# The patch


def test_nothing_is_sent_when_nothing_changed() -> None:
    status = pod_status(pod(), UP, VIEW, at(30))
    assert status_patch(status, pod_status(pod(status), UP, VIEW, at(60)), "7f0c") is None


def test_only_what_changed_is_sent_and_only_to_this_pod() -> None:
    up = pod_status(pod(), UP, VIEW, at(30))
    shaky = pod_status(pod(up), UP, msgspec.structs.replace(VIEW, is_ready=False), at(40))
    patch = status_patch(up, shaky, "7f0c")
    assert patch is not None
    assert patch.body["metadata"] == {"uid": "7f0c"}
    assert set(patch.body["status"]) == {"conditions", "containerStatuses"}
    assert {condition["type"] for condition in patch.body["status"]["conditions"]} == {"Ready", "ContainersReady"}


@pytest.fixture
async def client(clock: Clock) -> AsyncIterator[Client]:
    async with serving(clock) as running:
        yield Client(running.transport(), clock)


async def publish(client: Client, given: Pod, known: JournalEntry, view: View, now: datetime) -> Pod:
    """One pass of an agent: it must find nothing more to say afterwards."""
    patch = status_patch(given.status, pod_status(given, known, view, now), given.uid)
    if patch is not None:
        given = await client.patch_status(Pod, given.key, patch)
    again = pod_status(given, known, view, now + timedelta(seconds=10))
    assert status_patch(given.status, again, given.uid) is None
    return given


async def live_and_die(client: Client, namespace: str) -> None:
    made = await client.create(Pod(metadata=ObjectMeta(name="runner-1", namespace=namespace), spec=pod().spec))
    body = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    made = await client.patch_status(Pod, made.key, Strategic(body))
    trouble = Trouble("tart", "TartCreateFailed", "tart is unwell", 1, NOON, at(60))
    made = await publish(client, made, entry(trouble=trouble), View(host_ip="10.0.0.7"), at(2))
    assert (made.status.reason, made.status.message) == ("TartCreateFailed", "tart is unwell")
    made = await publish(client, made, UP, VIEW, at(30.5))
    assert (made.status.phase, made.status.reason, made.status.message) == (RUNNING, "", "")
    ready = made.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason, ready.message) == ("True", "", "")
    made = await publish(client, made, UP, View("10.0.0.7", "192.168.64.11"), at(40))
    assert (made.status.pod_ip, made.status.pod_ips) == ("192.168.64.11", (PodIP(ip="192.168.64.11"),))
    ended = msgspec.structs.replace(UP, exit=BROKEN)
    made = await publish(client, made, ended, View(), at(110))
    meant = pod_status(pod(), ended, VIEW, NOON)
    assert (made.status.phase, made.status.container_statuses) == (FAILED, meant.container_statuses)
    assert sorted(said(made.status)) == sorted(CONDITIONS)
    assert made.status.qos_class == "Burstable"


async def reach_another_pod(client: Client, namespace: str) -> None:
    made = await client.create(Pod(metadata=ObjectMeta(name="runner-2", namespace=namespace), spec=pod().spec))
    patch = status_patch(made.status, pod_status(made, UP, VIEW, at(30)), "another-uid")
    assert patch is not None
    with pytest.raises((Conflict, Invalid), match="another-uid"):
        await client.patch_status(Pod, made.key, patch)
    assert (await client.get(Pod, made.key)).status.phase == PENDING


async def test_the_api_says_what_the_agent_meant_over_a_whole_life(client: Client) -> None:
    await live_and_die(client, "ci")


async def test_a_new_pod_of_the_same_name_gets_nothing_of_the_old_ones_status(client: Client) -> None:
    await reach_another_pod(client, "ci")


@pytest.mark.kubernetes
async def test_a_real_api_server_says_the_same(real_cluster: FullCluster, namespace: str, clock: Clock) -> None:
    client = Client(connect(str(real_cluster.kubeconfig), None, clock, environ={}), clock)
    try:
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=namespace)))
        await live_and_die(client, namespace)
        await reach_another_pod(client, namespace)
    finally:
        await client.aclose()


# Any history


ENTRIES = st.sampled_from(
    [
        entry(),
        entry(Stage.CLONING, trouble=Trouble("tart", "TartCreateFailed", "tart is unwell", 1, NOON, at(60))),
        entry(Stage.RUNNING, started_at=at(5)),
        UP,
        msgspec.structs.replace(UP, exit=DONE),
        msgspec.structs.replace(UP, exit=BROKEN),
    ]
)
VIEWS = st.builds(
    View, st.sampled_from(["", "10.0.0.7"]), st.sampled_from(["", "192.168.64.9", "192.168.64.11"]), st.booleans()
)
ORDER = {PENDING: 0, RUNNING: 1, SUCCEEDED: 2, FAILED: 2}


@given(st.lists(st.tuples(ENTRIES, VIEWS), min_size=1, max_size=8))
def test_whatever_is_seen_a_status_is_complete_and_goes_forward(history: list[tuple[JournalEntry, View]]) -> None:
    current = pod()
    for step, (known, view) in enumerate(history):
        before = current.status
        status = pod_status(current, known, view, at(step * 10))
        assert ORDER[status.phase] >= ORDER[before.phase]
        assert not current.is_terminal or status == before
        assert sorted(said(status)) == sorted(CONDITIONS)
        assert len(status.container_statuses) == 1
        assert len(status.pod_ips) <= 1
        assert not before.pod_ip or status.pod_ip
        assert before.start_time in (None, status.start_time)
        assert (said(status)["Ready"] == "True") <= (status.phase == RUNNING)
        current = pod(status)
