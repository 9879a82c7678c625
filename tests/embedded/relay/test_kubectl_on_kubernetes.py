"""kubectl logs, exec, attach, cp and top with a simulated agent: behind our API and behind a real one.

The same scenarios run on both, so they also prove that the agent's side is a kubelet's: over WebSocket behind our API and a
real server of 1.36, over SPDY behind an older one.
"""

import asyncio
import os
import pty
import termios
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.sim.node_agent import NodeAgent, agent_tls
from tests.embedded.relay.stage import HOST, OurStage, Stage, Trust, client_context, our_stage, session_to
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

STAGES = ["embedded", "real"]


@pytest.fixture
def kubectl(kube_programs: Path) -> Path:
    return kube_programs / "kubectl"


@pytest.fixture
async def stage(
    request: pytest.FixtureRequest, real_cluster: FullCluster, namespace: str, tmp_path: Path, clock: Clock
) -> AsyncIterator[Stage]:
    if request.param == "embedded":
        async with our_stage(tmp_path, clock) as ours:
            yield ours
        return
    trust = Trust(tmp_path / "pki", clock)
    context = agent_tls(trust.agent.certificate, trust.agent.key, real_cluster.ca_pem)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(real_cluster.kubeconfig.read_bytes())
    async with (
        NodeAgent(namespace, context, clock, HOST) as agent,
        session_to(real_cluster.url, client_context(real_cluster.admin, real_cluster.ca_pem)) as session,
    ):
        real = Stage(real_cluster.url, session, agent, kubeconfig, namespace, node=f"node-{namespace}")
        await real.make_node()
        yield real
        async with session.delete(f"/api/v1/nodes/{real.node}") as answer:
            assert answer.status == 200


on_both = pytest.mark.parametrize("stage", STAGES, indirect=True)
on_ours = pytest.mark.parametrize("stage", ["embedded"], indirect=True)


@on_both
async def test_logs_in_all_their_forms(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job", "vm", "side")
    guest = stage.agent.add(stage.namespace, "job", "vm")
    stage.agent.add(stage.namespace, "job", "side").say("aside")
    guest.say("before")
    guest.restart()
    guest.say("old", ago=timedelta(hours=2))
    guest.say("one", "two")

    async def logs(*arguments: str) -> str:
        ran = await stage.kubectl(kubectl, "logs", "job", *arguments)
        assert ran.code == 0, ran.err
        return ran.out

    assert await logs("-c", "vm") == "old\none\ntwo\n"
    assert await logs("-c", "side") == "aside\n"
    assert await logs("-c", "vm", "--tail", "1") == "two\n"
    assert await logs("-c", "vm", "--since", "1h") == "one\ntwo\n"
    assert await logs("-c", "vm", "--previous") == "before\n"
    assert await logs("-c", "vm", "--limit-bytes", "4") == "old\n"
    assert "Z one\n" in await logs("-c", "vm", "--timestamps")
    assert sorted((await logs("--all-containers", "--tail", "1")).splitlines()) == ["aside", "two"]


@on_both
async def test_a_followed_log_ends_with_the_guest(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job")
    guest = stage.agent.add(stage.namespace, "job", "vm")
    guest.say("first")
    process = await stage.start_kubectl(kubectl, "logs", "-f", "job")
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"first\n"
        guest.say("second")
        assert await process.stdout.readline() == b"second\n"
        guest.end()
        assert await process.communicate() == (b"", b"")
    assert process.returncode == 0


@on_both
@pytest.mark.parametrize(
    ("container", "waiting", "said"),
    [
        ("vm", "ContainerCreating", 'container "vm" in pod "job" is waiting to start: ContainerCreating'),
        ("no", "", "container no is not valid for pod job"),
    ],
)
async def test_a_log_that_cannot_be_read_is_explained(
    stage: Stage, kubectl: Path, container: str, waiting: str, said: str
) -> None:
    await stage.make_pod("job")
    stage.agent.add(stage.namespace, "job", "vm").waiting = waiting
    ran = await stage.kubectl(kubectl, "logs", "job", "-c", container)
    assert (ran.code, said in ran.err) == (1, True), ran.err


@on_both
async def test_refusals_are_the_same_documents(stage: Stage) -> None:
    await stage.make_pod("job")
    await stage.make_pod("two", "a", "b")
    await stage.make_pod("lost", node="no-such-node")
    about = {
        "gone/log": 'pods "gone" not found',
        "two/log": "a container name must be specified for pod two, choose one of: [a b]",
        "lost/log": 'pods "no-such-node" not found',
        "job/log": "the server could not find the requested resource ( pods/log job)",
        "job/log?tailLines=-1": 'PodLogOptions "job" is invalid: tailLines: Invalid value: -1: '
        "must be greater than or equal to 0",
        "job/exec": "Upgrade request required",
    }
    answers = {path: await stage.refusal(stage.pod_path(path)) for path in about}
    assert {path: answer["message"] for path, answer in answers.items()} == about
    assert answers["job/log"]["details"] == {"name": "job", "kind": "pods/log"}


@on_both
async def test_exec_carries_output_input_and_exit_codes(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job")
    stage.agent.add(stage.namespace, "job", "vm")
    ran = await stage.kubectl(kubectl, "exec", "job", "--", "echo", "a b", "c")
    assert (ran.code, ran.out) == (0, "a b c\n"), ran.err
    ran = await stage.kubectl(kubectl, "exec", "job", "--", "sh", "-c", "echo oh >&2; exit 42")
    assert (ran.code, ran.err) == (42, "oh\ncommand terminated with exit code 42\n")
    typed = b"line\n" * 50_000
    ran = await stage.kubectl(kubectl, "exec", "-i", "job", "--", "cat", stdin=typed)
    assert (ran.code, ran.out.encode() == typed) == (0, True), ran.err


@on_both
async def test_exec_on_a_terminal_tells_the_size_of_its_window(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job")
    stage.agent.add(stage.namespace, "job", "vm")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    try:
        process = await stage.start_kubectl(kubectl, "exec", "-it", "job", "--", "window", "1", stdin=theirs, stdout=theirs)
        async with asyncio.timeout(30):
            _, err = await process.communicate()
        seen = os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, seen.replace(b"\r", b"")) == (0, b"80x24\n"), err


@on_both
async def test_attach_joins_the_main_process(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job")
    await stage._write(
        "PATCH", stage.pod_path("job/status"), {"status": {"phase": "Running"}}
    )  # kubectl attaches to nothing that has ended
    guest = stage.agent.add(stage.namespace, "job", "vm")
    ran = await stage.kubectl(kubectl, "attach", "-i", "job", stdin=b"hello\n")
    assert (ran.code, ran.out) == (0, "attached\nhello\n"), ran.err
    assert bytes(guest.stdin) == b"hello\n"


@on_both
async def test_cp_brings_files_there_and_back(stage: Stage, kubectl: Path, tmp_path: Path) -> None:
    await stage.make_pod("job")
    guest = stage.agent.add(stage.namespace, "job", "vm")
    content = bytes(range(256)) * 2000
    (tmp_path / "there").write_bytes(content)
    ran = await stage.kubectl(kubectl, "cp", str(tmp_path / "there"), "job:/tmp/there")
    assert ran.code == 0, ran.err
    assert guest.files == {"/tmp/there": content}
    ran = await stage.kubectl(kubectl, "cp", "job:/tmp/there", str(tmp_path / "back"))
    assert ran.code == 0, ran.err
    assert (tmp_path / "back").read_bytes() == content


@on_both
@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ("unknown", 'pod "unknown" does not exist'),
        ("waits", "pod waits does not have a host assigned"),
    ],
)
async def test_exec_that_cannot_run_is_explained_although_kubectl_falls_back_to_spdy(
    stage: Stage, kubectl: Path, pod: str, said: str
) -> None:
    await stage.make_pod("unknown")
    await stage.make_pod("waits", node="")
    ran = await stage.kubectl(kubectl, "exec", pod, "--", "echo")
    assert (ran.code, said in ran.err) == (1, True), ran.err


@on_both
async def test_an_agent_that_is_not_there_is_named(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job")
    await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}})
    said = "dial tcp 127.0.0.1:9: connect: connection refused"
    ran = await stage.kubectl(kubectl, "exec", "job", "--", "echo")
    assert ran.err.endswith(f": {said}\n")  # what stands before depends on the kubectl and the API server
    ran = await stage.kubectl(kubectl, "logs", "job")
    url = f"https://127.0.0.1:9/containerLogs/{stage.namespace}/job/vm"
    assert ran.err == f'Error from server: Get "{url}": {said}\n'


