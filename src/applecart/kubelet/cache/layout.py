"""Where everything lies on the disk for caches.

    <account>/tuist-cache/master.sparseimage, master.generation    what jobs of the account begin with
    <account>/tuist-cache/master.json                              when it was used last, and what it holds
    branches/<uid>/cache.sparseimage                               one VM's own copy; the folder is shared with its guest
    _records/<uid>.json                                            what was decided about a branch
    _staged/, _mounts/, _converge/, _partials/                     work under way; only partials are worth keeping

Folders of accounts are numbers and ours begin with an underscore, so neither is taken for the other. Only branches are open
to guests; nothing that the agent believes lies in one of them. They are named after the Pod's uid, because the next Pod of the
same name has a VM of the same name, and what is left of one must never be taken for the other's.
"""

import re
import stat
from pathlib import Path

from applecart.api import labels, names

VOLUME = "tuist-cache"
MASTER_IMAGE = "master.sparseimage"
BRANCH_IMAGE = "cache.sparseimage"
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_GENERATION = re.compile(rb"([0-9]{1,18})\s*")


class Layout:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.branches = root / "branches"
        self.records = root / "_records"
        self.staging = root / "_staged"
        self.mounts = root / "_mounts"
        self.converging = root / "_converge"
        self.all_partials = root / "_partials"

    def volume(self, account: str) -> Path:
        if not is_account(account):
            raise ValueError(f"{account!r} is not the id of an account")
        return self.root / account / VOLUME

    def master(self, account: str) -> Path:
        return self.volume(account) / MASTER_IMAGE

    def branch(self, uid: str) -> Path:
        return self.branches / _checked(uid)

    def branch_image(self, uid: str) -> Path:
        return self.branch(uid) / BRANCH_IMAGE

    def set_aside(self, uid: str) -> Path:
        """Where a folder goes that a guest put in its image's place."""
        return self.staging / f"{_checked(uid)}.set-aside"

    def record(self, uid: str) -> Path:
        return self.records / f"{_checked(uid)}.json"

    def staged(self, uid: str) -> Path:
        return self.staging / f"{_checked(uid)}.sparseimage"

    def partials(self, account: str) -> Path:
        """Per account: an image's digest says what it is named, not what it holds, so no account may finish another's."""
        return self.all_partials / account / VOLUME

    def missing_folders(self) -> list[Path]:
        """Of our own; all of them on a disk that was exchanged or formatted while the agent ran."""
        own = (self.branches, self.records, self.staging, self.mounts, self.converging, self.all_partials)
        return [folder for folder in own if not folder.is_dir()]

    def accounts(self) -> list[str]:
        """Those with a master here."""
        try:
            found = [path.name for path in self.root.iterdir() if is_account(path.name)]
        except OSError:
            return []
        return sorted(account for account in found if is_plain_file(self.master(account)))


def is_account(text: str) -> bool:
    """Whether it can name a folder and a label: one key that the API refuses would cost the Node all of its labels."""
    return names.cache_master_account(labels.CACHE_MASTER_PREFIX + text) is not None


def is_plain_file(path: Path) -> bool:
    """A link is none, and is not followed: a guest's may lead to a disk that never answers."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def read_number(path: Path) -> int:
    """0 when there is none."""
    try:
        found = _GENERATION.fullmatch(path.read_bytes())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _checked(uid: str) -> str:
    if not _UID.fullmatch(uid):
        raise ValueError(f"{uid!r} is not the uid of a Pod")
    return uid
