"""`applecart api backup`: one file with everything in it, whole or not there at all."""

import os
import stat
import tarfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from applecart.cli.api.archive import Manifest, unpack
from applecart.cli.api.backup import back_up
from applecart.cli.api.restore import restore
from applecart.embedded.server.data_folder import KEYS, DataFolder
from applecart.errors import BadInput, ControlPlaneFault
from tests.cli.api.folders import SECRET_VALUE, make_folder, read
from tests.cli.commands import done, refused, running_api

pytestmark = pytest.mark.real_time

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECRET = "/api/v1/namespaces/ci/secrets/token"


@pytest.fixture
async def folder(tmp_path: Path) -> DataFolder:
    return await make_folder(tmp_path / "data")


def backed_up(folder: DataFolder, target: Path, *, with_keys: bool = True) -> Manifest:
    return back_up(folder, target, NOW, with_keys=with_keys, progress=lambda done, total: None)


def test_the_file_has_the_database_and_the_keys_and_is_its_owners_alone(folder: DataFolder, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    manifest = backed_up(folder, target)
    with tarfile.open(target) as tar:
        assert set(tar.getnames()) == {"manifest.json", "store.db", *KEYS}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert manifest.revision > 1000
    assert sorted(tmp_path.iterdir()) == [target, folder.folder], "nothing is left aside"
    assert folder.last_backup.stat().st_mtime == NOW.timestamp()


async def test_without_keys_no_secret_is_in_it(folder: DataFolder, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    backed_up(folder, target, with_keys=False)
    with tarfile.open(target) as tar:
        assert set(tar.getnames()) == {"manifest.json", "store.db"}
    content = target.read_bytes()
    assert b"green" in content, "a ConfigMap is readable"
    assert SECRET_VALUE.encode() not in content
    assert folder.secrets_key.read_bytes() not in content


async def test_a_backup_replaces_the_one_before(folder: DataFolder, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    target.write_text("older")
    backed_up(folder, target)
    assert tarfile.is_tarfile(target)


def test_a_copy_that_fails_leaves_the_target_as_it_was(folder: DataFolder, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    target.write_text("older")
    content = bytearray(folder.database.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    folder.database.write_bytes(content)
    with pytest.raises((BadInput, ControlPlaneFault)):
        backed_up(folder, target)
    assert target.read_text() == "older"
    assert sorted(tmp_path.iterdir()) == [target, folder.folder]


async def test_a_missing_key_is_told_before_anything_is_written(folder: DataFolder, tmp_path: Path) -> None:
    folder.secrets_key.unlink()
    with pytest.raises(BadInput, match=r"has no secrets\.key; put it back, or copy --without-keys"):
        backed_up(folder, tmp_path / "backup.tar")
    assert not (tmp_path / "backup.tar").exists()


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("missing/backup.tar", "missing/backup.tar lies in no folder; make it first, or name another file"),
        ("data", "data is a folder"),
        ("data/store.db", "data/store.db lies in the data folder itself"),  # it replaced the database of a running server
        ("data/pki/backup.tar", "data/pki/backup.tar lies in the data folder itself"),
        ("pipe", "pipe is no file that can be replaced; name a file"),
        ("link", "pipe is no file that can be replaced; name a file"),
    ],
)
async def test_a_target_that_cannot_be_written_is_a_sentence(
    folder: DataFolder, target: str, sentence: str, tmp_path: Path
) -> None:
    """`--to /dev/stdout` replaced the device, when root did it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert sentence in refused("api", "backup", "--data", str(folder.folder), "--to", str(tmp_path / target))


def test_a_backup_is_whole_although_its_folder_cannot_note_it(
    folder: DataFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A data folder on a full disk was saved to another disk, and the command said that there is no backup."""
    folder.last_backup.mkdir()
    backed_up(folder, tmp_path / "backup.tar")
    assert tarfile.is_tarfile(tmp_path / "backup.tar")
    assert "last-backup cannot be written (Is a directory); the backup is whole" in capsys.readouterr().err


async def test_progress_is_told_in_bytes(folder: DataFolder, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    from applecart.cli.api import database

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "PROGRESS_STEPS", 100)
        back_up(folder, tmp_path / "b.tar", NOW, with_keys=True, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(done >= 0 and total == folder.database.stat().st_size for done, total in seen)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Path]:
    """A running server that somebody writes to all the time."""
    data = tmp_path / "busy"
    with running_api(data, "--no-controllers"):
        enough = threading.Event()
        kubeconfig = str(data / "admin.kubeconfig")

        def write() -> None:
            number = 0
            while not enough.is_set():
                number += 1
                names = [f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: n{number}-{one}\n" for one in range(20)]
                done("api", "import", "--kubeconfig", kubeconfig, stdin="---\n".join(names))

        thread = threading.Thread(target=write)
        thread.start()
        yield data
        enough.set()
        thread.join()


async def test_a_copy_taken_while_others_write_is_whole_and_starts(writer: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    taken = done("api", "backup", "--data", str(writer), "--to", str(target))
    assert taken.returncode == 0, taken.stderr
    restore(tmp_path / "copy", target, NOW, force=False)
    assert await read(DataFolder(tmp_path / "copy"), "/api/v1/namespaces/default")


async def test_what_was_written_is_what_is_unpacked(folder: DataFolder, tmp_path: Path) -> None:
    backed_up(folder, tmp_path / "backup.tar")
    (tmp_path / "out").mkdir()
    unpack(tmp_path / "backup.tar", tmp_path / "out")
    for name in KEYS:
        assert (tmp_path / "out" / name).read_bytes() == (folder.folder / name).read_bytes()
