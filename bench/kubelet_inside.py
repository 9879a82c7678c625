"""The agent and its simulated Mac in this process, at no cost of Tart's own; the API is another process, over TLS.

What is measured here is the agent's: the simulated Tart answers at once. Old calls of the Mac are forgotten, as for any Mac
that runs for days.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import SystemClock
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.informer import Informer
from applecart.sim.fleet import FleetMac
from applecart.sim.mac import Call
from applecart.sim.tart.host_facts import Pace
from applecart.sim.tart.leases import Leases, write_leases
from bench.kubelet_stage import LATE_S, NAMESPACE, NODE

AT_ONCE = Pace(
    boot_s=0.0,
    shutdown_s=0.0,
    power_off_s=0.0,
    command_s=0.0,
    exec_s=0.0,
    clone_s=0.0,
    manifest_s=0.0,
    start_failure_s=0.0,
    pull_bytes_per_s=10**15,
    look_every_s=0.01,
)


LEASE_S = 1  # a day passes in a minute here; a lease of ten minutes, as fleets that churn set it, in half a second


class Inside:
    def __init__(self, client: Client, mac: FleetMac, pods: Informer[Pod]) -> None:
        self.client = client  # of an administrator
        self.mac = mac
        self.pods = pods

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LATE_S):
            await self.pods.wait_until(holds)

    async def delete(self, key: Key) -> None:
        await self.client.delete(Pod, key)
        await self.until(lambda: self.pods.get(key) is None)

    def before_call(self, hook: Callable[[Call], None]) -> None:
        kept = self.mac.mac.before_call

        async def both(call: Call) -> None:
            hook(call)
            if kept is not None:
                await kept(call)

        self.mac.mac.before_call = both


@asynccontextmanager
async def inside(admin: str, agent: str, folder: Path) -> AsyncIterator[Inside]:
    """Kubeconfigs of an administrator and of the agent, and where the Mac's files are."""
    clock = SystemClock()
    clients = [Client(connect(kubeconfig, None, clock, environ={}), clock) for kubeconfig in (admin, agent)]
    mac = FleetMac(folder, NODE, clients[1], clock, pace=AT_ONCE)
    write_leases(mac.mac.store.sim, Leases(lease_s=LEASE_S))
    here = Inside(clients[0], mac, Informer(clients[0], Pod, NAMESPACE))
    tasks = [asyncio.create_task(work()) for work in (mac.run, here.pods.run)]
    try:
        await here.pods.following()
        yield here
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in clients:
            await client.aclose()
