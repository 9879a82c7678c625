"""The agent's process on a real kube-apiserver: a Pod from its creation until it is gone, as kubectl shows it."""

import asyncio
import subprocess
from collections.abc import Callable

import pytest

from applecart.api import finalizers
from applecart.api.coordination import Lease
from applecart.api.events import Event
from applecart.api.meta import Key
from applecart.api.node_access import NODE_LEASES
from applecart.api.nodes import Node
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod
from applecart.api.well_known_names import KUBELET_EVENT_SOURCE
from applecart.sim.tart import guest_rules
from tests.kubelet.real.apis import Api
from tests.kubelet.real.conftest import StartsAgents
from tests.kubelet.real.following import Followed, following
from tests.kubelet.real.pods import vm_pod
from tests.kubernetes.cluster import FullCluster

KUBECTL_S = 30

pytestmark = pytest.mark.kubernetes

Kubectl = Callable[..., str]


@pytest.fixture
def kubectl(real_cluster: FullCluster, real: Api) -> Kubectl:
    def run(*words: str) -> str:
        argv = [
            str(real_cluster.programs / "kubectl"),
            f"--kubeconfig={real.kubeconfig}",
            f"--namespace={real.namespace}",
            *words,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=KUBECTL_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def is_in(phase: str, pods: Followed[Pod], key: Key) -> Callable[[], bool]:
    def holds() -> bool:
        pod = pods.get(key)
        return pod is not None and pod.status.phase == phase

    return holds


def is_ready(nodes: Followed[Node], name: str) -> Callable[[], bool]:
    def holds() -> bool:
        node = nodes.get(Key("", name))
        ready = node.condition("Ready") if node is not None else None
        return ready is not None and ready.status == "True"

    return holds


async def test_a_pod_becomes_a_vm_that_kubectl_can_read_and_goes(real: Api, agent_of: StartsAgents, kubectl: Kubectl) -> None:
    agent = agent_of(real, *real.serving_flags)
    agent.start()
    async with following(real.client, Pod, agent, real.namespace) as pods, following(real.client, Node, agent) as nodes:
        await nodes.until(is_ready(nodes, real.node), "the Node is ready")
        key = (await real.client.create(vm_pod("job-1", real.namespace, real.node))).key
        await pods.until(is_in(RUNNING, pods, key), "the VM runs")
        pod = pods.get(key)
        assert pod is not None
        assert finalizers.VM_CLEANUP in pod.metadata.finalizers
        assert pod.status.pod_ip.startswith("192.168.64.")
        assert "is up at" in await asyncio.to_thread(kubectl, "logs", "job-1")
        shown = await asyncio.to_thread(kubectl, "get", "pod", "job-1", "--no-headers")
        assert shown.split()[1:3] == ["1/1", "Running"]  # incident 10: 0/1 for healthy VMs misled people
        await real.client.delete(Pod, key)
        await pods.until(lambda: pods.get(key) is None, "the Pod is gone")
    events = {event.reason: event for event in await real.client.list(Event, real.namespace)}
    assert {"CreatingVM", "Pulling", "Pulled", "Started", "Killing"} <= set(events)
    assert {event.source.component for event in events.values() if event.source} == {KUBELET_EVENT_SOURCE}
    described = await asyncio.to_thread(kubectl, "get", "events", "--no-headers")
    assert "pod/job-1" in described
    assert [boot.times for boot in agent.boots] == [1]
    assert agent.vms() == []


async def test_a_person_enters_a_vm(real: Api, agent_of: StartsAgents, kubectl: Kubectl) -> None:
    """The agent says on its Node that it streams over WebSocket; API servers before 1.36 do not know that and speak SPDY."""
    agent = agent_of(real, *real.serving_flags)
    agent.start()
    async with following(real.client, Pod, agent, real.namespace) as pods:
        key = (await real.client.create(vm_pod("job-1", real.namespace, real.node))).key
        await pods.until(is_in(RUNNING, pods, key), "the VM runs")
        assert await asyncio.to_thread(kubectl, "exec", "job-1", "--", "echo", "hello") == "hello\n"


async def test_a_job_that_ends_tells_its_code_and_never_boots_again(real: Api, agent_of: StartsAgents) -> None:
    """Incidents 2 and 11: a finished Pod was booted again, and its exit code was lost."""
    agent = agent_of(real)
    agent.start()
    async with following(real.client, Pod, agent, real.namespace) as pods:
        ends = {"good": (SUCCEEDED, 0), "bad": (FAILED, 7)}
        for name, (_, code) in ends.items():
            env = {guest_rules.RUN_SECONDS: "0.2", guest_rules.EXIT_CODE: str(code)}
            await real.client.create(vm_pod(name, real.namespace, real.node, env))
        for name, (phase, code) in ends.items():
            key = Key(real.namespace, name)
            await pods.until(is_in(phase, pods, key), f"{name} ended")
            pod = pods.get(key)
            assert pod is not None
            state = pod.status.container_statuses[0].state
            assert state is not None
            assert state.terminated is not None
            assert state.terminated.exit_code == code
        agent.kill()
        agent.start()
        for name in ends:
            await real.client.delete(Pod, Key(real.namespace, name))
        await pods.until(lambda: not len(pods.informer), "both are gone")
    assert sorted((boot.vm, boot.times) for boot in agent.boots) == sorted((f"{real.namespace}-{name}", 1) for name in ends)


async def test_a_node_is_registered_kept_alive_and_made_again(real: Api, agent_of: StartsAgents) -> None:
    """Weakness 22: a Node that somebody deleted came back only with a restart of the agent."""
    agent = agent_of(real)
    agent.start()
    key = Key(NODE_LEASES, real.node)
    async with following(real.client, Node, agent) as nodes, following(real.client, Lease, agent, NODE_LEASES) as leases:

        def renewed() -> bool:
            times = {change.new.renewed_at for change in leases.changes if change.key == key and change.new is not None}
            return len(times) >= 2

        await nodes.until(is_ready(nodes, real.node), "the Node is ready")
        first = nodes.get(Key("", real.node))
        assert first is not None
        await real.client.delete(Node, first.key)

        def is_back() -> bool:
            node = nodes.get(Key("", real.node))
            return node is not None and node.uid != first.uid and is_ready(nodes, real.node)()

        await nodes.until(is_back, "another one is ready")
        await leases.until(renewed, "the heartbeat goes on")
    assert agent.stop() == 0
