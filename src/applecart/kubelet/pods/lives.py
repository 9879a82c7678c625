"""The lives of all Pods on the host: begun once each, shown the latest of their Pod, ended with it."""

from collections.abc import Callable

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.api.reasons import EventType
from applecart.api.reasons import kubelet as reasons
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.life import Life
from applecart.kubelet.probes.ask import Asker
from applecart.kubelet.probes.runner import ProbeRunner
from applecart.kubelet.probes.state import Health


class Lives:
    def __init__(self, host: Host, changed: Callable[[Key], None]) -> None:
        self._host = host
        self._changed = changed
        self._lives: dict[str, Life] = {}
        self.probes = ProbeRunner(
            Asker(host.mac, host.tart), host.clock, on_change=self._health_changed, on_failure=self._probe_failed
        )

    def keep(self, pod: Pod) -> None:
        life = self._lives.get(pod.uid)
        if life is None:
            life = self._lives[pod.uid] = Life(self._host, self.probes, pod, lambda: self._changed(pod.key))
        life.see(pod)
        life.begin()

    def doing(self, uid: str) -> str:
        """What is being done for a Pod whose VM does not run yet."""
        life = self._lives.get(uid)
        return life.doing if life is not None else ""

    async def stop(self, uid: str) -> None:
        life = self._lives.pop(uid, None)
        if life is not None:
            await life.stop()
        await self.probes.stop(uid)

    async def aclose(self) -> None:
        """The VMs go on without us."""
        for uid in list(self._lives):
            await self.stop(uid)

    def _health_changed(self, uid: str, health: Health) -> None:
        life = self._lives.get(uid)
        if life is None:
            return
        if not health.alive and life.watching is not None:
            life.watching.end(reasons.LIVENESS_FAILED.name, health.sentence, health.grace_s)
        self._changed(life.pod.key)

    def _probe_failed(self, uid: str, sentence: str) -> None:
        life = self._lives.get(uid)
        if life is not None:
            unhealthy = reasons.UNHEALTHY
            self._host.events.event(life.pod, EventType.WARNING, unhealthy.name, sentence)
