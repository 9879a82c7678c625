"""How fast the agent's process is there, and what it holds: with two VMs, after a minute of heartbeats (ten times as fast)."""

import asyncio
import sys
import time
from pathlib import Path

import aiohttp

from applecart.api.meta import Key
from applecart.api.pods import RUNNING, Pod
from applecart.kube.transport import Request
from bench.embedded_sides import Side, rss_of
from bench.kubelet_hurried import TIMES
from bench.kubelet_stage import NAMESPACE, agent_process, api_of, following_pods, forget_node, in_phase, until_ready
from tests.kubelet.real.agent_process import free_port
from tests.kubelet.real.pods import vm_pod

HEARTBEATS_S = 60.0
HURRIED = (sys.executable, "-m", "bench.kubelet_hurried")


async def start_s(side: Side, folder: Path) -> float:
    """From the start of the process until a watch shows its Node Ready, on an empty host."""
    async with api_of(side, folder) as api:
        await forget_node(api)
        with agent_process(api, folder / "host", *api.serving_flags) as agent:
            watching = asyncio.create_task(until_ready(api))
            await asyncio.sleep(0.2)  # the watch is open before the process begins
            began = time.perf_counter()
            agent.start()
            await watching
            return time.perf_counter() - began


async def held_mb(side: Side, folder: Path) -> float:
    """With everything on that a host has: metrics page, logs endpoint, two VMs that run and were looked at."""
    async with api_of(side, folder) as api:
        port = free_port()
        flags = (*api.serving_flags, f"--metrics-bind-address=127.0.0.1:{port}")
        with agent_process(api, folder / "host", *flags, program=HURRIED) as agent:
            agent.start()
            async with following_pods(api, agent) as pods:
                names = [f"vm-{number}" for number in range(2)]
                for name in names:
                    await api.client.create(vm_pod(name, NAMESPACE, api.node))
                await pods.until(in_phase(pods, RUNNING, 2), "two VMs run")
                for name in names:
                    await api.client.call(Request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/log"))
                async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as page:
                    assert page.status == 200
                await asyncio.sleep(HEARTBEATS_S / TIMES)
                held = rss_of(agent.pid) / 1e6
                for name in names:
                    await api.client.delete(Pod, Key(NAMESPACE, name))
                await pods.until(lambda: not len(pods.informer), "both are gone")
            return held
