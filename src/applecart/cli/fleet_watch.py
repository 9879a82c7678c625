"""What `applecart up` follows, and who waits in it.

Keeps the kinds of a fleet in memory and exports, per kind of waiting, how old the oldest wait is (I10). Reads only: it changes
nothing in the cluster.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from applecart.api.infrastructure import ScalewayAppleSiliconMachine
from applecart.api.meta import Object
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.api.runners import RunnerPool
from applecart.kube.cache import Change
from applecart.kube.informer import Informer
from applecart.kube.manager import Manager

K = TypeVar("K", bound=Object)
Waits = Callable[[K], datetime | None]  # since when it waits, or None

POD_PENDING = "pod pending"
MACHINE_NOT_READY = "machine not ready"


def pod_pending_since(pod: Pod) -> datetime | None:
    is_waiting = pod.status.phase == "Pending" and not pod.is_being_deleted
    return pod.metadata.creation_timestamp if is_waiting else None


def machine_not_ready_since(machine: ScalewayAppleSiliconMachine) -> datetime | None:
    return None if machine.status.ready else machine.metadata.creation_timestamp


class FleetWatch:
    def __init__(self, manager: Manager) -> None:
        self._ages = manager.ages
        pods, machines = manager.informer(Pod), manager.informer(ScalewayAppleSiliconMachine)
        self.informers: tuple[Informer[Any], ...] = (manager.informer(Node), pods, manager.informer(RunnerPool), machines)
        pods.on_change(self._track(POD_PENDING, pod_pending_since))
        machines.on_change(self._track(MACHINE_NOT_READY, machine_not_ready_since))

    async def following(self) -> None:
        for informer in self.informers:
            await informer.following()

    def counts(self) -> dict[str, int]:
        return {informer.kind.resource.label: len(informer) for informer in self.informers}

    def _track(self, wait: str, since_of: Waits[K]) -> Callable[[Change[K]], None]:
        def on_change(change: Change[K]) -> None:
            since = since_of(change.new) if change.new is not None else None
            if since is None:
                self._ages.done(wait, change.key)
            else:
                self._ages.waiting(wait, change.key, since)

        return on_change
