"""kubectl, our API and the agent's endpoint: logs, exec, attach, cp and top as people use them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from applecart.clock import Clock
from applecart.embedded.auth.user import MASTERS
from applecart.embedded.relay.relay import Relay
from applecart.embedded.trust.pki import write_kubeconfig
from applecart.sim.node_agent import NodeAgent
from tests.embedded.relay.stage import NODE, Stage, our_api, session_to
from tests.kubelet.serve.agent_stage import AgentStage, agent_stage
from tests.kubelet.serve.local_guests import print_to, say_in

pytestmark = pytest.mark.kubernetes


class KubectlStage(Stage):
    ours: AgentStage
    relay: Relay


@asynccontextmanager
async def kubectl_stage(folder: Path, clock: Clock) -> AsyncIterator[KubectlStage]:
    kubeconfig = folder / "kubeconfig"
    async with (
        agent_stage(folder, clock) as ours,
        our_api(ours.trust, clock) as (url, relay),
        session_to(url, ours.trust.client_context(ours.trust.admin)) as session,
    ):
        write_kubeconfig(kubeconfig, url, ours.trust.pem, ours.trust.authority.issue_client("admin", [MASTERS], clock.now()))
        # A stage asks its agent only where it listens.
        stage = KubectlStage(url, session, cast(NodeAgent, ours.endpoint), kubeconfig, "default", NODE)
        stage.ours, stage.relay = ours, relay
        await stage.make_node()
        await stage.make_pod("job")
        await stage._write("PATCH", stage.pod_path("job/status"), {"status": {"phase": "Running"}})
        yield stage


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[KubectlStage]:
    async with kubectl_stage(tmp_path, clock) as stage:
        yield stage


@pytest.fixture
def kubectl(kube_programs: Path) -> Path:
    return kube_programs / "kubectl"


async def test_logs_are_shown_and_followed_to_the_end_of_the_vm(stage: KubectlStage, kubectl: Path) -> None:
    guest = stage.ours.guests.add()
    print_to(guest, "tart\n")
    say_in(guest, "one\ntwo\n")
    ran = await stage.kubectl(kubectl, "logs", "job")
    assert (ran.code, ran.out) == (0, "tart\none\ntwo\n"), ran.err
    ran = await stage.kubectl(kubectl, "logs", "job", "--tail", "1")
    assert ran.out == "two\n"
    ran = await stage.kubectl(kubectl, "logs", "job", "--previous")
    assert (ran.code, "previous terminated container" in ran.err) == (1, True), ran.err
    process = await stage.start_kubectl(kubectl, "logs", "-f", "job", "--tail", "1")
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"two\n"
        say_in(guest, "three\n")
        assert await process.stdout.readline() == b"three\n"
        stage.ours.guests.end(guest)
        assert await process.communicate() == (b"", b"")
    assert process.returncode == 0


async def test_commands_run_with_their_input_output_and_exit_code(stage: KubectlStage, kubectl: Path) -> None:
    stage.ours.guests.add()
    ran = await stage.kubectl(kubectl, "exec", "job", "--", "sh", "-c", "echo out; echo oh >&2; exit 42")
    assert (ran.code, ran.out) == (42, "out\n")
    assert ran.err == "oh\ncommand terminated with exit code 42\n"
    typed = b"line\n" * 50_000
    ran = await stage.kubectl(kubectl, "exec", "-i", "job", "--", "cat", stdin=typed)
    assert (ran.code, ran.out.encode() == typed) == (0, True), ran.err


async def test_files_are_copied_there_and_back(stage: KubectlStage, kubectl: Path, tmp_path: Path) -> None:
    stage.ours.guests.add()
    content = bytes(range(256)) * 2000
    (tmp_path / "mine").write_bytes(content)
    ran = await stage.kubectl(kubectl, "cp", str(tmp_path / "mine"), f"job:{tmp_path}/theirs")
    assert ran.code == 0, ran.err
    assert (tmp_path / "theirs").read_bytes() == content
    ran = await stage.kubectl(kubectl, "cp", f"job:{tmp_path}/theirs", str(tmp_path / "back"))
    assert ran.code == 0, ran.err
    assert (tmp_path / "back").read_bytes() == content


async def test_attach_shows_what_is_printed_from_now_on(stage: KubectlStage, kubectl: Path) -> None:
    guest = stage.ours.guests.add()
    print_to(guest, "before\n")
    process = await stage.start_kubectl(kubectl, "attach", "job")
    assert process.stdout is not None

    async def talk() -> None:
        while True:  # kubectl does not say when it has attached
            print_to(guest, "after\n")
            await asyncio.sleep(0.2)

    talking = asyncio.create_task(talk())
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"after\n"
        talking.cancel()
        stage.ours.guests.end(guest)
        await process.communicate()
    assert process.returncode == 0


async def test_a_pod_that_the_agent_does_not_know_is_explained(stage: KubectlStage, kubectl: Path) -> None:
    ran = await stage.kubectl(kubectl, "exec", "job", "--", "true")
    assert (ran.code, 'pod "job" does not exist' in ran.err) == (1, True), ran.err


async def test_top_shows_what_a_guest_and_its_host_use(stage: KubectlStage, kubectl: Path) -> None:
    stage.ours.guests.add()
    for _ in range(2):
        await stage.relay.metrics.scrapes.look()
    assert stage.relay.metrics.scrapes.is_any
    ran = await stage.kubectl(kubectl, "top", "pod", "job", "--no-headers")
    assert (ran.code, ran.out.split()[0], ran.out.split()[2].endswith("Mi")) == (0, "job", True), ran.err
    ran = await stage.kubectl(kubectl, "get", "--raw", f"/apis/metrics.k8s.io/v1beta1/nodes/{NODE}")
    assert json.loads(ran.out)["metadata"]["name"] == NODE
