"""`applecart api backup`: copy everything into one file, also while the API runs."""

import os
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from applecart import __version__
from applecart.cli.api.archive import FORMAT, Manifest, write_archive
from applecart.cli.api.database import check_database, copy_database, read_facts
from applecart.cli.api.reach import data_option
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import KEYS, DataFolder, existing_data_folder
from applecart.errors import BadInput, ControlPlaneFault

Progress = Callable[[int, int], None]


@click.command("backup")
@data_option()
@click.option("--to", "target", metavar="FILE", type=click.Path(path_type=Path), required=True, help="Replaced if it is there.")
@click.option("--without-keys", is_flag=True, help="Leave the keys out: Secrets in the copy stay sealed.")
def command(data: Path, target: Path, without_keys: bool) -> None:
    """Copy everything into one file, also while the API runs. With its keys the file is as secret as the server.

    \b
    Example:
      applecart api backup --data build/api --to ~/api-backup.tar
    """
    folder = existing_data_folder(data)
    manifest = back_up(folder, target, SystemClock().now(), with_keys=not without_keys, progress=shown_progress())
    size_bytes = target.stat().st_size
    keys = "with the keys" if manifest.has_keys else "without keys: Secrets in it stay sealed"
    click.echo(f"{target}  {size_bytes / (1 << 20):.1f} MiB, revision {manifest.revision}, {keys}")


def back_up(folder: DataFolder, target: Path, now: datetime, *, with_keys: bool, progress: Progress) -> Manifest:
    target = target.resolve()
    if target.is_dir():
        raise BadInput(f"--to {target} is a folder; name a file")
    if target.exists() and not target.is_file():
        raise BadInput(f"--to {target} is no file that can be replaced; name a file")
    if folder.folder.resolve() in target.parents:
        raise BadInput(f"--to {target} lies in the data folder itself, to be lost with it; name a file elsewhere")
    if not target.parent.is_dir():
        raise BadInput(f"--to {target} lies in no folder; make it first, or name another file")
    missing = [name for name in KEYS if with_keys and not (folder.folder / name).is_file()]
    if missing:
        raise BadInput(f"{folder.folder} has no {', '.join(missing)}; put it back, or copy --without-keys")
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as aside:
            copy = Path(aside) / "store.db"
            copy_database(folder.database, copy, progress)
            check_database(copy)
            manifest = Manifest(
                format=FORMAT,
                applecart=__version__,
                made_at=now,
                revision=read_facts(copy).revision,
                has_keys=with_keys,
            )
            write_archive(target, Path(aside) / "archive", manifest, copy, folder.folder)
    except OSError as error:
        raise ControlPlaneFault(
            f"{error.filename or target} cannot be written ({error.strerror}); there is no backup"
        ) from None
    try:
        folder.last_backup.write_text(f"{target}\n")
        os.utime(folder.last_backup, (now.timestamp(), now.timestamp()))
    except OSError as error:  # a folder on a full disk is a reason to save it elsewhere
        click.echo(f"{folder.last_backup} cannot be written ({error.strerror}); the backup is whole", err=True)
    return manifest


def shown_progress() -> Progress:
    """A line on a terminal that counts; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda done, total: None

    def show(done: int, total: int) -> None:
        click.echo(f"\r  {done >> 20} of up to {total >> 20} MiB ", nl=False, err=True)

    return show
