"""What the agent knows and decided about one VM's branch, on the same disk as the branch.

A record is written before what it speaks of happens, so a new agent goes on where the old one died. It lies outside of the
folder that the guest shares: a mark that a guest can write is no mark. One that cannot be read is gone, and its branch with it;
a lost cache costs time, a wrong one costs trust.
"""

import os
import stat
from enum import StrEnum
from pathlib import Path

import msgspec

from applecart.kubelet.cache.layout import Layout
from applecart.observe.logs import logger
from applecart.tart.files import Files

log = logger(__name__)


class Step(StrEnum):
    ATTACHED = "attached"  # an empty folder, shared with a VM whose job is not known yet
    MATERIALIZED = "materialized"  # the image is there, and for whom is decided
    PROMOTING = "promoting"  # the job is over and its image becomes the account's master
    DISCARDING = "discarding"


class ImageId(msgspec.Struct, frozen=True):
    """One file, wherever it is moved on its disk."""

    inode: int
    modified_ns: int
    size_bytes: int


class Branch(msgspec.Struct, frozen=True):
    uid: str
    vm: str
    step: Step = Step.ATTACHED
    account: str = ""  # whose master it may become; empty: nobody's, ever
    base_generation: int = 0  # of the master it was cloned from; 0: it began empty
    generation: int = 0  # it becomes the master as this generation
    image: ImageId | None = None  # what is promoted, once it was looked at
    has_cas: bool | None = None

    @property
    def is_decided(self) -> bool:
        return self.step in (Step.PROMOTING, Step.DISCARDING)


class Records:
    def __init__(self, layout: Layout, files: Files) -> None:
        self._layout = layout
        self._files = files

    def write(self, branch: Branch) -> Branch:
        self._files.write(self._layout.record(branch.uid), msgspec.json.encode(branch))
        return branch

    def remove(self, branch: Branch) -> None:
        self._files.remove(self._layout.record(branch.uid))

    def read_all(self) -> list[Branch]:
        try:
            found = sorted(path for path in self._layout.records.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []
        return [branch for path in found if (branch := self._read(path)) is not None]

    def _read(self, path: Path) -> Branch | None:
        try:
            branch = msgspec.json.decode(path.read_bytes(), type=Branch)
            if self._layout.record(branch.uid) != path:
                raise ValueError(f"it is about Pod uid {branch.uid}")
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            log.error("a record of a cache volume cannot be read; that volume is given up", file=str(path), why=str(error))
            self._files.remove(path)
            return None
        return branch


def image_id(path: Path) -> ImageId | None:
    """None for anything but a plain file with one name. Only for folders that no guest can write to."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
    finally:
        os.close(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return None
    return ImageId(found.st_ino, found.st_mtime_ns, found.st_size)
