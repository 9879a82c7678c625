"""A sample of the crash matrix with everything real but Tart itself: processes, signals, files, HTTPS.

The simulated Tart kills the agent with SIGKILL before or after one of its own commands, in the middle of a Pod's life; another
agent starts on the same folders. Whatever the moment: one boot, the right end, nothing left. `test_crash_matrix.py` has every
moment, on virtual time.
"""

import asyncio
import json
import signal

import pytest

from applecart.api.meta import Key
from applecart.api.pods import FAILED, RUNNING, Pod
from applecart.sim.tart import guest_rules
from tests.kubelet.real.agent_process import AgentProcess
from tests.kubelet.real.apis import Api
from tests.kubelet.real.conftest import StartsAgents
from tests.kubelet.real.following import WITHIN_S, Followed, following
from tests.kubelet.real.pods import vm_pod
from tests.soak import sample

LOOK_EVERY_S = 0.02
CODE = 3  # neither success nor what an agent would make up

pytestmark = pytest.mark.real_time

# The command, and which of its calls: an image's for the golden, the Pod's own VM for the rest.
CALLS = [
    ("pull", "ghcr.io/*"),
    ("clone", "ghcr.io/*"),
    ("clone", "ci-job-1"),
    ("set", "ci-job-1"),
    ("run", "ci-job-1"),
    ("delete", "ci-job-1"),
]

MOMENTS = [(verb, vm, when) for when in ("before", "after") for verb, vm in CALLS]


def job(runs_s: float) -> Pod:
    return vm_pod("job-1", "ci", "mac-1", {guest_rules.RUN_SECONDS: str(runs_s), guest_rules.EXIT_CODE: str(CODE)})


def kill_the_agent(agent: AgentProcess, verb: str, vm: str, when: str) -> None:
    fault = {"on": verb, "kind": "kill-agent", "vm": vm, "when": when}
    (agent.store.home / "faults.json").write_text(json.dumps({"faults": [fault]}))


async def ends_once_and_leaves_nothing(api: Api, agent: AgentProcess, pods: Followed[Pod], key: Key) -> None:
    await pods.until(lambda: phase(pods, key) == FAILED, "the job's end is told")
    pod = pods.get(key)
    assert pod is not None
    state = pod.status.container_statuses[0].state
    assert state is not None
    assert state.terminated is not None
    assert (state.terminated.exit_code, state.terminated.reason) == (CODE, "Error")
    await api.client.delete(Pod, key)
    await pods.until(lambda: pods.get(key) is None, "the Pod is gone")
    await nothing_is_left(agent)
    assert [boot.times for boot in agent.boots] == [1], "one start of one disk"


async def nothing_is_left(agent: AgentProcess) -> None:
    def left() -> list[str]:
        folders = (agent.folder / "userdata", agent.folder / "state" / "pods")
        files = [str(file) for folder in folders for file in folder.iterdir()]
        return [*agent.vms(), *agent.store.running_names(), *files]

    try:
        async with asyncio.timeout(WITHIN_S):
            while left():  # noqa: ASYNC110 (files of another process)
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise AssertionError(f"left on the host: {left()}\n{agent.last_words()}") from None


def phase(pods: Followed[Pod], key: Key) -> str:
    pod = pods.get(key)
    return pod.status.phase if pod is not None else ""


@pytest.mark.parametrize(("verb", "vm", "when"), sample(MOMENTS, 2, offset=2))
async def test_an_agent_killed_around_a_command_of_tart_finds_its_way_on(
    embedded: Api, agent_of: StartsAgents, verb: str, vm: str, when: str
) -> None:
    """Incidents 2, 17, 19, 28 and weaknesses 8, 9, 15, 16 with a real SIGKILL."""
    agent = agent_of(embedded)
    agent.start()
    kill_the_agent(agent, verb, vm, when)
    async with following(embedded.client, Pod, agent, embedded.namespace) as pods:
        key = (await embedded.client.create(job(runs_s=0.3))).key
        assert await agent.died() == -signal.SIGKILL
        agent.start()
        await ends_once_and_leaves_nothing(embedded, agent, pods, key)


async def test_a_job_that_ended_while_no_agent_ran_is_told_as_it_ended(embedded: Api, agent_of: StartsAgents) -> None:
    """Weakness 9: a VM that stopped meanwhile was run again from its used disk, or reported as a success."""
    agent = agent_of(embedded)
    agent.start()
    async with following(embedded.client, Pod, agent, embedded.namespace) as pods:
        key = (await embedded.client.create(job(runs_s=1))).key
        await pods.until(lambda: phase(pods, key) == RUNNING, "the VM runs")
        agent.kill()
        async with asyncio.timeout(WITHIN_S):
            while agent.store.running_names():  # noqa: ASYNC110 (locks of another process)
                await asyncio.sleep(LOOK_EVERY_S)
        agent.start()
        await ends_once_and_leaves_nothing(embedded, agent, pods, key)


async def test_an_agent_that_is_told_to_stop_leaves_its_vm_to_the_next(embedded: Api, agent_of: StartsAgents) -> None:
    """Incident 17: an upgrade of the agent killed every VM on the host."""
    agent = agent_of(embedded)
    agent.start()
    async with following(embedded.client, Pod, agent, embedded.namespace) as pods:
        key = (await embedded.client.create(vm_pod("job-1", "ci", "mac-1"))).key
        await pods.until(lambda: phase(pods, key) == RUNNING, "the VM runs")
        assert agent.stop() == 0
        assert agent.store.running_names() == ["ci-job-1"]
        agent.start()
        await embedded.client.delete(Pod, key)
        await pods.until(lambda: pods.get(key) is None, "the next agent stops it")
    await nothing_is_left(agent)
    assert [boot.times for boot in agent.boots] == [1]
