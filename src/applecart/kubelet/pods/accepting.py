"""Taking a Pod on: its first entry, before anything is begun for it, and what it is told while it cannot have one.

A Pod without an entry has nothing on the host, so what it waits for is kept in memory and needs no disk to be told: it stands
in the Pod's status and events, and its age is exported (I10). It is never given up here: a disk that a person must clear is not
the Pod's fault.
"""

from datetime import timedelta

import msgspec

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.api.reasons import EventType
from applecart.api.reasons import kubelet as reasons
from applecart.errors import Transient
from applecart.kube.controller import Result, again_in
from applecart.kubelet.entry import JournalEntry, Trouble
from applecart.kubelet.journal import JournalFull
from applecart.kubelet.metrics import Wait
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.making import new_entry
from applecart.kubelet.pods.publishing import Publishing
from applecart.kubelet.pods.support import ignored
from applecart.kubelet.pods.trouble import next_trouble, wait_s
from applecart.observe.logs import logger

log = logger(__name__)


class Accepting:
    def __init__(self, host: Host, publishing: Publishing) -> None:
        self._host = host
        self._publishing = publishing
        self._troubles: dict[Key, Trouble] = {}

    def accept(self, pod: Pod) -> JournalEntry:
        """The Pod's first entry, durable. Raises OSError when it cannot be written."""
        entry = self._host.journal.write(new_entry(pod, self._host))
        self.forget(pod.key)
        if fields := ignored(pod):
            told = reasons.FIELDS_IGNORED
            self._host.events.event(pod, told.type, told.name, f"a VM takes no notice of {', '.join(fields)}")
        return entry

    async def wait_for_disk(self, pod: Pod, error: OSError) -> Result:
        """After an entry that could not be written."""
        host = self._host
        is_full = isinstance(error, JournalFull)
        if pod.key not in self._troubles:
            log.error("a Pod waits, because its journal entry cannot be written", object=pod, exc_info=error)
        why = error if is_full else Transient(f"what becomes of the Pod cannot be written down, so it waits: {error}")
        trouble = await self.tell(pod, why)
        host.metrics.waits(Wait.JOURNAL, pod.key, trouble.since)
        if is_full and host.goldens.reclaim is not None:
            await host.goldens.reclaim(f"the first journal entry of Pod {pod.key}")
        return again_in(timedelta(seconds=wait_s(trouble, host.clock.now())))

    async def tell(self, pod: Pod, error: Exception) -> Trouble:
        """Why the Pod cannot be taken on yet, for those who look at it."""
        host = self._host
        trouble = next_trouble(self._troubles.get(pod.key), error, host.clock.now(), host.clock.random)
        self._troubles[pod.key] = trouble
        host.events.event(pod, EventType.WARNING, trouble.reason, trouble.sentence)
        await self._publishing.publish(pod, msgspec.structs.replace(new_entry(pod, host), trouble=trouble))
        return trouble

    def forget(self, key: Key) -> None:
        """It waits no longer, or is gone."""
        self._troubles.pop(key, None)
        self._host.metrics.waits_no_longer(Wait.JOURNAL, key)
