"""A simulated Mac with the real agent on it, for whoever wants a whole fleet in one process: the demo, tests, benchmarks.

One folder holds Tart's home and all that the agent remembers. The Mac itself is in this process: its guests are gone when the
process is, as after a power cut, and an agent that starts on the folder again finds them so. An agent that ends is started
anew, as launchd does on a Mac; nothing that happens on one host ends the others (I12).
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from applecart.clock import Clock
from applecart.errors import only_one
from applecart.kube.background import uncancelled
from applecart.kube.client import Client
from applecart.kubelet.agent import Agent
from applecart.kubelet.options import Options, parse
from applecart.observe.logs import logger
from applecart.observe.metrics import Metrics
from applecart.observe.serve import ObserveServer
from applecart.sim.mac import Call, SimulatedMac
from applecart.sim.tart.host_facts import Pace
from applecart.sim.tart.registry import IMAGE_BYTES

RESTART_AFTER_S = 1.0  # launchd would wait ten; a person who looks on should not
CALLS_KEPT = 1_000  # a Mac that runs for days must not remember every call
LOOPBACK = "127.0.0.1"

# Slow enough to be watched, quick enough to be waited for: an image in about 3 s, a VM in about 2 s.
WATCHABLE = Pace(
    boot_s=2.0,
    shutdown_s=1.0,
    clone_s=0.2,
    manifest_s=0.2,
    pull_bytes_per_s=IMAGE_BYTES // 3,
    log_every_s=5.0,
    look_every_s=0.2,
)

log = logger(__name__)


def options_in(folder: Path, name: str, flags: Sequence[str] = ()) -> Options:
    """Of the agent whose Mac is in this folder. Raises BadInput for a folder that Tart could not share with guests."""
    folders = [f"--{each}-dir={folder / each}" for each in ("state", "userdata", "vm-log")]
    ours = [f"--node-name={name}", f"--node-ip={LOOPBACK}", f"--tart-home={folder / 'tart'}", "--vnc-control-dir=", *folders]
    return parse([*ours, *flags], {}, hostname=name)


class FleetMac:
    def __init__(
        self,
        folder: Path,
        name: str,
        client: Client,
        clock: Clock,
        *,
        flags: Sequence[str] = (),
        pace: Pace = WATCHABLE,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`flags` are more flags of tart-kubelet; `env` is the environment of the Mac's programs."""
        self.name = name
        self.options = options_in(folder, name, flags)
        self.mac = SimulatedMac(self.options.tart_home, clock, name=name, pace=pace, env=env)
        self.mac.before_call = self._forget_old_calls
        # Of the agent that runs now; whoever wants it served enters it.
        self.page = ObserveServer(Metrics(), ready={"agent": self._why_not_ready})
        self.agent: Agent | None = None
        self._client = client
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled; then the Mac is without power."""
        try:
            while True:
                try:
                    await self._run_agent()
                except Exception as error:
                    log.error("an agent failed and is started again", node=self.name, exc_info=only_one(error))
                await asyncio.sleep(RESTART_AFTER_S)
        finally:
            await self.mac.reboot()

    async def _run_agent(self) -> None:
        """Returns when a fault of the simulation killed it, and raises what it failed with."""
        killed = asyncio.Event()
        self.mac.on_kill_agent = killed.set
        self.mac.start_agent()
        self.page.metrics = Metrics()
        agent = Agent(self.options, LOOPBACK, self._client, self.mac, self._clock, self.page.metrics)
        running, dying = asyncio.create_task(agent.run()), asyncio.create_task(killed.wait())
        try:
            self.agent = agent
            await asyncio.wait((running, dying), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await uncancelled(running)
            log.warning("an agent was killed and is started again", node=self.name)
        finally:
            running.cancel()
            dying.cancel()
            await asyncio.gather(running, dying, return_exceptions=True)
            self.agent = None
            await agent.aclose()

    @property
    def is_registered(self) -> bool:
        """A heartbeat of the agent that runs now has arrived."""
        registration = self.agent.registration if self.agent else None
        return registration is not None and registration.lease.age_s is not None

    def _why_not_ready(self) -> str | None:
        return None if self.is_registered else "the agent has not registered its Node yet"

    async def _forget_old_calls(self, _: Call) -> None:
        if len(self.mac.calls) > 2 * CALLS_KEPT:
            del self.mac.calls[:-CALLS_KEPT]
