"""From a Pod that is bound to its `tart run` where every command of Tart is a process, and those commands alone."""

import time
from pathlib import Path

from applecart.api.meta import Key
from applecart.api.pods import RUNNING, Pod
from bench.embedded_load import at
from bench.embedded_sides import Side
from bench.kubelet_stage import NAMESPACE, NODE, agent_process, api_of, following_pods, in_phase
from tests.kubelet.real.agent_process import AgentProcess
from tests.kubelet.real.pods import vm_pod


async def boots_ms(side: Side, folder: Path, pods: int) -> tuple[float, float]:
    """The medians of ours and of Tart's own commands, measured in turns."""
    ours: list[float] = []
    alone: list[float] = []
    async with api_of(side, folder) as api:
        with agent_process(api, folder / "host") as agent:
            agent.start()
            async with following_pods(api, agent) as followed:
                for number in range(pods + 1):  # the first makes the golden
                    pod = vm_pod(f"boot-{number}", NAMESPACE, NODE)
                    began = time.time()
                    made = await api.client.create(pod)
                    await followed.until(in_phase(followed, RUNNING, 1), "the VM runs")
                    ours.append(started_at(agent, made.uid) - began)
                    await api.client.delete(Pod, Key(NAMESPACE, made.name))
                    await followed.until(lambda: not len(followed.informer), "it is gone")
                    alone.append(commands_alone_s(agent, f"by-hand-{number}"))
    return at(sorted(ours[1:]), 0.5) * 1000, at(sorted(alone[1:]), 0.5) * 1000


def started_at(agent: AgentProcess, uid: str) -> float:
    """When the process that becomes `tart run` wrote down who it is; it wrote nothing after that."""
    return (agent.folder / "state" / "pods" / uid / "run-1" / "pid").stat().st_mtime


def commands_alone_s(agent: AgentProcess, vm: str) -> float:
    """What has to be asked of Tart before it can run a VM: a clone, and an identity of its own."""
    golden = next(name for name in agent.store.local_names() if name not in agent.vms())
    began = time.perf_counter()
    agent.tart("clone", golden, vm)
    agent.tart("set", vm, "--random-serial")
    took_s = time.perf_counter() - began
    agent.tart("delete", vm)
    return took_s
