"""A host-day in a minute: 500 Pods made, run, ended and deleted, two at a time. Prints one JSON line per 50 Pods.

    python -m bench.kubelet_churn ADMIN_KUBECONFIG AGENT_KUBECONFIG FOLDER PODS EVERY

Whatever grows with the number of Pods that ever were would end an agent that runs for months.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from applecart.api.pods import SUCCEEDED
from applecart.sim.tart import guest_rules
from applecart.tart.partials import CLEANS_WITHIN_S
from bench.gauge import rss_bytes
from bench.kubelet_inside import Inside, inside
from bench.kubelet_stage import LATE_S, NAMESPACE, NODE
from tests.kubelet.real.pods import vm_pod

AT_ONCE = 2  # what Apple allows on a host
ENDS = {guest_rules.RUN_SECONDS: "0"}


class Held(msgspec.Struct, frozen=True):
    """What the agent holds when nothing is to be done."""

    pods: int  # that ever were
    memory_mb: float
    open_files: int
    tasks: int
    series: int  # of metrics
    folders: int  # of Pods: memory on disk, shares with guests


async def live_and_go(here: Inside, name: str) -> None:
    pod = vm_pod(name, NAMESPACE, NODE, ENDS)
    await here.client.create(pod)
    await here.until(lambda: (found := here.pods.get(pod.key)) is not None and found.status.phase == SUCCEEDED)
    await here.delete(pod.key)


async def churn(here: Inside, names: list[str]) -> None:
    async def take_turns() -> None:
        while names:
            await live_and_go(here, names.pop())

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(take_turns())


async def settled(here: Inside) -> None:
    """The agent has forgotten the Pods and written their Events."""
    agent = here.mac.agent
    assert agent is not None
    async with asyncio.timeout(LATE_S):
        while list(agent.host.journal):  # noqa: ASYNC110 (another's memory)
            await asyncio.sleep(0.01)
        await agent.host.events.flushed()
    await asyncio.sleep(CLEANS_WITHIN_S)  # until then the driver guards pulls against the last VMs that it started


def held(here: Inside, pods: int) -> Held:
    options, agent = here.mac.options, here.mac.agent
    assert agent is not None
    here.mac.mac.calls.clear()  # the simulation's memory, not the agent's
    folders = (options.state_dir / "pods", options.userdata_dir)
    return Held(
        pods=pods,
        memory_mb=rss_bytes() / 1e6,
        open_files=len(os.listdir("/proc/self/fd")),
        tasks=len(asyncio.all_tasks()),
        series=sum(not line.startswith(b"#") for line in here.mac.page.metrics.render().splitlines()),
        folders=sum(len(list(folder.iterdir())) for folder in folders),
    )


async def main(admin: str, agent: str, folder: Path, pods: int, every: int) -> None:
    async with inside(admin, agent, folder) as here:
        for done in range(0, pods, every):
            await churn(here, [f"job-{number:04}" for number in range(done, done + every)])
            await settled(here)
            print(msgspec.json.encode(held(here, done + every)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
