"""The guests of this host as `kubectl logs`, `exec` and `top` ask for them: from the journal and the cache, without waiting."""

from collections.abc import Iterable

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.kube.informer import Informer
from applecart.kubelet.entry import Entry, Stage
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.host import Host
from applecart.kubelet.serve.guests import Guest, State

_WAITING = (Stage.ACCEPTED, Stage.CLONING, Stage.CLONED, Stage.BOOTING)


class KnownGuests:
    def __init__(self, host: Host, pods: Informer[Pod]) -> None:
        self._host = host
        self._pods = pods

    def find(self, namespace: str, pod: str) -> Guest | None:
        known = self._pods.get(Key(namespace, pod))
        entry = self._host.journal.get(known.uid) if known is not None else None
        return self._guest(known, entry) if known is not None and entry is not None else None

    def running(self) -> Iterable[Guest]:
        found = (self.find(pod.namespace, pod.name) for pod in self._pods)
        return [guest for guest in found if guest is not None and guest.state is State.RUNNING]

    def pod(self, key: Key) -> Pod | None:
        return self._pods.get(key)

    def pods(self) -> Iterable[Pod]:
        return list(self._pods)

    def _guest(self, pod: Pod, entry: Entry) -> Guest:
        kept = self._host.logs / f"{entry.vm}.guest.log"
        return Guest(
            namespace=entry.namespace,
            pod=entry.name,
            container=pod.spec.containers[0].name if pod.spec.containers else "",
            uid=entry.uid,
            vm=entry.vm,
            state=_state(entry),
            vm_log=self._host.logs / f"{entry.vm}.log",
            share=GuestShare(self._host.userdata, entry.vm, self._host.files).status_folder,
            kept_log=kept if entry.exit is not None else None,
            waiting=entry.trouble.reason if entry.trouble else "ContainerCreating",
        )


def _state(entry: Entry) -> State:
    if entry.exit is not None:
        return State.ENDED
    return State.WAITING if entry.stage in _WAITING else State.RUNNING
