"""Everything the plans of garbage collection look at, as plain values of one moment."""

from datetime import datetime
from pathlib import Path

import msgspec

from applecart.tart.cached_images import CachedImage
from applecart.tart.home import LocalVm


class PodHere(msgspec.Struct, frozen=True):
    """A Pod bound to this node that is not being deleted."""

    uid: str
    image: str
    digest: str = ""  # `repository@sha256:...` of the golden its VM was made from, once it is known
    is_ended: bool = False  # it succeeded or failed, and will never need a golden again


class Found(msgspec.Struct, frozen=True):
    """A folder or file of ours outside of Tart's store."""

    path: Path
    changed_at: datetime
    size_bytes: int = 0


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    now: datetime
    free_percent: float | None = None  # of the disk that holds the store; None when it could not be measured
    vms: tuple[LocalVm, ...] = ()  # whole and half-made
    images: tuple[CachedImage, ...] = ()
    pulled: frozenset[str] = frozenset()  # digests that this agent pulled; all others are somebody else's
    pods: tuple[PodHere, ...] = ()
    held: frozenset[str] = frozenset()  # uids of journal entries that may have a VM
    entry_vms: frozenset[str] = frozenset()  # VM names of journal entries that may have anything on this host
    named_by_processes: frozenset[str] | None = None  # None: it could not be told, so everything counts as running
    busy_vms: frozenset[str] = frozenset()  # goldens being made or cloned from
    busy_images: frozenset[str] = frozenset()  # digests that goldens are being made from
    userdata: tuple[Found, ...] = ()
    logs: tuple[Found, ...] = ()

    def is_in_use(self, vm: str) -> bool:
        return self.named_by_processes is None or vm in self.named_by_processes
