"""Keeps asking the guests that run: one task per probe, so that a probe that hangs delays no other.

A guest's startup probe gates its two others. Whoever is responsible for the Pod is told when its health changes and decides
what follows; nothing is ended from here. After a restart of the agent a guest goes on with the health its Pod's status
shows, so that a restart makes nobody unready.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

from applecart.api.containers import ContainerStatus
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kube.background import uncancelled
from applecart.kubelet.probes.ask import Asker
from applecart.kubelet.probes.checks import Kind, Plan, UnsupportedProbe, plans
from applecart.kubelet.probes.state import Answer, Health, ProbeResult, ProbeState, health, unhealthy_event
from applecart.observe.logs import logger

FIRST_JITTER_S = 1.0  # spreads the guests of a restarted agent; a whole period would keep a good guest waiting

log = logger(__name__)


class ProbeRunner:
    def __init__(
        self,
        asker: Asker,
        clock: Clock,
        *,
        on_change: Callable[[str, Health], None],
        on_failure: Callable[[str, str], None],
    ) -> None:
        """`on_failure` gets the text of an `Unhealthy` event for every answer that is not good."""
        self._asker = asker
        self._clock = clock
        self._on_change = on_change
        self._on_failure = on_failure
        self._guests: dict[str, _Guest] = {}

    def start(self, pod: Pod, vm: str, address: str, started_at: datetime) -> Health:
        """From now on the guest is asked. Called again, it only takes note of a new address."""
        guest = self._guests.get(pod.uid)
        if guest is None:
            guest = self._guests[pod.uid] = _Guest(pod, vm, address, started_at)
            for plan in guest.states:
                asking = self._keep_asking(guest, plan)
                guest.tasks.append(asyncio.create_task(asking, name=f"{plan.kind} probe of {pod.key}"))
        guest.address = address
        return guest.health

    def health(self, uid: str) -> Health | None:
        """None when the guest is not asked (yet)."""
        guest = self._guests.get(uid)
        return guest.health if guest else None

    async def stop(self, uid: str) -> None:
        """The guest is not asked any more, and nobody is told anything of it. Harmless when it never was."""
        guest = self._guests.pop(uid, None)
        if guest is None:
            return
        for task in guest.tasks:
            task.cancel()
        await asyncio.gather(*guest.tasks, return_exceptions=True)

    async def aclose(self) -> None:
        for uid in list(self._guests):
            await self.stop(uid)

    async def _keep_asking(self, guest: "_Guest", plan: Plan) -> None:
        if plan.kind is not Kind.STARTUP:
            await guest.is_started.wait()
        # The wall clock may have been set back since, and a delay must not become longer than it says.
        running_s = max(0.0, (self._clock.now() - guest.started_at).total_seconds())
        await asyncio.sleep(max(0.0, plan.initial_delay_s - running_s) + self._first_jitter_s(plan))
        while not guest.is_decided(plan):
            began_s = self._clock.monotonic()
            try:
                await uncancelled(self._ask_once(guest, plan))
            except Exception as error:  # of a listener mostly; the guest must go on being asked
                log.error("a probe or its listener failed", pod=str(guest.key), probe=plan.kind, exc_info=error)
            await asyncio.sleep(max(0.0, plan.period_s - (self._clock.monotonic() - began_s)))

    async def _ask_once(self, guest: "_Guest", plan: Plan) -> None:
        answer = await self._asker.ask(plan, guest.vm, guest.address)
        before = guest.health
        guest.heard(plan, answer)
        if answer.outcome is not ProbeResult.PASSED:
            self._on_failure(guest.uid, unhealthy_event(plan, answer))
        # A sentence alone is no news: an answer that quotes the time would make a write to the API of every probe.
        if (guest.health.ready, guest.health.alive, guest.health.started) != (before.ready, before.alive, before.started):
            self._on_change(guest.uid, guest.health)

    def _first_jitter_s(self, plan: Plan) -> float:
        return self._clock.random.uniform(0.0, min(FIRST_JITTER_S, plan.period_s))


class _Guest:
    """One guest and what is known of it."""

    def __init__(self, pod: Pod, vm: str, address: str, started_at: datetime) -> None:
        self.uid = pod.uid
        self.key = pod.key
        self.vm = vm
        self.address = address
        self.started_at = started_at
        self.tasks: list[asyncio.Task[None]] = []
        self.is_started = asyncio.Event()
        self.states: dict[Plan, ProbeState] = {}
        container = pod.spec.containers[0]
        status = next((it for it in pod.status.container_statuses if it.name == container.name), ContainerStatus(name=""))
        was_good = {Kind.STARTUP: bool(status.started), Kind.READINESS: status.ready, Kind.LIVENESS: True}
        try:
            self.states = {plan: ProbeState.first(plan.kind, was_good[plan.kind]) for plan in plans(container)}
        except UnsupportedProbe as refused:
            self.health = Health(ready=False, alive=True, started=False, sentence=str(refused))
        else:
            self._judge()

    def heard(self, plan: Plan, answer: Answer) -> None:
        self.states[plan] = self.states[plan].after(answer, plan)
        self._judge()

    def is_decided(self, plan: Plan) -> bool:
        """Asking once more would change nothing: the guest has started, or is as good as ended."""
        state = self.states[plan]
        return state.ends_guest(plan) or (plan.kind is Kind.STARTUP and state.is_good)

    def _judge(self) -> None:
        self.health = health(self.states.items())
        if self.health.started:
            self.is_started.set()
