"""An API that is away and a clock that is set: neither counts against a Pod, whatever it was doing."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from applecart.api.containers import EnvSource, EnvVar, KeySelector
from applecart.api.core import Secret
from applecart.api.meta import ObjectMeta
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED
from applecart.clock import Clock, VirtualClock
from applecart.kube.transport import Request
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kube.faults import Fault as WireFault
from tests.kube.faults import Says
from tests.kubelet.incidents.scene import calls, cut_off, delete, go_wrong, guests, job, scene, terminated, within
from tests.kubelet.world import NAMESPACE, World, vm_pod
from tests.virtual_time import elapse

HOUR_S = 3600


def _at_once(here: World) -> bool:
    return True


def _pulls(here: World) -> bool:
    return bool(calls(here, "pull"))


def _boots(here: World) -> bool:
    return bool(here.mac.running())


def _ended(here: World) -> bool:
    return bool(here.mac.boots) and not here.mac.running()


async def test_an_agent_that_starts_without_the_api_waits_for_it_and_forgets_nothing(tmp_path: Path, clock: Clock) -> None:
    """I12: the host was rebooted during an outage of the control plane."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=120, code=6))
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        wire = cut_off(here)
        wire.plan = lambda request: Says(503)
        here.start_agent()
        await elapse(600)
        wire.heal()
        pod = await here.until_phase("job-1", FAILED, within_s=180)
        assert terminated(pod).exit_code == 6
        assert len(here.mac.boots) == 1


@pytest.mark.parametrize("stage", [_at_once, _pulls, _boots, _ended], ids=["accepted", "pulling", "booting", "ended"])
async def test_ten_minutes_without_the_api_cost_a_pod_nothing_but_time(
    stage: Callable[[World], bool], tmp_path: Path, clock: Clock
) -> None:
    """I12: an outage of the control plane never counts against a Pod, whatever it was doing."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        here.start_agent()
        await elapse(5)
        await here.create(job(code=4))
        while not stage(here):
            await elapse(0.5)
        wire.plan = lambda request: Says(503)
        wire.sever()
        await elapse(600)
        wire.heal()
        pod = await here.until_phase("job-1", FAILED, within_s=180)
        assert terminated(pod).exit_code == 4
        await delete(here)
        await here.until_gone("job-1", within_s=60)
        assert len(here.mac.boots) == 1


async def test_ten_minutes_without_the_api_while_a_secret_is_read_fail_nobody(tmp_path: Path, clock: Clock) -> None:
    """I12: a Secret that cannot be read is not a Secret that is missing."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        asked: list[Request] = []

        def away_from_there_on(request: Request) -> WireFault | None:
            if "/secrets/" in request.path:
                asked.append(request)
            return Says(503) if asked else None

        wire.plan = away_from_there_on
        await here.client.create(Secret(metadata=ObjectMeta(name="login", namespace=NAMESPACE), data={"token": "b3Blbg=="}))
        pod = vm_pod()
        env = (EnvVar(name="TOKEN", value_from=EnvSource(secret_key_ref=KeySelector(name="login", key="token"))),)
        container = msgspec.structs.replace(pod.spec.containers[0], env=env)
        here.start_agent()
        await here.create(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,))))
        await elapse(600)
        assert asked
        wire.heal()
        await here.until_phase("job-1", RUNNING, within_s=180)


async def test_a_deletion_that_the_api_interrupts_is_finished_afterwards(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        guests(here, Rule(shutdown_s=20))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        await elapse(5)
        wire.plan = lambda request: Says(503)
        wire.sever()
        await elapse(600)
        assert here.mac.running() == []
        wire.heal()
        await here.until_gone("job-1", within_s=180)
        assert "ci-job-1" not in here.mac.vms()


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
async def test_a_clock_that_is_set_while_a_vm_boots_changes_nothing(by_s: int, tmp_path: Path, clock: Clock) -> None:
    """The boot deadline is a duration: a Mac whose clock was corrected at its start must not lose the VMs that boot."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(vm="ci-job-1", boot_s=120), Rule(vm="ci-job-2", never_gets_ip=True))
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.create(vm_pod("job-2"))
        await here.until("job-1", lambda pod: len(here.mac.running()) == 2)
        _set_clock(clock, by_s)
        with within(here, 130):
            await here.until_phase("job-1", RUNNING)
        with within(here, 70):
            await here.until_phase("job-1", SUCCEEDED)
        pod = await here.until_phase("job-2", FAILED, within_s=600)
        assert pod.status.reason == "TartBootTimedOut"
        assert len(here.mac.boots) == 2


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
async def test_a_clock_that_is_set_during_a_backoff_neither_ends_the_pod_nor_holds_it_up(
    by_s: int, tmp_path: Path, clock: Clock
) -> None:
    """The next attempt comes after a duration, and giving up needs time that really passed."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="clone", kind="fail", vm="ci-job-1", times=6, text="disk I/O error"))
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: len(calls(here, "clone", "ci-job-1")) == 2)
        _set_clock(clock, by_s)
        await elapse(30)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.status.phase == PENDING
        await here.until_phase("job-1", RUNNING, within_s=600)


def _set_clock(clock: Clock, by_s: int) -> None:
    assert isinstance(clock, VirtualClock)
    clock.jump(timedelta(seconds=by_s))
