"""The file that `backup` writes and `restore` reads: a tar with a manifest, the database and, unless left out, the keys.

With its keys it is a whole server with the same identity: kubeconfigs and tokens that were handed out go on working. It is as
secret as the server itself, therefore mode 0600. Without keys the Secrets in it stay sealed. There is never half a file at the
target: it is written aside, made durable and then renamed. What is read is checked before anything is believed.
"""

import os
import shutil
import tarfile
from datetime import datetime
from pathlib import Path

import msgspec

from applecart.embedded.server.data_folder import DATABASE, KEYS
from applecart.errors import BadInput

FORMAT = 1
MANIFEST = "manifest.json"
MANIFEST_LIMIT_BYTES = 65_536  # it has a few hundred
COPY_BYTES = 1 << 20
KEY_LIMIT_BYTES = 65_536  # a key or a certificate has about a thousand


class Manifest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an archive says about itself."""

    format: int
    applecart: str
    made_at: datetime
    revision: int
    has_keys: bool


def write_archive(target: Path, unfinished: Path, manifest: Manifest, database: Path, folder: Path) -> None:
    """Put an archive at target by way of `unfinished`, a path in the same folder. The keys come from the data folder."""
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, MANIFEST, _file_of(unfinished.with_name(MANIFEST), msgspec.json.encode(manifest)))
            for name in KEYS if manifest.has_keys else ():
                _add(tar, name, folder / name)
            _add(tar, DATABASE, database)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(target)
    sync_folder(target.parent)


def unpack(archive: Path, into: Path) -> Manifest:
    """Write the parts of an archive into an empty folder; raises BadInput for a file that is not a whole archive."""
    try:
        with tarfile.open(archive, mode="r:") as tar:
            members = {member.name: member for member in tar}
            manifest = _manifest(archive, tar, members)
            wanted = (DATABASE, *KEYS) if manifest.has_keys else (DATABASE,)
            if set(members) != {MANIFEST, *wanted} or not all(member.isreg() for member in members.values()):
                raise _refused(archive, "it lacks a part or has one too many")
            for name in wanted:
                if name in KEYS and members[name].size > KEY_LIMIT_BYTES:
                    raise _refused(archive, f"its {name} is too large for a key")
                _extract(tar, members[name], into / name)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise _refused(archive, str(error)) from None
    except OSError as error:
        raise BadInput(f"{error.filename or archive} cannot be used ({error.strerror}); check the file and the disk") from None
    return manifest


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest(archive: Path, tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> Manifest:
    member = members.get(MANIFEST)
    stream = tar.extractfile(member) if member is not None and member.size <= MANIFEST_LIMIT_BYTES else None
    if stream is None:
        raise _refused(archive, f"it has no {MANIFEST}")
    try:
        manifest = msgspec.json.decode(stream.read(), type=Manifest)
    except msgspec.MsgspecError as error:
        raise _refused(archive, f"its {MANIFEST} cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise BadInput(
            f"{archive} has format {manifest.format} and this applecart reads {FORMAT}; use the version that wrote it"
        )
    return manifest


def _add(tar: tarfile.TarFile, name: str, file: Path) -> None:
    with file.open("rb") as content:
        about = tarfile.TarInfo(name)
        about.size = os.fstat(content.fileno()).st_size
        about.mode = 0o600
        tar.addfile(about, content)


def _file_of(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(mode=0o700, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # it is a regular file
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        shutil.copyfileobj(content, out, COPY_BYTES)
        out.flush()
        os.fsync(out.fileno())
    if target.stat().st_size != member.size:
        raise tarfile.ReadError(f"{member.name} ends before its end")


def _refused(archive: Path, why: str) -> BadInput:
    return BadInput(f"{archive} is not a whole backup of applecart ({why}); take another one")
