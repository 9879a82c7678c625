"""One look at everything the collector judges.

What might be removed is listed first, what protects it last: a VM that is made in between is not listed, and one that is listed
has its journal entry already. Whatever cannot be read raises, and the pass is off; only processes may fail, because then
everything counts as running.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from applecart.api.pods import FAILED, SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kubelet.entry import Stage
from applecart.kubelet.garbage.in_use import names_in_use
from applecart.kubelet.garbage.scene import Found, PodHere, Scene
from applecart.kubelet.goldens import Goldens
from applecart.kubelet.journal import Journal
from applecart.observe.logs import logger
from applecart.tart.home import Home
from applecart.tart.mac import Mac

PodSource = Callable[[], Awaitable[Sequence[Pod]]]

log = logger(__name__)


def pods_on(client: Client, node: str) -> PodSource:
    """Asked of the API itself: a cache that lags would miss a Pod that was just bound."""

    async def pods() -> Sequence[Pod]:
        return await client.list(Pod, fields=f"spec.nodeName={node}")

    return pods


class Look:
    def __init__(
        self,
        *,
        mac: Mac,
        home: Home,
        journal: Journal,
        goldens: Goldens,
        pods: PodSource,
        userdata: Path,
        logs: Path,
        clock: Clock,
    ) -> None:
        self._mac = mac
        self._home = home
        self._journal = journal
        self._goldens = goldens
        self._pods = pods
        self._userdata = userdata
        self._logs = logs
        self._clock = clock

    async def scene(self) -> Scene:
        userdata = tuple(_found(self._userdata, stat.S_ISDIR))
        logs = tuple(_found(self._logs, stat.S_ISREG))
        vms = (*self._home.vms(), *self._home.half_made())
        images = tuple(self._home.images())
        named = await self.names_in_use()
        pods = [pod for pod in await self._pods() if pod.metadata.deletion_timestamp is None]
        entries = list(self._journal)
        digests = {entry.uid: entry.digest for entry in entries}
        return Scene(
            now=self._clock.now(),
            free_percent=self._free_percent(),
            vms=vms,
            images=images,
            pulled=self._goldens.ledger.pulled(),
            pods=tuple(_pod_here(pod, digests.get(pod.metadata.uid, "")) for pod in pods),
            held=frozenset(entry.uid for entry in entries if entry.may_have_vm),
            entry_vms=frozenset(entry.vm for entry in entries if entry.stage != Stage.REMOVED),
            named_by_processes=named,
            busy_vms=self._goldens.busy.vms,
            busy_images=self._goldens.busy_digests(),
            userdata=userdata,
            logs=logs,
        )

    async def names_in_use(self) -> frozenset[str] | None:
        try:
            return names_in_use(await self._mac.processes())
        except (ApplecartError, OSError) as error:
            log.warning("processes cannot be listed, so every VM counts as running", why=str(error))
            return None

    def _free_percent(self) -> float | None:
        try:
            # A new Mac has no Tart home yet.
            there = next(path for path in (self._home.path, *self._home.path.parents) if path.exists())
            return self._mac.disk(there).free_percent
        except OSError as error:
            log.warning("the disk cannot be measured", why=str(error))
            return None


def _pod_here(pod: Pod, digest: str) -> PodHere:
    containers = pod.spec.containers
    phase = pod.status.phase if pod.status else ""
    return PodHere(pod.metadata.uid, containers[0].image if containers else "", digest, phase in (SUCCEEDED, FAILED))


def _found(folder: Path, is_kind: Callable[[int], bool]) -> Iterator[Found]:
    """Entries of that kind; links are none."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        try:
            about = (folder / name).lstat()
        except FileNotFoundError:
            continue
        if is_kind(about.st_mode):
            yield Found(folder / name, datetime.fromtimestamp(about.st_mtime, UTC), about.st_size)
