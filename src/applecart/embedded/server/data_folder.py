"""Everything a server keeps, in one folder that only its owner may enter, held by one process at a time."""

import fcntl
import os
from datetime import datetime
from pathlib import Path

from applecart.embedded.auth.user import MASTERS
from applecart.embedded.trust.kubeconfig_file import write_kubeconfig
from applecart.embedded.trust.pki import (
    Authority,
    Pair,
    PairFiles,
    load_or_create_authority,
    load_or_create_token_keys,
    write_pair,
)
from applecart.embedded.trust.private_file import make_private_folder
from applecart.errors import BadInput

NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "webdav"}  # their locks and fsync lie
MOUNTS = Path("/proc/self/mounts")
ADMIN_USER = "kubernetes-admin"


class DataFolder:
    """The files of one server."""

    def __init__(self, folder: Path, *, forbids_network: bool = True) -> None:
        self.folder = folder.absolute()
        try:
            make_private_folder(self.folder)
            make_private_folder(self.pki)
        except OSError as error:
            raise BadInput(f"{folder} cannot be used as a data folder ({error.strerror}); name another with --data") from None
        if forbids_network and (kind := filesystem_of(self.folder)) in NETWORK_FILESYSTEMS:
            raise BadInput(f"{folder} lies on a network filesystem ({kind}), whose locks cannot be trusted; use a local disk")

    @property
    def database(self) -> Path:
        return self.folder / "store.db"

    @property
    def secrets_key(self) -> Path:
        return self.folder / "secrets.key"

    @property
    def requests(self) -> Path:
        return self.folder / "requests.jsonl"

    @property
    def admin_kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def address(self) -> Path:
        """Where the running server says its URL, for the other commands."""
        return self.folder / "address"

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    def hold(self) -> "Hold":
        """Be the only process on this folder; raises BadInput when another one is."""
        return Hold(self.folder / "lock")

    def authority(self, now: datetime) -> Authority:
        return load_or_create_authority(self.pki, "ca", now)

    def token_keys(self) -> PairFiles:
        return load_or_create_token_keys(self.pki, "service-accounts")

    def issue_server(self, authority: Authority, names: tuple[str, ...], now: datetime) -> PairFiles:
        return write_pair(self.pki, "server", authority.issue_server(names, now))

    def write_admin(self, authority: Authority, url: str, now: datetime) -> None:
        write_kubeconfig(self.admin_kubeconfig, url, authority.certificate_pem, issue_admin(authority, now))


class Hold:
    """The lock of a data folder; it ends with the process, however that ends."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise BadInput(
                f"{file.parent} is in use by another server (process {holder}); stop it, or name another folder with --data"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def issue_admin(authority: Authority, now: datetime) -> Pair:
    return authority.issue_client(ADMIN_USER, (MASTERS,), now)


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
        inside = folder == Path(point) or Path(point) in folder.parents
        if inside and len(point) > len(best[0]):
            best = (point, kind)
    return best[1]