@on_ours
async def test_a_kubectl_that_speaks_spdy_only_is_told_what_to_do(stage: Stage, kubectl: Path) -> None:
    await stage.make_pod("job")
    stage.agent.add(stage.namespace, "job", "vm")
    old = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
    ran = await stage.kubectl(kubectl, "exec", "job", "--", "echo", env=old)
    assert ran.code == 1
    assert "kubectl 1.30 or newer" in ran.err


@on_ours
async def test_top_shows_nodes_and_pods(stage: OurStage, kubectl: Path) -> None:
    await stage.make_pod("job", labels={"app": "ci"})
    guest = stage.agent.add(stage.namespace, "job", "vm")
    guest.cpu_nanocores, guest.memory_bytes = 1_500_000_000, 3 << 30
    await stage.patch_node({"allocatable": {"cpu": "6", "memory": "6Gi"}, "capacity": {"cpu": "6", "memory": "6Gi"}})
    await stage.until_measured()
    ran = await stage.kubectl(kubectl, "top", "nodes", "--no-headers")
    assert ran.out.split() == [stage.node, "1500m", "25%", "3072Mi", "50%"], ran.err
    for arguments in (("pods",), ("pods", "-A"), ("pod", "job"), ("pods", "-l", "app=ci"), ("pods", "--containers")):
        ran = await stage.kubectl(kubectl, "top", *arguments, "--no-headers")
        assert ran.code == 0, ran.err
        assert ran.out.split()[-2:] == ["1500m", "3072Mi"]


@on_ours
async def test_top_without_an_agent_says_that_there_are_no_metrics(stage: OurStage, kubectl: Path) -> None:
    await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}})
    await stage.relay.metrics.scrapes.look()
    await stage.relay.metrics.scrapes.look()
    ran = await stage.kubectl(kubectl, "top", "nodes")
    assert ran.err == "error: Metrics API not available\n"
