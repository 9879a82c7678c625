"""tart-kubelet, put together: one Mac, one Node, every Pod a VM.

The parts run side by side, each in its own task: the heartbeat and the Node wait for nothing on the host, the Pods' workers
for nobody else's VM. Everything the agent knows is on disk or in the API, so it may be killed at any moment; ending it, or
starting a newer one, touches no VM.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from applecart.api.fixed_names import KUBELET_EVENT_SOURCE
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.api.reasons import kubelet as reasons
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.backoff import Pace
from applecart.kube.client import Client
from applecart.kube.controller import Controller
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer
from applecart.kube.runtime_metrics import ControllerMetrics, QueueMetrics
from applecart.kube.workqueue import WorkQueue
from applecart.kubelet.cache.volumes import CacheVolumes
from applecart.kubelet.garbage.collect import Collector
from applecart.kubelet.garbage.look import Look, pods_on
from applecart.kubelet.goldens import Goldens
from applecart.kubelet.gui_session import GuiSession
from applecart.kubelet.journal import Journal
from applecart.kubelet.metrics import KubeletMetrics
from applecart.kubelet.node.registration import Registration
from applecart.kubelet.options import Options
from applecart.kubelet.pods.guests import KnownGuests
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.lives import Lives
from applecart.kubelet.pods.publishing import Publishing
from applecart.kubelet.pods.reconciler import PodReconciler
from applecart.kubelet.screen.screens import Screens
from applecart.kubelet.serve.forwarder import Forwarders
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED
from applecart.kubelet.serve.tls import TlsFiles
from applecart.observe.logs import logger
from applecart.observe.metrics import Metrics
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.mac import Mac

WORKERS = 32  # a Pod's look is short; many that must go at once, as after an outage, go side by side
DEADLINE_S = 900.0  # of one look: a VM that must be asked, cut off, killed and deleted, each with its own deadline

REMEMBERED_EVENTS = 512  # of the Pods of an hour; the agent is small
SETTLE_PACE = Pace(first_s=5.0, longest_s=300.0)

log = logger(__name__)
Work = Callable[[], Coroutine[Any, Any, object]]


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
        for folder in (options.state_dir, options.userdata_dir, options.vm_log_dir):
            files.make_folder(folder)
        measured = KubeletMetrics(metrics, clock)
        tart = Tart(mac, options.tart_binary, options.tart_home, clock, on_call=measured.tart_called)
        home = Home(options.tart_home)
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
        journal = Journal(options.state_dir, files)
        self.host = Host(
            node=options.node_name,
            node_ip=node_ip,
            userdata=options.userdata_dir,
            logs=options.vm_log_dir,
            boot_deadline_s=options.boot_deadline,
            mac=mac,
            tart=tart,
            home=home,
            files=files,
            journal=journal,
            goldens=Goldens(tart, home, files, clock, options.state_dir),
            gui=GuiSession(
                mac,
                files,
                clock,
                uid=os.getuid(),
                state=options.state_dir,
                tart_binary=options.tart_binary,
                is_needed=needs_gui_session,
                on_kick=measured.gui_session_kicked,
            ),
            has_screen=self.screens.is_capable,
            caches=_caches(options, mac, files, clock, measured, journal),
            client=client,
            events=Recorder(client, KUBELET_EVENT_SOURCE, clock, host=options.node_name, remembered=REMEMBERED_EVENTS),
            metrics=measured,
            clock=clock,
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
        self.collector = None if options.disable_vm_gc else self._collector()
        self.registration: Registration | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        for entry in self.host.journal:
            self._look_at(entry.key)  # also those whose Pod is gone
        async with AsyncExitStack() as stack:
            port = await self._serve(stack)
            self.registration = Registration(self.host, self.options, self.guests, port)
            await self.registration.read_facts()
            group = await stack.enter_async_context(asyncio.TaskGroup())
            for work in (self.registration.run, *self._works()):
                group.create_task(work())

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

    def _works(self) -> list[Work]:
        works: list[Work] = [self.pods.run, self._controller.run, self.host.events.run]
        if self.host.caches is not None:
            works.append(self.host.caches.run)
        return [*works, self.collector.run if self.collector else self._settle]

    async def _settle(self) -> None:
        """What an agent that died left half done is not garbage: it is finished also where nothing is collected."""
        failures = 0
        while True:
            try:
                return await self.host.goldens.settle()
            except ApplecartError as error:
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

    def _collector(self) -> Collector:
        host = self.host
        pods = pods_on(host.client, host.node)
        look = Look(
            mac=host.mac, home=host.home, journal=host.journal, goldens=host.goldens, pods=pods, userdata=host.userdata,
            logs=host.logs, clock=host.clock,
        )  # fmt: skip
        return Collector(
            look=look, tart=host.tart, home=host.home, files=host.files, journal=host.journal, goldens=host.goldens,
            userdata=host.userdata, on_deleted=host.metrics.garbage_deleted,
        )  # fmt: skip

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


def _caches(
    options: Options, mac: Mac, files: Files, clock: Clock, metrics: KubeletMetrics, journal: Journal
) -> CacheVolumes | None:
    if options.runner_cache_root is None:
        return None
    return CacheVolumes(
        options.runner_cache_root,
        mac,
        files,
        clock,
        metrics.cache,
        cap_gib=options.cache_volume_cap_gib,
        cas_gib=options.cache_volume_cas_gib,
        entries=lambda: journal,
    )
