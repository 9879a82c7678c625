"""The guests that `kubectl logs`, `exec` and `top` find, at every stage of a Pod's life."""

import base64
from pathlib import Path

import msgspec
import pytest

from applecart.api.containers import Container, EnvSource, EnvVar, KeySelector
from applecart.api.core import Secret
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED
from applecart.clock import Clock
from applecart.kubelet.serve.guests import State
from applecart.kubelet.serve.log_options import LogOptions
from applecart.kubelet.serve.logs import NoLog, open_log
from applecart.sim.tart.faults import Fault
from tests.kube.faults import Says, always
from tests.kubelet.incidents.scene import GB, cut_off, delete, go_wrong, image_bytes, job, scene, terminated
from tests.kubelet.world import IMAGE, NAMESPACE, World, vm_pod
from tests.virtual_time import elapse


async def test_a_guest_is_found_from_its_first_stage_to_after_its_end(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=60))
        await elapse(2)
        assert here.agent is not None
        guests = here.agent.guests
        made = guests.find(NAMESPACE, "job-1")
        assert made is not None
        assert (made.state, made.waiting, made.container) == (State.WAITING, "ContainerCreating", "runner")
        assert list(guests.running()) == []
        await here.until_phase("job-1", RUNNING)
        [running] = guests.running()
        assert (running.state, running.kept_log) == (State.RUNNING, None)
        assert running.share.is_dir()
        await here.until_phase("job-1", SUCCEEDED)
        await elapse(5)
        ended = guests.find(NAMESPACE, "job-1")
        assert ended is not None
        assert ended.state is State.ENDED
        assert not ended.share.exists()
        assert ended.kept_log is not None
        assert b"is up" in ended.kept_log.read_bytes()
        assert list(guests.running()) == []


async def shown(here: World) -> str:
    """What `kubectl logs` prints, or the sentence it is refused with."""
    assert here.agent is not None
    guest = here.agent.guests.find(NAMESPACE, "job-1")
    assert guest is not None
    try:
        log = open_log(here.agent.guests, guest, LogOptions(), here.clock)
    except NoLog as refused:
        return str(refused)
    return b"".join([piece async for piece in log.pieces()]).decode()


WAITING = 'container "runner" in pod "job-1" is waiting to start: '


async def test_a_pod_never_shows_the_log_of_an_earlier_one_of_its_name(tmp_path: Path, clock: Clock) -> None:
    """What an earlier job printed, perhaps somebody else's, was shown for a Pod that waited or had written nothing itself."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=30))
        await here.until_phase("job-1", RUNNING)
        for path in (tmp_path / "userdata/ci-job-1/status/runner.log", tmp_path / "vm-log/ci-job-1.log"):
            path.write_text("words of the first\n")
        await here.until_phase("job-1", SUCCEEDED)
        await delete(here)
        await here.until_gone("job-1")
        image_bytes(here, 10 * GB)
        await here.create(job(runs_s=3600, image="ghcr.io/acme/other@sha256:" + "b" * 64))
        await elapse(3)
        assert await shown(here) == WAITING + "ContainerCreating"
        await here.until_phase("job-1", RUNNING)
        (tmp_path / "userdata/ci-job-1/status/runner.log").unlink()  # this one writes no log of its own
        await here.mac.reboot()
        await here.until_phase("job-1", FAILED)
        assert "words of the first" not in await shown(here)


async def test_a_pod_whose_vm_never_began_shows_no_log_of_an_earlier_one(tmp_path: Path, clock: Clock) -> None:
    """It counted as begun from its first false start on, and what an earlier guest had printed as its own."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=30))
        await here.until_phase("job-1", SUCCEEDED)
        await delete(here)
        await here.until_gone("job-1")
        assert "is up" in (tmp_path / "vm-log/ci-job-1.guest.log").read_text()
        go_wrong(here, Fault(on="run", kind="fail", text="Error: the hypervisor is busy", times=None))
        await here.create(job(runs_s=30))
        await elapse(60)
        assert (await shown(here)).startswith(WAITING)
        pod = await here.until_phase("job-1", FAILED, within_s=2 * 3600)
        assert "the hypervisor is busy" in await shown(here)
        assert "is up" not in await shown(here)
        assert (terminated(pod).started_at, terminated(pod).container_id) == (None, "")


@pytest.mark.usefixtures("forgotten_secrets")
async def test_secrets_of_a_guest_that_ended_are_masked_while_its_end_cannot_be_told(tmp_path: Path, clock: Clock) -> None:
    """I9: with the API away the share stays for hours after the guest's end, and its log was shown as the guest wrote it."""
    async with scene(tmp_path, clock) as here:
        password = "correct-horse-battery"
        data = {"k": base64.b64encode(password.encode()).decode()}
        await here.client.create(Secret(metadata=ObjectMeta(name="s", namespace=NAMESPACE), data=data))
        wire = cut_off(here)
        here.start_agent()
        pod = job(runs_s=60)
        variable = EnvVar(name="PASSWORD", value_from=EnvSource(secret_key_ref=KeySelector(name="s", key="k")))
        runner = msgspec.structs.replace(pod.spec.containers[0], env=(*pod.spec.containers[0].env, variable))
        await here.create(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(runner,))))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / "userdata/ci-job-1/status/runner.log").write_text(f"password={password}\n")
        assert "password=***" in await shown(here)
        wire.plan = always(Says(503))
        wire.sever()
        await elapse(120)
        kept = tmp_path / "vm-log/ci-job-1.guest.log"
        assert "password=***" in kept.read_text()
        assert "password=***" in await shown(here)
        kept.unlink()  # as if it could not have been kept: what the guest wrote is all there is
        assert "password=***" in await shown(here)


async def test_a_pod_whose_vm_could_never_be_made_says_why_it_has_no_log(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job())
        await here.until_phase("job-1", SUCCEEDED)
        await delete(here)
        await here.until_gone("job-1")
        await here.create(job(image="no image at all"))
        await here.until_phase("job-1", FAILED)
        assert (await shown(here)).startswith('container "runner" in pod "job-1" never had a VM: ')


async def test_a_pod_that_was_refused_says_why_it_has_no_log(tmp_path: Path, clock: Clock) -> None:
    """The answer was that the server could not find the requested resource."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(host_network=True, init_containers=(Container(name="first", image=IMAGE),)))
        pod = await here.until_phase("job-1", FAILED)
        why = f"{pod.status.reason}: {pod.status.message}"
        assert await shown(here) == f'container "runner" in pod "job-1" never had a VM: {why}'


async def test_a_pod_that_the_agent_has_not_looked_at_yet_waits(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(2)
        assert here.agent is not None
        here.agent.host.journal.forget((await here.create(vm_pod())).uid)
        await elapse(0.001)
        while here.agent.guests.find(NAMESPACE, "job-1") is None:
            await elapse(0.001)
        assert (await shown(here)).startswith(WAITING)


async def test_the_log_of_a_pod_whose_entry_is_lost_is_lost_too(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job())
        pod = await here.until_phase("job-1", SUCCEEDED)
        await elapse(5)
        assert here.agent is not None
        here.agent.host.journal.forget(pod.uid)
        assert await shown(here) == 'the log of container "runner" in pod "job-1" is no longer on its host'


async def test_what_is_no_guest_of_this_host_is_not_found(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(2)
        assert here.agent is not None
        assert here.agent.guests.find(NAMESPACE, "nobody") is None
        assert here.agent.guests.pod(Key(NAMESPACE, "nobody")) is None
        assert list(here.agent.guests.pods()) == []
