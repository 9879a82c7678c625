"""Incidents of starting VMs: the host's login session, and what Tart refuses."""

from pathlib import Path

import pytest

from applecart.api.conditions import READY
from applecart.api.pods import FAILED, RUNNING
from applecart.clock import Clock
from applecart.sim.tart.faults import Fault
from tests.kubelet.incidents.scene import (
    calls,
    events,
    go_wrong,
    job,
    node_condition,
    scene,
    waiting_reason,
)
from tests.kubelet.world import vm_pod
from tests.virtual_time import elapse


@pytest.mark.parametrize("loginwindow_is_dead", [False, True])
async def test_a_lost_login_session_is_brought_back_before_a_vm_is_started(
    loginwindow_is_dead: bool, tmp_path: Path, clock: Clock
) -> None:
    """Incidents 38 and 39, weakness 24: every start died with a HostKey error; `killall` had nothing to signal."""
    async with scene(tmp_path, clock) as here:
        here.mac.lose_gui_session()
        here.mac.loginwindow_is_dead = loginwindow_is_dead
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert len(calls(here, "run")) == 1
        assert not [call for call in here.mac.calls if "killall" in call.argv]


async def test_a_host_nobody_can_log_in_to_fails_its_pod_with_a_sentence_and_is_left_in_peace(
    tmp_path: Path, clock: Clock
) -> None:
    """Incident 39 and weakness 5: a sealed password; the Pod was retried every 30 s for ever, each time with a kick."""
    async with scene(tmp_path, clock) as here:
        here.mac.lose_gui_session()
        here.mac.seal_auto_login()
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: waiting_reason(pod) == "NoGuiSession", within_s=120)
        pod = await here.until_phase("job-1", FAILED, within_s=1200)
        assert pod.status.reason == "NoGuiSession"
        assert "/etc/kcpassword" in pod.status.message
        assert calls(here, "run") == []
        kicks = [call for call in here.mac.calls if "kickstart" in call.argv]
        assert 1 <= len(kicks) <= 3
        assert (await node_condition(here, READY)).reason == "NoGuiSession"


async def test_a_pod_that_waits_for_a_session_never_costs_a_running_vm_its_own(tmp_path: Path, clock: Clock) -> None:
    """Weakness 24: a kick of the login window ends every VM of the session."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod("works"))
        await here.until_phase("works", RUNNING)
        here.mac.lose_gui_session()
        await here.create(vm_pod("waits"))
        await here.until_phase("waits", FAILED, within_s=1200)
        await elapse(10)  # a VM that is being deleted is locked, as one that runs is
        assert here.mac.running() == ["ci-works"]


async def test_a_start_that_tart_refuses_tells_what_tart_said(tmp_path: Path, clock: Clock) -> None:
    """Incident 43: a share with a wrong suffix ended every VM at once, and the reason was only on the host."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="fail", code=64, text="Error: invalid --dir syntax: rw"))
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", FAILED, within_s=60)
        assert "invalid --dir syntax: rw" in pod.status.message
        assert "invalid --dir syntax: rw" in (await events(here))["TartCreateFailed"].message
        assert len(calls(here, "run")) == 1


async def test_a_start_that_came_to_nothing_is_tried_again_with_a_new_clone(tmp_path: Path, clock: Clock) -> None:
    """Incident 43: what `tart run` printed last is told, and a disk that never booted may be replaced."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="fail", code=1, text="Error: the hypervisor is busy"))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert "the hypervisor is busy" in (await events(here))["TartCreateFailed"].message
        assert len(calls(here, "clone", "ci-job-1")) == 2
        assert [boot.times for boot in here.mac.boots] == [1]


async def test_a_failed_start_is_judged_by_its_own_words_and_not_by_those_of_an_earlier_one(
    tmp_path: Path, clock: Clock
) -> None:
    """Weakness 5: all starts of a Pod printed into one log, so the first failure was told again for every later one."""
    async with scene(tmp_path, clock) as here:
        go_wrong(
            here,
            Fault(on="run", kind="fail", text="Error: No space left on device"),
            Fault(on="run", kind="fail", text="Error: Failed to create new HostKey"),
            Fault(on="run", kind="fail", text="Error: The number of VMs exceeds the system limit", times=None),
        )
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: waiting_reason(pod) == "HostDiskFull", within_s=120)
        await here.until("job-1", lambda pod: waiting_reason(pod) == "NoGuiSession", within_s=120)
        await here.until("job-1", lambda pod: waiting_reason(pod) == "TooManyVMs", within_s=120)


async def test_the_third_vm_waits_for_a_place(tmp_path: Path, clock: Clock) -> None:
    """Weakness 5: the limit of two guests looked like any other failure."""
    async with scene(tmp_path, clock, "--max-pods=3") as here:
        here.start_agent()
        await here.create(job("first", runs_s=120))
        await here.create(vm_pod("second"))
        for name in ("first", "second"):
            await here.until_phase(name, RUNNING)
        await here.create(vm_pod("third"))
        await here.until("third", lambda pod: waiting_reason(pod) == "TooManyVMs", within_s=60)
        await here.until_phase("third", RUNNING, within_s=240)
        assert [boot.vm for boot in here.mac.boots].count("ci-third") == 1
