"""The guests of this host as `kubectl logs`, `exec` and `top` ask for them: from the journal and the cache, without waiting.

A Pod of this node is always found, also one that never had a VM: whoever asks for its log is told why there is none.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from applecart.api import names
from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.kube.informer import Informer
from applecart.kubelet.entry import JournalEntry, Stage
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.ending import kept_log
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.status import CREATING
from applecart.kubelet.serve.guests import Guest, State

_WAITING = (Stage.ACCEPTED, Stage.CLONING, Stage.CLONED, Stage.BOOTING)


class KnownGuests:
    def __init__(self, host: Host, pods: Informer[Pod]) -> None:
        self._host = host
        self._pods = pods

    def find(self, namespace: str, pod: str) -> Guest | None:
        known = self._pods.get(Key(namespace, pod))
        if known is None:
            return None
        entry = self._host.journal.get(known.uid)
        return self._guest(known, entry) if entry is not None else self._unknown(known)

    def running(self) -> Iterable[Guest]:
        found = (self.find(pod.namespace, pod.name) for pod in self._pods)
        return [guest for guest in found if guest is not None and guest.state is State.RUNNING]

    def pod(self, key: Key) -> Pod | None:
        return self._pods.get(key)

    def pods(self) -> Iterable[Pod]:
        return list(self._pods)

    def _guest(self, pod: Pod, entry: JournalEntry) -> Guest:
        share = GuestShare(self._host.userdata, entry.vm, self._host.files)
        return Guest(
            namespace=entry.namespace,
            pod=entry.name,
            container=_container(pod),
            uid=entry.uid,
            vm=entry.vm,
            state=_state(entry),
            vm_log=self._log(entry.vm),
            share=share.status_folder,
            kept_log=kept_log(self._host, entry) if entry.exit is not None else None,
            waiting=entry.trouble.reason if entry.trouble else CREATING,
            has_begun=entry.started_at is not None and not self._is_overwritten(entry.started_at, entry),
            never_ran=_sentence(entry.exit.reason, entry.exit.message) if entry.exit and entry.started_at is None else "",
            staged=share.folder,
            secret_names=entry.secret_names,
        )

    def _is_overwritten(self, started_at: datetime, entry: JournalEntry) -> bool:
        """Logs go by the name of the VM, which another Pod has had since (`vm_name.py`): they are that one's (I9)."""
        others = (each for each in self._host.journal if each.vm == entry.vm and each.uid != entry.uid)
        return any(each.started_at is not None and each.started_at > started_at for each in others)

    def _unknown(self, pod: Pod) -> Guest:
        """One that was refused, one that is next, or one whose journal is lost."""
        vm = names.pod_vm(pod.namespace, pod.name)
        had_vm = any(each.container_id for each in pod.status.container_statuses)
        return Guest(
            namespace=pod.namespace,
            pod=pod.name,
            container=_container(pod),
            uid=pod.uid,
            vm=vm,
            state=State.ENDED if pod.is_terminal else State.WAITING,
            vm_log=self._log(vm),
            share=GuestShare(self._host.userdata, vm, self._host.files).status_folder,
            waiting=CREATING,
            has_begun=False,
            never_ran="" if had_vm else _sentence(pod.status.reason, pod.status.message),
        )

    def _log(self, vm: str) -> Path:
        return self._host.logs / f"{vm}.log"


def _container(pod: Pod) -> str:
    return pod.spec.containers[0].name if pod.spec.containers else ""


def _sentence(reason: str, message: str) -> str:
    return ": ".join(filter(None, (reason, message)))


def _state(entry: JournalEntry) -> State:
    if entry.exit is not None:
        return State.ENDED
    return State.WAITING if entry.stage in _WAITING else State.RUNNING
