"""Takes our finalizer off Pods that were judged stuck, and ends those that nothing else holds.

Every write names the uid and revision that was judged; a Pod that changed meanwhile is read and judged again. The grace period
is ended before the finalizer goes: whoever dies in between leaves a Pod that the next look finds again, never one without our
finalizer that nobody ends. Other people's finalizers stay, and a Pod that has one keeps its grace period.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.patch import Merge
from applecart.kube.stuck_pod_plan import Cause, Keep, Unstick

AT_A_TIME = 32  # calls; more gain nothing on a kube-apiserver, fewer make 504 Pods slow over a slow line
ATTEMPTS = 4  # looks at a Pod that keeps changing; after these the next sweep or the person tries again

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
