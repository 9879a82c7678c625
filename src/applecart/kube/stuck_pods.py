"""Frees Pods whose agent can never do it: those on a Node that no longer exists, and those that never had one (I5).

`applecart up` runs a `Sweep` where it may run our controllers; more of them in a cluster do no harm. It acts only on what the
API itself says of a Node, asked for by name and without a cache, and only when that Node was missing for a while: an agent
whose Node was deleted by mistake creates it again and goes on. When Nodes cannot be read, or none is listed, it does nothing.
Never touches a Pod of a Node that exists, and no finalizer but ours.
"""

import asyncio
from collections.abc import Callable, Iterable, Set
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

import msgspec

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.metadata_only import MetadataClient, metadata_kind
from applecart.kube.patch import Merge
from applecart.observe.ages import Ages
from applecart.observe.logs import logger
from applecart.observe.metrics import Metrics

AGENT_PATIENCE = timedelta(minutes=1)  # a working agent needs seconds for a Pod that ended; two of its retries fit in

AT_A_TIME = 32  # calls; more gain nothing on a kube-apiserver, fewer make 504 Pods slow over a slow line
ATTEMPTS = 4  # looks at a Pod that keeps changing; after these the next sweep or the person tries again


SWEEP_EVERY_S = 60.0  # a Pod of a lost host holds a pool's place; a minute is short beside the loss of the host
JITTER = 0.2  # of the wait: components that started together do not list together
QUARANTINE_S = 40.0  # as kube-controller-manager waits before it gives Pods of a missing Node up
RELEASED_METRIC = "applecart_stuck_pods_released_total"
STUCK = "pod held after its deletion"  # the class of waiting in `Ages`


log = logger(__name__)


class Cause(StrEnum):
    """Why a Pod qualifies; a label value."""

    NODE_GONE = "node-gone"
    NEVER_PLACED = "never-placed"
    FINISHED = "finished"


class Unstick(msgspec.Struct, frozen=True):
    """Take our finalizer off this Pod if it is still the revision we judged."""

    pod: Pod
    cause: Cause
    because: str

    @property
    def key(self) -> Key:
        return self.pod.key

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def revision(self) -> str:
        return self.pod.revision

    @property
    def others(self) -> tuple[str, ...]:
        """The finalizers that stay."""
        return others_of(self.pod)


class Keep(msgspec.Struct, frozen=True):
    """Leave this Pod alone."""

    pod: Pod
    because: str


def plan_unstick(pods: Iterable[Pod], gone: Set[str], now: datetime, *, finished_too: bool = False) -> list[Unstick]:
    """`gone` are Nodes of which the API itself said that they do not exist. `finished_too` includes Pods that ended on Nodes
    that exist."""
    verdicts = (judge(pod, gone, now, finished_too=finished_too) for pod in pods)
    return [verdict for verdict in verdicts if isinstance(verdict, Unstick)]


def judge(pod: Pod, gone: Set[str], now: datetime, *, finished_too: bool = False) -> Unstick | Keep:
    ends_at, node = pod.metadata.deletion_timestamp, pod.spec.node_name
    if ends_at is None:
        return Keep(pod, "it is not being deleted")
    if VM_CLEANUP not in pod.metadata.finalizers:
        return Keep(pod, _without_ours(pod, is_gone=node in gone))
    if not node:
        return Unstick(pod, Cause.NEVER_PLACED, "it never had a Node, so it has no VM")
    if node in gone:
        return Unstick(pod, Cause.NODE_GONE, f"its Node {node} does not exist")
    if not pod.is_terminal:
        return Keep(pod, f"its VM may still run on Node {node}; the agent there ends it")
    if not finished_too:
        return Keep(pod, f"the agent of Node {node} lets it go")
    # The API adds the grace period to the instant of the request, so this is the end of the grace period already.
    if now - ends_at <= AGENT_PATIENCE:
        return Keep(pod, f"the agent of Node {node} still has time to let it go")
    return Unstick(pod, Cause.FINISHED, f"it is {pod.status.phase}, and the agent of Node {node} did not let it go")


