"""The guests that `kubectl logs`, `exec` and `top` find, at every stage of a Pod's life."""

from pathlib import Path

from applecart.api.meta import Key
from applecart.api.pods import RUNNING, SUCCEEDED
from applecart.clock import Clock
from applecart.kubelet.serve.guests import State
from tests.kubelet.incidents.scene import job, scene
from tests.kubelet.world import NAMESPACE
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


async def test_what_is_no_guest_of_this_host_is_not_found(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(2)
        assert here.agent is not None
        assert here.agent.guests.find(NAMESPACE, "nobody") is None
        assert here.agent.guests.pod(Key(NAMESPACE, "nobody")) is None
        assert list(here.agent.guests.pods()) == []
