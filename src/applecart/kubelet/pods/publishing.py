"""A Pod's status in the API: what differs, and nothing that others wrote; and what of its guest the node offers to others.

The patch names the Pod's uid, so that a status never lands on another Pod of the same name.
"""

from dataclasses import dataclass

from applecart.api.pods import Pod, PodStatus
from applecart.errors import ApplecartError
from applecart.kube.patch import Merge
from applecart.kubelet.entry import Exit, JournalEntry
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.lives import Lives
from applecart.kubelet.pods.status import View, pod_status, refused_status, status_patch
from applecart.kubelet.probes.state import Health
from applecart.kubelet.screen.screens import Screens
from applecart.kubelet.serve.forwarder import Forwarders
from applecart.observe.logs import logger

UNASKED = Health(ready=True, alive=True, started=True)  # a guest with an address and without probes is ready

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Publishing:
    host: Host
    lives: Lives
    forwarders: Forwarders
    screens: Screens

    async def publish(self, pod: Pod, entry: JournalEntry) -> Pod:
        """The Pod with the status that its entry calls for, durable."""
        written = await self._write(pod, pod_status(pod, entry, await self._view(pod, entry), self.host.clock.now()))
        if entry.address and entry.exit is None:
            await self._show_screen(pod, entry)
        return written

    async def refuse(self, pod: Pod, end: Exit) -> Pod:
        return await self._write(pod, refused_status(pod, end, View(host_ip=self.host.node_ip), self.host.clock.now()))

    async def _view(self, pod: Pod, entry: JournalEntry) -> View:
        health = self.lives.probes.health(pod.uid) or UNASKED
        return View(
            host_ip=self.host.node_ip,
            pod_ip=await self._pod_ip(pod, entry),
            is_ready=health.ready,
            is_started=health.started,
            not_ready=health.sentence,
            waiting=self.lives.doing(pod.uid),
        )

    async def stop(self, uid: str) -> None:
        """Nothing of the guest is offered on the node's address any more."""
        await self.forwarders.stop(uid)
        await self.screens.stop(uid)

    async def _show_screen(self, pod: Pod, entry: JournalEntry) -> None:
        """After the status, which must not wait for it. What fails is done at the next look."""
        changes = await self.screens.sync(pod, entry.vm, self.host.logs / f"{entry.vm}.log")
        if changes is None:
            return
        metadata = {"uid": pod.uid, "annotations": dict(changes)}
        try:
            await self.host.client.patch(Pod, pod.key, Merge({"metadata": metadata}))
        except ApplecartError as error:
            log.warning("a Pod cannot be told where its screen is", object=pod, exc_info=error)

    async def _write(self, pod: Pod, status: PodStatus) -> Pod:
        patch = status_patch(pod.status, status, pod.uid)
        return pod if patch is None else await self.host.client.patch_status(Pod, pod.key, patch)

    async def _pod_ip(self, pod: Pod, entry: JournalEntry) -> str:
        """The guest's own address, or the node's where the guest's metrics are forwarded."""
        is_forwarded = bool(entry.address) and entry.exit is None and await self.forwarders.sync(pod, entry.address)
        return self.host.node_ip if is_forwarded else entry.address
