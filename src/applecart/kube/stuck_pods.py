"""Frees Pods whose agent can never do it: those on a Node that no longer exists, and those that never had one (I5).

`applecart up` runs a `Sweep` where it may run our controllers; more of them in a cluster do no harm. It acts only on what the
API itself says of a Node, asked for by name and without a cache, and only when that Node was missing for a while: an agent
whose Node was deleted by mistake creates it again and goes on. When Nodes cannot be read, or none is listed, it does nothing.
Never touches a Pod of a Node that exists, and no finalizer but ours.
"""

import asyncio
from collections.abc import Iterable
from functools import partial

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.metadata_only import MetadataClient, metadata_kind
from applecart.kube.pod_release import AT_A_TIME, ReleaseOutcome, release_all
from applecart.kube.stuck_pod_plan import AGENT_PATIENCE, Cause, is_held, judge, plan_unstick, suspected_nodes
from applecart.observe.ages import Ages
from applecart.observe.logs import logger
from applecart.observe.metrics import Metrics

SWEEP_EVERY_S = 60.0  # a Pod of a lost host holds a pool's place; a minute is short beside the loss of the host
JITTER = 0.2  # of the wait: components that started together do not list together
QUARANTINE_S = 40.0  # as kube-controller-manager waits before it gives Pods of a missing Node up
RELEASED_METRIC = "applecart_stuck_pods_released_total"
STUCK = "pod held after its deletion"  # the class of waiting in `Ages`

log = logger(__name__)


async def listed_nodes(client: Client) -> set[str]:
    """The names of all Nodes, from the API itself."""
    return {node.name for node in await MetadataClient.of(client).list(metadata_kind(Node.resource))}


async def confirmed_gone(client: Client, names: Iterable[str]) -> set[str]:
    """Those of these Nodes that the API says do not exist. Raises when it cannot be asked."""
    limit = asyncio.Semaphore(AT_A_TIME)
    ordered = sorted(names)

    async def ask(name: str) -> bool:
        async with limit:
            return await _is_gone(client, name)

    answers = await asyncio.gather(*(ask(name) for name in ordered))
    return {name for name, gone in zip(ordered, answers, strict=True) if gone}


async def _is_gone(client: Client, name: str) -> bool:
    try:
        await client.get(Node, Key("", name))
    except NotFound as error:
        details = error.status.details
        if details is not None and details.name == name:
            return True
        raise  # a 404 that does not speak of this Node comes from a proxy or from no Kubernetes API
    return False


class Sweep:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        metrics: Metrics | None = None,
        ages: Ages | None = None,
        namespace: str = "",
        quarantine_s: float = QUARANTINE_S,
    ) -> None:
        """`namespace` narrows it to the Pods of one. `ages` shows how long the oldest stuck Pod has been waiting (I10)."""
        self._client = client
        self._clock = clock
        self._ages = ages
        self._namespace = namespace
        self._quarantine_s = quarantine_s
        self._missing_since_s: dict[str, float] = {}
        self._held: set[Key] = set()
        help_text = "Pods freed from our finalizer without their agent, by why."
        self._released = metrics.counter(RELEASED_METRIC, help_text, ["because"]) if metrics else None
        for cause in Cause:
            if self._released:
                self._released.of(cause.value)  # from the start, so that an alert sees the first one

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            try:
                await self.once()
            except ApplecartError as error:
                log.warning("stuck Pods cannot be looked for, trying again", because=str(error))
            except Exception:
                log.exception("looking for stuck Pods failed unexpectedly, trying again")
            await asyncio.sleep(SWEEP_EVERY_S * (1 + JITTER * (self._clock.random.random() - 0.5)))

    async def once(self) -> list[ReleaseOutcome]:
        """One look; a Node must have been missing at an earlier one, a quarantine ago. Raises when the API cannot be read."""
        held = [pod for pod in await self._client.list(Pod, self._namespace) if is_held(pod)]
        self._track(held)
        gone = await self._gone_nodes(held)
        judge_again = partial(judge, gone=gone, now=self._clock.now())
        outcomes = await release_all(self._client, plan_unstick(held, gone, self._clock.now()), judge_again)
        for outcome in outcomes:
            self._tell(outcome)
        return outcomes

    async def _gone_nodes(self, held: list[Pod]) -> set[str]:
        suspects = suspected_nodes(held, await listed_nodes(self._client)) if held else set()
        now_s = self._clock.monotonic()
        self._missing_since_s = {name: self._missing_since_s.get(name, now_s) for name in suspects}
        due = [name for name, since_s in self._missing_since_s.items() if now_s - since_s >= self._quarantine_s]
        return await confirmed_gone(self._client, due)

    def _track(self, held: list[Pod]) -> None:
        if self._ages is None:
            return
        late = [pod for pod in held if self._is_late(pod)]
        keys = {pod.key for pod in late}
        for key in self._held - keys:
            self._ages.done(STUCK, key)
        for pod in late:
            self._ages.waiting(STUCK, pod.key, pod.metadata.deletion_timestamp)
        self._held = keys

    def _is_late(self, pod: Pod) -> bool:
        """One that is just being deleted waits for nothing; it would be told as stuck until the next look."""
        deleted_at = pod.metadata.deletion_timestamp
        return deleted_at is not None and self._clock.now() - deleted_at >= AGENT_PATIENCE

    def _tell(self, outcome: ReleaseOutcome) -> None:
        about = log.bind(outcome.key, uid=outcome.uid)
        if not outcome.released:
            about.warning("a stuck Pod could not be freed, trying again", because=outcome.because)
            return
        if self._released:
            self._released.of(outcome.cause.value).inc()
        about.info("a stuck Pod was freed", because=outcome.cause.value, held_by=", ".join(outcome.held_by))
