"""Incidents of guests that are up: useless ones, their tokens and their secrets."""

import base64
import json
from pathlib import Path

import msgspec

from applecart.api.containers import ExecAction, Probe, TcpSocketAction
from applecart.api.core import Secret
from applecart.api.meta import ObjectMeta
from applecart.api.pods import FAILED, RUNNING, Pod
from applecart.clock import Clock
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kubelet.incidents.scene import (
    events,
    go_wrong,
    guests,
    scene,
    told,
    within,
)
from tests.kubelet.world import vm_pod
from tests.virtual_time import elapse


def _with(probe: dict[str, Probe]) -> Pod:
    pod = vm_pod()
    container = msgspec.structs.replace(pod.spec.containers[0], **probe)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,)))


async def test_a_guest_that_nothing_reaches_is_not_ready(tmp_path: Path, clock: Clock) -> None:
    """Incident 41 and weakness 12: an address was enough for Ready; dead guests took jobs for 13 hours."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(network_is_dead=True))
        here.start_agent()
        await here.create(_with({"readiness_probe": Probe(tcp_socket=TcpSocketAction(port=9091), period_seconds=5)}))
        pod = await here.until_phase("job-1", RUNNING)
        await elapse(60)
        pod = await here.until_phase("job-1", RUNNING)
        assert {each.status for each in pod.status.conditions if each.type in ("Ready", "ContainersReady")} == {"False"}
        assert not pod.status.container_statuses[0].ready
        assert told((await events(here))["Unhealthy"]) > 1


async def test_a_guest_whose_liveness_probe_fails_is_ended_with_a_reason(tmp_path: Path, clock: Clock) -> None:
    """Weakness 12: nobody ended a guest that was up and dead."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(ignores_shutdown=True))
        here.start_agent()
        dead = Probe(exec=ExecAction(command=("false",)), period_seconds=5, failure_threshold=2)
        await here.create(_with({"liveness_probe": dead}))
        pod = await here.until_phase("job-1", FAILED, within_s=300)
        assert pod.status.reason == "LivenessProbeFailed"
        assert here.mac.running() == []


async def test_the_token_of_a_guest_outlives_its_job_and_serves_one_purpose(tmp_path: Path, clock: Clock) -> None:
    """Incident 42: it was good for an hour and for everything; jobs lost their access in the middle."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(automount_service_account_token=True, service_account_name="default"))
        pod = await here.until_phase("job-1", RUNNING)
        await here.create(vm_pod("plain"))
        await here.until_phase("plain", RUNNING)
        assert not (tmp_path / "userdata" / "ci-plain" / "sa_token").exists()
        file = tmp_path / "userdata" / "ci-job-1" / "sa_token"
        assert file.stat().st_mode & 0o077 == 0
        payload = file.read_text().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        assert claims["exp"] - claims["iat"] == 8 * 3600
        assert claims["aud"] == ["tuist-runners-dispatch"]
        assert claims["kubernetes.io"]["pod"]["uid"] == pod.uid


async def test_secrets_for_a_guest_reach_only_its_own_folder(tmp_path: Path, clock: Clock) -> None:
    """I9 along the whole path: nothing of the value in arguments, events, statuses or the journal."""
    text = "correct-horse-battery"
    async with scene(tmp_path, clock) as here:
        data = {"PASSWORD": base64.b64encode(text.encode()).decode()}
        await here.client.create(Secret(metadata=ObjectMeta(name="login", namespace="ci"), data=data))
        pod = vm_pod()
        env = msgspec.convert([{"secretRef": {"name": "login"}}], type=type(pod.spec.containers[0].env_from))
        container = msgspec.structs.replace(pod.spec.containers[0], env_from=env)
        go_wrong(here, Fault(on="clone", kind="fail", vm="ci-job-1", text="no"))
        here.start_agent()
        await here.create(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,))))
        with within(here, 120):
            await here.until_phase("job-1", RUNNING)
        assert _holders(tmp_path, text) == [Path("userdata/ci-job-1/tuist.env")]
        assert not [call for call in here.mac.calls if text in " ".join(call.argv)]


def _holders(folder: Path, text: str) -> list[Path]:
    """Files in which it can be read."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.relative_to(folder) for path in files if text.encode() in path.read_bytes()]
