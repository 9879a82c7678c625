"""tart-kubelet, put together: one Mac, one Node, every Pod a VM.

The parts run side by side, each in its own task: the heartbeat and the Node wait for nothing on the host, the Pods' workers
for nobody else's VM. Everything the agent knows is on disk or in the API, so it may be killed at any moment; ending it, or
starting a newer one, touches no VM of a Pod.
"""

import asyncio
from contextlib import AsyncExitStack

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.api.reasons import kubelet as reasons
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.background import Background, Work
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.controller import Controller
from applecart.kube.informer import Informer
from applecart.kube.runtime_metrics import ControllerMetrics, InformerMetrics, QueueMetrics
from applecart.kube.workqueue import WorkQueue
from applecart.kubelet.assembly import make_collector, make_folders, make_host
from applecart.kubelet.node.registration import Registration
from applecart.kubelet.options import Options
from applecart.kubelet.pods.guests import KnownGuests
from applecart.kubelet.pods.lives import Lives
from applecart.kubelet.pods.publishing import Publishing
from applecart.kubelet.pods.reconciler import PodReconciler
from applecart.kubelet.screen.screens import Screens
from applecart.kubelet.serve.forwarder import Forwarders
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED
from applecart.kubelet.serve.tls import TlsFiles
from applecart.observe.logs import logger
from applecart.observe.metrics import Metrics
from applecart.tart.files import Files
from applecart.tart.mac import Mac

WORKERS = 32  # a Pod's look is short; many that must go at once, as after an outage, go side by side
DEADLINE_S = 900.0  # of one look: a VM that must be asked, cut off, killed and deleted, each with its own deadline
SETTLE_PACE = Backoff(first_s=5.0, longest_s=300.0)

log = logger(__name__)


class Agent:
    def __init__(
        self,
        options: Options,
        node_ip: str,
        client: Client,
        mac: Mac,
        clock: Clock,
        metrics: Metrics,
        *,
        files: Files | None = None,
        needs_gui_session: bool = True,
    ) -> None:
        files = files or Files()
        make_folders(options, files)
        self.options = options
        self.screens = Screens(
            mac,
            files,
            clock,
            control_dir=options.vnc_control_dir,
            node_ip=node_ip,
            warn=self._no_screen,
            relay_host=options.vnc_relay_host,
            relay_port=options.vnc_relay_port,
            allowed=options.scrape_allowed_cidr or DEFAULT_ALLOWED,
        )
        self.host = make_host(
            options, node_ip, client, mac, clock, metrics, files, self.screens.is_capable, needs_gui_session=needs_gui_session
        )
        self.pods = Informer(client, Pod, fields=f"spec.nodeName={options.node_name}")
        self.forwarders = Forwarders(
            mac, node_ip, clock, resolve=self._address, warn=self._not_forwarded, allowed=options.scrape_allowed_cidr
        )
        self.guests = KnownGuests(self.host, self.pods)
        self.lives = Lives(self.host, self._look_at)
        publishing = Publishing(self.host, self.lives, self.forwarders, self.screens)
        self.reconciler = PodReconciler(self.host, self.pods, self.lives, publishing)
        self._controller = self._pod_controller(metrics)
        self.collector = None if options.disable_vm_gc else make_collector(self.host)
        self.registration: Registration | None = None
        self.background = Background(clock, metrics)
        self._informer_metrics = InformerMetrics(metrics)
        self._informer_metrics.follow(self.pods)

    async def run(self) -> None:
        """Work until cancelled."""
        for entry in self.host.journal:
            self._look_at(entry.key)  # also those whose Pod is gone
        async with AsyncExitStack() as stack:
            port = await self._serve(stack)
            self.registration = Registration(self.host, self.options, self.guests, port)
            self._informer_metrics.follow(self.registration.keeper.nodes)
            await self.registration.read_facts()
            for name, work in {**self.registration.works(), **self._works()}.items():
                self.background.add(name, work)
            await self.background.run()

    async def _serve(self, stack: AsyncExitStack) -> int:
        """Logs, exec and usage; the port, 0 when they are not served."""
        bind = self.options.kubelet_bind
        if bind is None:
            return 0
        from applecart.kubelet.serve.endpoint import KubeletEndpoint  # aiohttp's server, only where it is needed

        host = self.host
        files = TlsFiles(*self.options.tls_files)
        endpoint = KubeletEndpoint(host.node, *bind, files, host.client, self.guests, host.tart, host.mac, host.clock)
        return (await stack.enter_async_context(endpoint)).port

    async def aclose(self) -> None:
        """Let go of everything but the VMs."""
        await self.lives.aclose()
        await self.forwarders.aclose()
        await self.screens.aclose()
        if self.host.caches is not None:
            await self.host.caches.aclose()
        self.host.tart.close()

    def _works(self) -> dict[str, Work]:
        works: dict[str, Work] = {
            "informer of pods": self.pods.run,
            "pods": self._controller.run,
            "events": self.host.events.run,
            "garbage": self.collector.run if self.collector else self._settle,
        }
        return works if self.host.caches is None else {**works, "caches": self.host.caches.run}

    async def _settle(self) -> None:
        """What an agent that died left half done is not garbage: it is finished also where nothing is collected."""
        failures = 0
        while True:
            try:
                await self.host.goldens.settle()
                await asyncio.get_running_loop().create_future()  # that was all; the agent goes on
            except (ApplecartError, OSError) as error:  # a full disk above all: the host's Pods need the agent all the same
                failures += 1
                log.warning("goldens that were left half made cannot be finished yet", exc_info=error)
            await asyncio.sleep(SETTLE_PACE.wait_s(failures, self.host.clock.random))

    def _pod_controller(self, metrics: Metrics) -> Controller[Key]:
        queue_metrics = QueueMetrics(metrics, "pods")
        queue: WorkQueue[Key] = WorkQueue(self.host.clock, observer=queue_metrics)
        queue_metrics.follow(queue)
        controller = Controller(
            "pods",
            self.reconciler.reconcile,
            queue,
            self.host.clock,
            workers=WORKERS,
            deadline_s=DEADLINE_S,
            observer=ControllerMetrics(metrics, "pods"),
        )
        controller.watch(self.pods)
        return controller

    def _look_at(self, key: Key) -> None:
        self._controller.queue.add(key)
        if self.registration is not None:
            self.registration.keeper.nudge()  # the Node tells what the host holds and whether it is busy

    async def _address(self, uid: str) -> str | None:
        entry = self.host.journal.get(uid)
        return entry.address if entry is not None and entry.exit is None else None

    def _not_forwarded(self, pod: Pod, sentence: str) -> None:
        refused = reasons.FORWARD_REFUSED
        self.host.events.event(pod, refused.type, refused.name, sentence)

    def _no_screen(self, pod: Pod, sentence: str) -> None:
        refused = reasons.SCREEN_REFUSED
        self.host.events.event(pod, refused.type, refused.name, sentence)
