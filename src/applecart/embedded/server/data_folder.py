"""Everything a server keeps, in one folder that only its owner may enter, held by one process at a time.

Commands that only look use `existing_data_folder`, which makes nothing: a folder that somebody misspelled must not come into
being by being asked about.
"""

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from applecart.embedded.trust.control_plane_files import KEPT, ControlPlaneFiles
from applecart.embedded.trust.private_file import make_private_folder
from applecart.errors import BadInput

NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "webdav"}  # their locks and fsync lie
MOUNTS = Path("/proc/self/mounts")
DATABASE = "store.db"
KEYS = ("secrets.key", *KEPT)  # what makes a server the one it was, besides its database
TRIES, TRY_AGAIN_S = 3, 0.02  # a look at who holds the folder takes microseconds
HOLDER_BYTES = 32  # more than any process id has


@dataclass(frozen=True, slots=True)
class DataFolder(ControlPlaneFiles):
    """The files of one embedded server."""

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def secrets_key(self) -> Path:
        return self.folder / "secrets.key"

    @property
    def requests(self) -> Path:
        return self.folder / "requests.jsonl"

    @property
    def address(self) -> Path:
        """Where the running server says its URL, for the other commands."""
        return self.folder / "address"

    @property
    def last_backup(self) -> Path:
        """Its time of change is when the last backup was complete."""
        return self.folder / "last-backup"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    def hold(self) -> "Hold":
        """Be the only process on this folder; raises BadInput when another one is."""
        return Hold(self.lock)

    def holder(self) -> int | None:
        """The process that holds this folder, or None."""
        try:
            descriptor = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadInput(f"{self.lock} cannot be read ({error.strerror}); run this as the owner of the folder") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(_holder(descriptor) or 0)
        finally:
            os.close(descriptor)
        return None


class Hold:
    """The lock of a data folder; it ends with the process, however that ends."""

    def __init__(self, file: Path) -> None:
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(file.parent, error) from None
        if not _is_taken(self._descriptor):
            holder = _holder(self._descriptor) or "unknown"
            os.close(self._descriptor)
            raise BadInput(
                f"{file.parent} is in use by another server (process {holder}); stop it, or name another folder with --data"
            )
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def make_data_folder(folder: Path) -> DataFolder:
    """The folder, made when it is not there; raises BadInput when it cannot be used."""
    data = DataFolder(folder.absolute())
    if (kind := filesystem_of(data.folder)) in NETWORK_FILESYSTEMS:
        raise BadInput(f"{folder} lies on a network filesystem ({kind}), whose locks cannot be trusted; use a local disk")
    try:
        make_private_folder(data.folder)
        make_private_folder(data.pki)
    except OSError as error:
        raise _unusable(folder, error) from None
    return data


def existing_data_folder(folder: Path) -> DataFolder:
    """A folder in which a server once ran; raises BadInput for any other, and makes nothing."""
    data = DataFolder(folder.absolute())
    try:
        is_ours = data.database.is_file()
    except OSError as error:
        raise _unusable(folder, error) from None
    if not is_ours:
        raise BadInput(
            f"{folder} holds no data of an API server; name the folder that was given to: applecart api start --data"
        )
    return data


def filesystem_of(folder: Path) -> str:
    """The kind of filesystem, where the system tells; "" elsewhere."""
    try:
        lines = MOUNTS.read_text().splitlines()
    except OSError:
        return ""
    best = ("", "")
    for line in lines:
        _, point, kind, *_ = [*line.split(" "), "", "", ""]
        point = point.replace("\\040", " ")
        if Path(point) in (folder, *folder.parents) and len(point) > len(best[0]):
            best = (point, kind)
    return best[1]


def _is_taken(descriptor: int) -> bool:
    """Take the lock, again after a moment: `holder` takes it too, for as long as it needs to let go again."""
    for attempt in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < TRIES:
                time.sleep(TRY_AGAIN_S)
        else:
            return True
    return False


def _holder(descriptor: int) -> str:
    """The process id that the holder of a lock wrote, "" when it is just writing it."""
    text = os.pread(descriptor, HOLDER_BYTES, 0).decode("ascii", "replace").strip()
    return text if text.isdigit() else ""


def _unusable(folder: Path, error: OSError) -> BadInput:
    return BadInput(f"{folder} cannot be used as a data folder ({error.strerror}); name another with --data")
