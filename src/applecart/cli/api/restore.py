"""`applecart api restore`: put a backup in place of a data folder's content.

Everything is unpacked and checked before the folder is touched, or made. What was there is moved aside and never removed. The
database comes last: a stop in between leaves a folder without one, into which the same command can be run again.
"""

import tempfile
from datetime import datetime
from pathlib import Path

import click
import msgspec

from applecart.cli.api.archive import Manifest, sync_folder, unpack
from applecart.cli.api.database import check_database, check_key, prepare_restored, read_facts
from applecart.cli.api.reach import data_option
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import DATABASE, KEYS, DataFolder, Hold, make_data_folder
from applecart.embedded.store.sealing import load_or_make_key
from applecart.embedded.trust.private_file import make_private_folder
from applecart.errors import BadInput

SECRETS_KEY = "secrets.key"
OF_DATABASE = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")


class Restored(msgspec.Struct, frozen=True):
    manifest: Manifest
    objects: int
    revision: int  # where the server goes on
    moved_to: Path | None  # None: there was nothing to move


@click.command("restore")
@data_option()
@click.option("--from", "archive", metavar="FILE", type=click.Path(path_type=Path), required=True, help="What backup wrote.")
@click.option("--force", is_flag=True, help="Also into a folder that has a database, which is moved aside.")
def command(data: Path, archive: Path, force: bool) -> None:
    """Put a backup in place. The API must be stopped; clients list everything anew when it is back.

    \b
    Example:
      applecart api restore --data build/api --from ~/api-backup.tar
    """
    done = restore(data, archive, SystemClock().now(), force=force)
    made_at = f"{done.manifest.made_at:%Y-%m-%dT%H:%M:%SZ}"
    click.echo(f"{data}  {done.objects} objects of {made_at}, goes on at revision {done.revision}")
    if done.moved_to:
        click.echo(f"what was there lies in {done.moved_to}")
    click.echo(f"start it with: applecart api start --data {data}; every client lists anew")


def restore(data: Path, archive: Path, now: datetime, *, force: bool) -> Restored:
    if not archive.is_file():
        raise BadInput(f"--from {archive} is not a file")
    folder = DataFolder(data.absolute())
    near = next(path for path in (folder.folder, *folder.folder.parents) if path.is_dir())  # on the same disk
    hold: Hold | None = None
    try:
        if folder.lock.exists():
            hold = folder.hold()
        _refuse_used(data, folder, force)
        with tempfile.TemporaryDirectory(prefix=".restoring-", dir=near) as aside:
            new = Path(aside)
            manifest = unpack(archive, new)
            _check(new, manifest, folder)
            objects = sum(read_facts(new / DATABASE).objects.values())
            make_data_folder(data)
            if hold is None:
                hold = folder.hold()
                _refuse_used(data, folder, force)  # nobody could have been kept out until now
            revision = prepare_restored(new / DATABASE, seen=_revision_seen(folder))
            moved_to = _put_in_place(folder, new, manifest, now)
        return Restored(manifest, objects, revision, moved_to)
    except OSError as error:
        raise BadInput(f"{error.filename or data} cannot be written ({error.strerror}); check the disk") from None
    finally:
        if hold is not None:
            hold.release()


def _refuse_used(data: Path, folder: DataFolder, force: bool) -> None:
    if folder.database.exists() and not force:
        raise BadInput(f"{data} has a database already; give --force to move it aside, or name another folder")


def _check(new: Path, manifest: Manifest, folder: DataFolder) -> None:
    """The new database is whole, and the key that will lie beside it opens what it holds."""
    check_database(new / DATABASE)
    key = new / SECRETS_KEY if manifest.has_keys else folder.secrets_key
    if not key.is_file():
        raise BadInput(
            f"the backup holds no keys; put {SECRETS_KEY} and pki of the server it is from into {folder.folder} first"
        )
    check_key(new / DATABASE, load_or_make_key(key))


def _revision_seen(folder: DataFolder) -> int:
    """What clients of the replaced database may have seen; 0 when it cannot tell any more."""
    try:
        return read_facts(folder.database).revision if folder.database.exists() else 0
    except BadInput:
        return 0


def _put_in_place(folder: DataFolder, new: Path, manifest: Manifest, now: datetime) -> Path | None:
    replaced = [*OF_DATABASE, *(KEYS if manifest.has_keys else ())]
    there = [name for name in replaced if (folder.folder / name).exists()]
    old = _unused(folder.folder / f"before-restore-{now:%Y%m%dT%H%M%SZ}")
    for name in there:
        make_private_folder((old / name).parent)
        (folder.folder / name).replace(old / name)
    for name in (*KEYS, DATABASE):
        if (new / name).exists():
            (new / name).replace(folder.folder / name)
    sync_folder(folder.pki)
    sync_folder(folder.folder)
    return old if there else None


def _unused(path: Path) -> Path:
    """The path, with a number when it is taken: what an earlier restore moved aside stays."""
    taken = 0
    found = path
    while found.exists():
        taken += 1
        found = path.with_name(f"{path.name}-{taken}")
    return found
