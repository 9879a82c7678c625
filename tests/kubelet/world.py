"""A world with one simulated Mac in it: the embedded API, Tart, and agents that can be killed and started again.

All of it in this process, on virtual time. The disks survive the agents; so do VMs.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from applecart.api.containers import Container
from applecart.api.core import ServiceAccount
from applecart.api.events import Event
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import Pod, PodSpec
from applecart.clock import EPOCH, Clock
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kubelet.agent import Agent
from applecart.kubelet.options import Options, parse
from applecart.observe.metrics import Metrics
from applecart.sim.mac import SimulatedMac
from tests.kube.embedded_api import serving
from tests.kubelet.killing import AgentKilled, Kill, KillableFiles, KillableMac, KillableTransport

NODE = "mac-1"
IMAGE = "ghcr.io/acme/runner@sha256:" + "a" * 64
IMAGE_BYTES = 10**9  # pulled in ten seconds
NAMESPACE = "ci"
LOOK_EVERY_S = 1.0  # of virtual time


@dataclass(slots=True)
class World:
    folder: Path
    clock: Clock
    api: RunningApi
    client: Client
    mac: SimulatedMac
    agent: Agent | None = None
    kill: Kill | None = None
    flags: list[str] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)  # of the newest agent
    _task: asyncio.Task[None] | None = None

    def options(self) -> Options:
        folders = [f"--{name}-dir={self.folder / name}" for name in ("state", "userdata", "vm-log")]
        folders.append(f"--vnc-control-dir={self.folder / 'vnc'}")
        argv = [f"--node-name={NODE}", f"--tart-home={self.mac.home}", *folders, *self.flags]
        return parse(argv, {}, hostname=NODE)

    def start_agent(self, kill: Kill | None = None) -> None:
        """A new agent on the disks of the one before it; `agent` is there when it has read them."""
        assert self._task is None or self._task.done(), "an agent runs already"
        self.mac.start_agent()
        self.agent = None
        self.kill = kill = kill or Kill()
        kill.on_death = self.mac.kill_agent
        self._task = asyncio.create_task(self._run(kill))

    async def _run(self, kill: Kill) -> None:
        client = Client(KillableTransport(self.api.transport(), kill), self.clock)
        mac = KillableMac(self.mac, kill)
        self.metrics = Metrics()
        with suppress(BaseExceptionGroup, AgentKilled):
            self.agent = Agent(self.options(), "10.0.0.1", client, mac, self.clock, self.metrics, files=KillableFiles(kill))
            await self.agent.run()

    async def kill_agent(self) -> None:
        """Now, whatever it does."""
        assert self.kill is not None
        with suppress(AgentKilled):
            self.kill.die()
        await self.agent_died()

    async def agent_died(self) -> None:
        """Its tasks are gone; what they tried meanwhile had no effect."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self.agent is not None:
            with suppress(AgentKilled):
                await self.agent.aclose()
            self.agent.host.tart.close()

    async def stop_agent(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            if self.agent is not None:
                await self.agent.aclose()

    # What people do

    async def create(self, pod: Pod) -> Pod:
        return await self.client.create(pod)

    async def pod(self, name: str) -> Pod | None:
        with suppress(NotFound):
            return await self.client.get(Pod, Key(NAMESPACE, name))
        return None

    async def events(self, name: str) -> list[Event]:
        """What was recorded about a Pod, the oldest first."""
        assert self.agent is not None
        await self.agent.host.events.flushed()
        found = await self.client.list(Event, NAMESPACE, fields=f"involvedObject.name={name}")
        return sorted(found, key=lambda event: (event.first_timestamp or EPOCH, event.metadata.resource_version))

    async def until(self, name: str, holds: Callable[[Pod | None], bool], within_s: float = 3600.0) -> Pod | None:
        """The Pod once it is so; fails when that takes longer."""
        async with asyncio.timeout(within_s):
            for looks in itertools.count():
                if holds(pod := await self.pod(name)):
                    break
                await asyncio.sleep(LOOK_EVERY_S * (1 + looks // 20))  # as a person does, who loses patience
        return pod

    async def until_phase(self, name: str, phase: str, within_s: float = 3600.0) -> Pod:
        pod = await self.until(name, lambda found: found is not None and found.status.phase == phase, within_s)
        assert pod is not None
        return pod

    async def until_gone(self, name: str, within_s: float = 3600.0) -> None:
        await self.until(name, lambda found: found is None, within_s)


@asynccontextmanager
async def world(folder: Path, clock: Clock, *flags: str) -> AsyncIterator[World]:
    async with serving(clock, (NAMESPACE,)) as api:
        client = Client(api.transport(), clock)
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=NAMESPACE)))
        mac = SimulatedMac(folder / "tart", clock)
        mac.registry.edit(lambda content: setattr(content, "image_bytes", IMAGE_BYTES))
        here = World(folder, clock, api, client, mac, flags=list(flags))
        try:
            yield here
        finally:
            await here.stop_agent()
            await mac.reboot()  # ends what still runs


def vm_pod(name: str = "job-1", image: str = IMAGE, **spec: object) -> Pod:
    container = Container(name="runner", image=image)
    return Pod(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=PodSpec(containers=(container,), node_name=NODE, **spec),  # type: ignore[arg-type]
    )
