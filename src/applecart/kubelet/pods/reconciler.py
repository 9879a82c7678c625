"""One look at a Pod: what the API says, what the journal says, and the act that follows.

Everything here is short; what takes long (a pull, a boot, a job) happens in the Pod's `Life`. Deletion is carried through
whatever state the Pod or its VM is in (I5), and a terminal status is durable before the VM goes (I4). An entry whose Pod is
gone is torn down all the same, as often as it takes.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

import msgspec

from applecart.api import finalizers
from applecart.api.meta import Key
from applecart.api.pods import FAILED, Pod
from applecart.api.reasons import EventType
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ApplecartError, DeadlineExceeded, Permanent, Transient
from applecart.kube.controller import DONE, Result, again_in
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.finalizers import ensure_finalizer, remove_finalizer
from applecart.kube.informer import Informer
from applecart.kubelet.entry import Exit, JournalEntry, Stage
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.accepting import Accepting
from applecart.kubelet.pods.decide import Act, next_act
from applecart.kubelet.pods.ending import Ending
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.lives import Lives
from applecart.kubelet.pods.making import new_entry
from applecart.kubelet.pods.publishing import Publishing
from applecart.kubelet.pods.stopping import Stopping
from applecart.kubelet.pods.support import refusal
from applecart.kubelet.pods.trouble import classify, ended_by_us, never_ran
from applecart.tart.mac import RunEnd

LOOK_EVERY = timedelta(seconds=60)  # at a Pod that lives, whatever event was lost
AT_ONCE = timedelta(seconds=1)
LONGEST_TEARDOWN_S = 840.0  # below the deadline of a look (`agent.py`): an overrun must be a failure like any other (I5)
TEARDOWN_PATIENCE = timedelta(minutes=5)  # after a Pod's own grace period; then the Pod goes and the VM is ended without it


class TeardownOverrun(DeadlineExceeded):
    """A teardown took longer than one look at a Pod may."""


class PodReconciler:
    def __init__(self, host: Host, pods: Informer[Pod], lives: Lives, publishing: Publishing) -> None:
        self._host = host
        self._pods = pods
        self._lives = lives
        self._publishing = publishing
        self._accepting = Accepting(host, publishing)
        self._asked_at_s: dict[str, float] = {}  # by uid: since when a guest has had its grace period, over all looks

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key)
        result = DONE
        if pod is None or not pod.is_alive:
            self._accepting.forget(key)
        if pod is not None and pod.is_being_deleted:  # before anything else, and it waits for nobody's VM but its own (I5)
            result = await self._act(pod)
        left = await self._tear_down_earlier(key, pod)
        if left is not None:
            if pod is not None and pod.is_alive and self._host.journal.get(pod.uid) is None:
                await self._tell_wait(pod, left)
            raise left
        return result if pod is None or pod.is_being_deleted else await self._act(pod)

    async def _act(self, pod: Pod) -> Result:
        entry = self._host.journal.get(pod.uid)
        refused = refusal(pod) if entry is None else None
        act = next_act(pod, entry, refused is not None)
        if act is Act.GUARD:
            # Durable when it returns, so there is nothing to wait for: a lost watch event cannot strand the Pod here.
            with self._host.metrics.waiting("finalizer", pod.key):
                pod = await ensure_finalizer(self._host.client, pod, finalizers.VM_CLEANUP)
            act = next_act(pod, entry, is_unsupported=False)
        match act:
            case Act.FINISH_DELETION:
                return await self._finish_deletion(pod, entry)
            case Act.CLEAR_AWAY if entry is not None:
                return await self._clear_away(pod, entry)
            case Act.REFUSE if refused is not None:
                return await self._refuse(pod, refused)
            case Act.PUBLISH_END if entry is not None:
                return await self._publish_end(pod, entry)
            case Act.LIVE:
                return await self._live(pod, entry)
        return DONE

    # A Pod that lives

    async def _live(self, pod: Pod, entry: JournalEntry | None) -> Result:
        if entry is None:
            try:
                entry = self._accepting.accept(pod)
            except OSError as error:
                return await self._accepting.wait_for_disk(pod, error)
            if entry.exit is not None:
                return await self._publish_end(pod, entry)
        self._lives.keep(pod)
        if self._host.caches is not None and entry.started_at is not None:
            self._host.caches.see(pod, entry, GuestShare(self._host.userdata, entry.vm, self._host.files))
        await self._publishing.publish(pod, entry)
        return again_in(LOOK_EVERY)

    async def _refuse(self, pod: Pod, error: Permanent) -> Result:
        found = classify(error)
        refused = found.reason.as_event(EventType.WARNING)
        self._host.events.event(pod, refused.type, refused.name, str(error))
        self._host.metrics.failed(pod, found.failure)
        await self._publishing.refuse(pod, never_ran(refused.name, str(error), self._host.clock.now()))
        return DONE

    # A Pod that ended

    async def _publish_end(self, pod: Pod, entry: JournalEntry) -> Result:
        with self._host.metrics.waiting("publish", entry.key):
            pod = await self._publishing.publish(pod, entry)
        if entry.stage is Stage.ENDED:
            self._tell_failure(pod, entry)
            entry = self._host.journal.write(msgspec.structs.replace(entry, stage=Stage.PUBLISHED))
        return await self._clear_away(pod, entry) if entry.stage is Stage.PUBLISHED else DONE

    def _tell_failure(self, pod: Pod, entry: JournalEntry) -> None:
        if entry.exit is not None and entry.exit.phase == FAILED and entry.started_at is not None:
            self._host.events.event(pod, EventType.WARNING, entry.exit.container_reason, entry.exit.message)

    async def _clear_away(self, pod: Pod, entry: JournalEntry) -> Result:
        """The API holds the Pod's end, so its VM may go."""
        await self._stop_life(entry.uid)
        with self._host.metrics.waiting("teardown", entry.key):
            await self._stop(pod, entry)
            await Stopping(self._host).remove(entry)
        self._asked_at_s.pop(pod.uid, None)
        self._host.metrics.vm_gone(entry.vm)
        return DONE

    # A Pod that is being deleted, or gone

    async def _finish_deletion(self, pod: Pod, entry: JournalEntry | None) -> Result:
        try:
            entry = entry or self._entry_of_a_lost_journal(pod)
            if entry is not None and entry.stage is not Stage.REMOVED:
                await self._tear_down_in_time(pod, entry)
            elif not pod.is_terminal:  # whoever waits for its end with a finalizer of their own must see one
                with suppress(NotFound):
                    await self._tell_end(pod, entry)
        except Exception as error:  # whatever it is: the Pod must not wait for it for ever (I5)
            if isinstance(error, TeardownOverrun) and self._grace_left_s(pod) > 0:
                return again_in(AT_ONCE)  # its guest may take longer than a look does
            if not self._may_go_without_its_vm(pod):
                raise
            incomplete = reasons.TEARDOWN_INCOMPLETE
            sentence = f"the VM could not be removed yet ({error}); the Pod goes, and node {self._host.node} keeps trying"
            self._host.events.event(pod, incomplete.type, incomplete.name, sentence)
            await self._release(pod)
            raise
        await self._release(pod)
        self._host.metrics.pod_gone(pod.key)
        return DONE  # the entry stays as long as the Pod, which others may keep: a look at it must not find it unknown

    async def _tell_end(self, pod: Pod, entry: JournalEntry | None) -> None:
        """Of a Pod of which nothing is on the host. One that has an end keeps it, although the cache may not know it yet."""
        if entry is not None and entry.exit is not None:
            await self._publishing.publish(pod, entry)
        else:
            await self._publishing.refuse(pod, self._deleted_before_it_ran())

    async def _tear_down_in_time(self, pod: Pod, entry: JournalEntry) -> None:
        try:
            async with asyncio.timeout(LONGEST_TEARDOWN_S):
                await self._tear_down(pod, entry)
        except TimeoutError:
            raise TeardownOverrun(f"the teardown of VM {entry.vm} did not end within {LONGEST_TEARDOWN_S:.0f} s") from None

    async def _tear_down(self, pod: Pod, entry: JournalEntry) -> None:
        await self._stop_life(entry.uid)
        entry = self._host.journal.get(entry.uid) or entry
        if entry.stage is Stage.RUNNING:
            killing = reasons.KILLING
            sentence = f"stopping VM {entry.vm}, which has {self._grace_left_s(pod):.0f} s to shut down"
            self._host.events.event(pod, killing.type, killing.name, sentence)
        with self._host.metrics.waiting("teardown", entry.key):
            entry = self._with_reason_to_end(entry)
            end = await self._stop(pod, entry)
            if not pod.is_terminal:
                if entry.exit is None:
                    entry = await self._record_deletion(entry, end)
                with suppress(NotFound):
                    await self._publishing.publish(pod, entry)
            await Stopping(self._host).remove(entry)
        self._host.metrics.vm_gone(entry.vm)

    async def _stop(self, pod: Pod, entry: JournalEntry) -> RunEnd | None:
        """`kubectl delete --grace-period=0` counts also while its guest has the grace period of an earlier one."""

        def is_cut_short() -> bool:
            latest = self._pods.get(pod.key)
            return latest is not None and latest.uid == pod.uid and self._grace_left_s(latest) <= 0

        return await Stopping(self._host).stop(entry, self._grace_left_s(pod), is_cut_short)

    def _with_reason_to_end(self, entry: JournalEntry) -> JournalEntry:
        """Before its VM is asked to stop: whoever finds it halted later must not take that for a success."""
        if entry.stage not in (Stage.BOOTING, Stage.RUNNING) or entry.because is not None:
            return entry
        because = ended_by_us(reasons.DELETED.name, "the Pod was deleted while its VM ran", self._host.clock.now())
        entry = msgspec.structs.replace(entry, because=because)
        with suppress(OSError):  # a full disk: its VM is ended all the same
            self._host.journal.write(entry)
        return entry

    async def _record_deletion(self, entry: JournalEntry, end: RunEnd | None) -> JournalEntry:
        if end is not None:
            return await Ending(self._host).record(entry, end)
        never = self._deleted_before_it_ran()  # and what lies in the share of its VM's name says nothing of it
        return self._host.journal.write(msgspec.structs.replace(entry, stage=Stage.ENDED, exit=never, trouble=None))

    def _deleted_before_it_ran(self) -> Exit:
        return never_ran(reasons.DELETED.name, "the Pod was deleted before its VM ran", self._host.clock.now())

    async def _stop_life(self, uid: str) -> None:
        await self._lives.stop(uid)
        await self._publishing.stop(uid)

    def _entry_of_a_lost_journal(self, pod: Pod) -> JournalEntry | None:
        entry = new_entry(pod, self._host)
        if not entry.may_have_vm:
            return None
        with suppress(OSError):  # a full disk: its VM is ended all the same
            self._host.journal.write(entry)
        return entry

    def _grace_left_s(self, pod: Pod) -> float:
        """Of the time its guest has to shut down, which may be longer than a look. Measured, because clocks are set."""
        now_s = self._host.clock.monotonic()
        return max(0.0, _grace_s(pod) - (now_s - self._asked_at_s.setdefault(pod.uid, now_s)))

    def _may_go_without_its_vm(self, pod: Pod) -> bool:
        deadline = (pod.metadata.deletion_timestamp or self._host.clock.now()) + TEARDOWN_PATIENCE
        return self._host.clock.now() >= deadline

    async def _release(self, pod: Pod) -> None:
        """The object goes: its finalizer first, then, when the API still waits for us, the object."""
        self._asked_at_s.pop(pod.uid, None)
        with suppress(NotFound):
            await remove_finalizer(self._host.client, pod, finalizers.VM_CLEANUP)
            if pod.metadata.deletion_grace_period_seconds != 0:
                with suppress(Conflict):  # another Pod has its name by now
                    await self._host.client.delete(Pod, pod.key, if_uid=pod.uid, grace_s=0)

    async def _tear_down_earlier(self, key: Key, pod: Pod | None) -> Exception | None:
        """Pods of this name that the API has no longer: their VMs go before anything else gets the name. What is in the way."""
        for entry in self._host.journal:
            if entry.key == key and (pod is None or entry.uid != pod.uid):
                try:
                    await self._tear_down_gone(entry)
                except Exception as error:
                    return error
        return None

    async def _tear_down_gone(self, entry: JournalEntry) -> None:
        await self._stop_life(entry.uid)
        entry = self._host.journal.get(entry.uid) or entry
        if entry.stage is not Stage.REMOVED:  # else what goes by the name is another Pod's by now (I3)
            with self._host.metrics.waiting("teardown", entry.key):
                await Stopping(self._host).stop(entry, 0)
                await Stopping(self._host).remove(entry)
            self._host.metrics.vm_gone(entry.vm)
        self._asked_at_s.pop(entry.uid, None)
        self._host.journal.forget(entry.uid)

    async def _tell_wait(self, pod: Pod, error: Exception) -> None:
        sentence = f"the VM of an earlier Pod of this name is still on node {self._host.node} and is being removed: {error}"
        with suppress(ApplecartError):  # the error that it tells of counts
            await self._accepting.tell(pod, Transient(sentence))


def _grace_s(pod: Pod) -> float:
    granted = pod.metadata.deletion_grace_period_seconds
    if granted is None:
        granted = pod.spec.termination_grace_period_seconds
    return 30 if granted is None else granted
