"""kill -9 the agent before and after every call it makes in a Pod's life, and during every command of Tart; start it again.

Whatever the moment: the Pod's VM was booted at most once, its phase is the right one, and nothing is left on the host. A new
kind of call is a new row without anybody adding it: the calls are counted in a run that nobody disturbs. A usual run takes a
sample of the calls, each scenario and moment another one.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import pytest

from applecart.api.containers import Container, EnvVar
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod, PodSpec
from applecart.clock import Clock, VirtualClock, run_virtual
from tests.kubelet.killing import Kill, Moment
from tests.kubelet.world import IMAGE, NAMESPACE, NODE, World, world
from tests.soak import sample

RESTART_AFTER_S = 10.0  # what launchd waits before it starts the agent again
TART = "/usr/local/bin/tart"
LONGEST_LIFE_S = 3 * 3600.0
SAMPLE = 4  # calls of a scenario and moment at which a usual run kills

Person = Callable[[World], Awaitable[None]]


def job(runs_s: int | None = 20, code: int = 0) -> Pod:
    env = [EnvVar(name="APPLECART_SIM_EXIT_CODE", value=str(code))]
    if runs_s is not None:
        env.append(EnvVar(name="APPLECART_SIM_RUN_SECONDS", value=str(runs_s)))
    container = Container(name="runner", image=IMAGE, env=tuple(env))
    metadata = ObjectMeta(name="job-1", namespace=NAMESPACE)
    return Pod(
        metadata=metadata,
        spec=PodSpec(containers=(container,), node_name=NODE, termination_grace_period_seconds=5),
    )


async def _delete(here: World) -> None:
    await here.client.delete(Pod, Key(NAMESPACE, "job-1"))
    await here.until_gone("job-1", LONGEST_LIFE_S)


async def _a_job_ends(here: World, code: int, phase: str, reason: str) -> None:
    await here.create(job(code=code))
    pod = await here.until_phase("job-1", phase, LONGEST_LIFE_S)
    state = pod.status.container_statuses[0].state
    assert state is not None
    assert state.terminated is not None
    assert (state.terminated.exit_code, state.terminated.reason) == (code, reason)
    await _delete(here)
    assert len(here.mac.boots) == 1


async def a_job_succeeds(here: World) -> None:
    await _a_job_ends(here, 0, SUCCEEDED, "Completed")


async def a_job_fails(here: World) -> None:
    await _a_job_ends(here, 3, FAILED, "Error")


async def a_running_pod_is_deleted(here: World) -> None:
    await here.create(job(runs_s=None))
    await here.until_phase("job-1", RUNNING, LONGEST_LIFE_S)
    await _delete(here)
    assert len(here.mac.boots) == 1


async def a_pod_is_deleted_while_its_image_is_pulled(here: World) -> None:
    await here.create(job())
    await asyncio.sleep(3)
    await _delete(here)
    assert len(here.mac.boots) <= 1


async def _lived(folder: Path, clock: Clock, person: Person, kill: Kill) -> World:
    """Run the scenario with an agent that dies once; the world as it is afterwards."""
    async with world(folder, clock) as here, asyncio.timeout(LONGEST_LIFE_S):
        here.start_agent(kill)
        reviving = asyncio.create_task(_revive(here, kill))
        await person(here)
        reviving.cancel()
        await asyncio.gather(reviving, return_exceptions=True)
        if kill.is_dead and here.kill is kill:
            await here.agent_died()
            here.start_agent()
        await _settled(here)
        assert here.mac.running() == []
        assert [vm for vm in here.mac.vms() if not vm.startswith("tuist-golden-")] == []
        assert list((folder / "userdata").iterdir()) == []
        assert list((folder / "state" / "pods").iterdir()) == []
        return here


async def _revive(here: World, kill: Kill) -> None:
    await kill.dead.wait()
    await here.agent_died()
    await asyncio.sleep(RESTART_AFTER_S)
    here.start_agent()


async def _settled(here: World) -> None:
    """The agent has nothing left to do about Pods."""
    async with asyncio.timeout(600):
        while here.agent is None or list(here.agent.host.journal) or here.mac.running():  # noqa: ASYNC110
            await asyncio.sleep(1)


COLD: tuple[Person, ...] = (a_job_succeeds, a_pod_is_deleted_while_its_image_is_pulled)
WARM: tuple[Person, ...] = (a_job_fails, a_running_pod_is_deleted)  # with the golden on the host
SCENARIOS: dict[str, Person] = {person.__name__: person for person in (*COLD, *WARM)}


def _points(calls: list[str], moment: Moment) -> list[int]:
    """The numbers of the calls, without those that only repeat the one before, as health checks during a pull do."""
    fresh = [number for number, call in enumerate(calls, start=1) if number == 1 or call != calls[number - 2]]
    return [number for number in fresh if moment != "during" or calls[number - 1].startswith(TART)]


@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_agent_finds_its_way_on_from_every_point_of_a_pods_life(name: str, moment: Moment, tmp_path: Path) -> None:
    """Incidents 2, 17, 19, 28 and weaknesses 8, 9, 15, 16: second boots, lost VMs and lost ends after a restart."""
    person = SCENARIOS[name]

    def lived(folder: Path, kill: Callable[[], Kill]) -> list[str]:
        async def run() -> list[str]:
            clock = VirtualClock(asyncio.get_running_loop())
            one = kill()
            await _lived(folder, clock, person, one)
            return one.calls

        return run_virtual(run())

    prepared = tmp_path / "prepared"
    if person in WARM:
        lived(prepared, Kill)
        (prepared / "tart" / "sim" / "boots.jsonl").unlink()
    calls = lived(_copy(prepared, tmp_path / "undisturbed"), Kill)
    assert len(calls) > 20, calls
    points = _points(calls, moment)
    for number in sample(points, SAMPLE, offset=len(moment) + list(SCENARIOS).index(name)):
        try:
            lived(_copy(prepared, tmp_path / str(number)), lambda: Kill(number, moment))  # noqa: B023
        except BaseException as error:
            raise AssertionError(f"killed {moment} call {number} of {len(calls)}, {calls[number - 1]!r}") from error


def _copy(prepared: Path, folder: Path) -> Path:
    if prepared.is_dir():
        shutil.copytree(prepared, folder, symlinks=True)
    return folder
