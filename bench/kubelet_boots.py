"""From a Pod that is bound to the `tart run` of its VM, with its golden on the host. Prints one JSON line.

    python -m bench.kubelet_boots ADMIN_KUBECONFIG AGENT_KUBECONFIG FOLDER PODS

Counts from before the Pod's creation is sent, so the API's own write is part of it. One Pod after the other.
"""

import asyncio
import sys
import time
from pathlib import Path

import msgspec

from applecart.api.pods import RUNNING
from bench.embedded_load import at
from bench.kubelet_inside import Inside, inside
from bench.kubelet_stage import LATE_S, NAMESPACE, NODE
from tests.kubelet.real.pods import vm_pod


class Boots(msgspec.Struct, frozen=True):
    """What one run tells."""

    p50_ms: float
    p99_ms: float
    pods: int


class Issued:
    """When `tart run` was called last."""

    def __init__(self, here: Inside) -> None:
        self.at_s = 0.0
        self.called = asyncio.Event()
        here.before_call(lambda call: self.note() if call.tart == "run" else None)

    def note(self) -> None:
        self.at_s = time.perf_counter()
        self.called.set()


async def boot_s(here: Inside, issued: Issued, name: str) -> float:
    issued.called.clear()
    pod = vm_pod(name, NAMESPACE, NODE)
    began = time.perf_counter()
    await here.client.create(pod)
    async with asyncio.timeout(LATE_S):
        await issued.called.wait()
    took_s = issued.at_s - began
    await here.until(lambda: (found := here.pods.get(pod.key)) is not None and found.status.phase == RUNNING)
    await here.delete(pod.key)
    return took_s


async def main(admin: str, agent: str, folder: Path, pods: int) -> None:
    async with inside(admin, agent, folder) as here:
        issued = Issued(here)
        await boot_s(here, issued, "first")  # makes the golden
        took = sorted([await boot_s(here, issued, f"boot-{number}") for number in range(pods)])
    print(msgspec.json.encode(Boots(at(took, 0.5) * 1000, at(took, 0.99) * 1000, pods)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