def suspected_nodes(pods: Iterable[Pod], node_names: Set[str] | None) -> set[str]:
    """Nodes that held Pods name and a list does not: worth asking for, one by one.

    None is a list that could not be read. An empty one is more often a fault than the truth, so it raises no suspicion either.
    """
    if not node_names:
        return set()
    return {pod.spec.node_name for pod in pods if is_held(pod) and pod.spec.node_name} - node_names


def is_held(pod: Pod) -> bool:
    """Being deleted, and our finalizer is in the way."""
    return pod.is_being_deleted and VM_CLEANUP in pod.metadata.finalizers


def others_of(pod: Pod) -> tuple[str, ...]:
    return tuple(name for name in pod.metadata.finalizers if name != VM_CLEANUP)


def _without_ours(pod: Pod, *, is_gone: bool) -> str:
    if others := others_of(pod):
        return f"it waits for {', '.join(others)}, which {'is' if len(others) == 1 else 'are'} not ours"
    node = pod.spec.node_name
    if is_gone:
        return f"it has no finalizer of ours; the collection of Pods ends it, because Node {node} is gone"
    return "it has no finalizer of ours" + (f"; the agent of Node {node} ends it" if node else "")


Judge = Callable[[Pod], Unstick | Keep]


class ReleaseOutcome(msgspec.Struct, frozen=True):
    """What became of one Pod."""

    key: Key
    uid: str
    cause: Cause
    released: bool
    because: str = ""  # why it was not released
    held_by: tuple[str, ...] = ()  # finalizers of others that it still has


async def release_all(
    client: Client, plan: Iterable[Unstick], judge: Judge, *, told: Callable[[ReleaseOutcome], None] = lambda _: None
) -> list[ReleaseOutcome]:
    """Carry out a plan; one Pod that cannot be released keeps no other from it. `told` hears of each as it is done."""
    limit = asyncio.Semaphore(AT_A_TIME)

    async def carry_out(step: Unstick) -> ReleaseOutcome:
        async with limit:
            try:
                outcome = await release(client, step, judge)
            except ApplecartError as error:
                outcome = _not_released(step, str(error))
        told(outcome)
        return outcome

    return await asyncio.gather(*(carry_out(step) for step in plan))


async def release(client: Client, step: Unstick, judge: Judge) -> ReleaseOutcome:
    verdict: Unstick | Keep = step
    for _ in range(ATTEMPTS):
        if isinstance(verdict, Keep):
            return _not_released(step, verdict.because)
        try:
            if not _grace_is_over(verdict.pod) and not verdict.others:
                await client.delete(Pod, step.key, if_uid=step.uid, if_revision=verdict.revision, grace_s=0)
            else:
                await _take_off(client, verdict)
                return ReleaseOutcome(step.key, step.uid, step.cause, True, held_by=verdict.others)
        except NotFound:
            return ReleaseOutcome(step.key, step.uid, step.cause, True)
        except Conflict:
            pass  # somebody wrote it first, or it is another Pod by now: look again
        try:
            pod = await client.get(Pod, step.key)
        except NotFound:
            return ReleaseOutcome(step.key, step.uid, step.cause, True)
        if pod.uid != step.uid:
            return ReleaseOutcome(step.key, step.uid, step.cause, True)
        verdict = judge(pod)
    return _not_released(step, "it keeps changing")


async def _take_off(client: Client, step: Unstick) -> None:
    """A merge patch replaces the list whole, which is why it must be the revision that was judged."""
    patch = Merge({"metadata": {"uid": step.uid, "finalizers": list(step.others)}})
    await client.patch(Pod, step.key, patch, if_revision=step.revision)


def _grace_is_over(pod: Pod) -> bool:
    """With 0 the API removes a Pod together with its last finalizer; before that it waits for an agent's word."""
    return not pod.metadata.deletion_grace_period_seconds


def _not_released(step: Unstick, because: str) -> ReleaseOutcome:
    return ReleaseOutcome(step.key, step.uid, step.cause, False, because)


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
