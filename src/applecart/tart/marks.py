"""Whose a VM is: a mark inside its folder, never its name (I3).

The mark is a file beside Tart's own in `vms/<vm>/`. Tart copies only its own files when it clones and removes the whole folder
when it deletes, so a mark goes with its VM and not onto its clones. It does go along when a person renames the VM, or exports
and imports it: a mark counts only in a VM of the name that it speaks of. A VM without a mark is somebody else's, and a mark
that cannot be read is no mark.
"""

from datetime import datetime

import msgspec

MARK_FILE = "applecart.json"
LONGEST_MARK_BYTES = 64 << 10  # ours are a few hundred bytes; whatever is longer is not ours


class PodMark(msgspec.Struct, frozen=True, tag="pod"):
    """The VM of one Pod."""

    uid: str
    namespace: str
    name: str
    image: str
    digest: str  # `repository@sha256:...` it was cloned from
    made_at: datetime


class GoldenMark(msgspec.Struct, frozen=True, tag="golden"):
    """A golden: cloned, never booted."""

    digest: str  # `repository@sha256:...`
    images: tuple[str, ...]  # the references, as Pods spell them, that lead to this digest now
    made_at: datetime
    used_at: datetime  # the last time a VM was made from it, or a Pod wanted it


class ScratchMark(msgspec.Struct, frozen=True, tag="scratch"):
    """A VM that was booted only to see whether the host can."""

    made_at: datetime


Mark = PodMark | GoldenMark | ScratchMark
