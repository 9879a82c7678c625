"""504 finished Pods, deleted and held by our finalizer: from the start of the agent's process until the last is gone."""

import time
from pathlib import Path

from bench.embedded_sides import Side
from bench.kubelet_stage import NAMESPACE, NODE, agent_process, api_of, following_pods
from tests.kubelet.real.pods import STUCK, stick


async def gone_s(side: Side, folder: Path) -> float:
    async with api_of(side, folder) as api:
        with agent_process(api, folder / "host", *api.serving_flags) as agent:
            await stick(api.client, NAMESPACE, NODE)
            async with following_pods(api, agent) as pods:
                assert len(pods.informer) == STUCK
                began = time.perf_counter()
                agent.start()
                await pods.until(lambda: not len(pods.informer), "all are gone")
                return time.perf_counter() - began
