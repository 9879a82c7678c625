"""The files of a server: its owner's alone, and held by one process at a time."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from applecart.embedded.server import data_folder
from applecart.embedded.server.data_folder import DataFolder, existing_data_folder, filesystem_of, make_data_folder
from applecart.errors import BadInput

HOLD = """
import sys
from pathlib import Path
from applecart.embedded.server.data_folder import DataFolder
hold = DataFolder(Path(sys.argv[1])).hold()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_new_folder_is_its_owners_alone_and_one_that_exists_is_narrowed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    for name in ("old", "a/b"):
        folder = make_data_folder(tmp_path / name)
        assert stat.S_IMODE(folder.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.pki.stat().st_mode) == 0o700


def test_looking_for_a_folder_makes_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no data of an API server"):
        existing_data_folder(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
    with pytest.raises(BadInput, match="holds no data of an API server"):
        existing_data_folder(tmp_path)


def test_a_second_hold_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    folder = make_data_folder(tmp_path)
    assert folder.holder() is None
    hold = folder.hold()
    assert folder.holder() == os.getpid()
    with pytest.raises(BadInput, match=rf"is in use by another server \(process {os.getpid()}\)"):
        folder.hold()
    hold.release()
    assert folder.holder() is None
    folder.hold().release()


def test_the_hold_of_a_process_ends_with_it_however_that_ends(tmp_path: Path) -> None:
    folder = make_data_folder(tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        assert folder.holder() == process.pid
        process.kill()
        process.wait()
    assert folder.holder() is None
    folder.hold().release()


def test_a_lock_with_anything_in_it_is_no_obstacle(tmp_path: Path) -> None:
    folder = make_data_folder(tmp_path)
    folder.lock.write_bytes(b"\xff not a number")
    assert folder.holder() is None
    hold = folder.hold()
    folder.lock.write_bytes(b"")
    assert folder.holder() == 0, "held by somebody who has not said who"
    hold.release()


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("/dev/sda / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\n", "nfs4"),
        ("/dev/sda / ext4 rw 0 0\nserver:/x /data/other nfs4 rw 0 0\n", "ext4"),
        ("/dev/sda / ext4 rw\nserver:/x /da nfs4 rw\n", "ext4"),
        ("", ""),
        ("nonsense\n\n", ""),
    ],
)
def test_the_filesystem_is_that_of_the_closest_mount(
    mounts: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(mounts)
    monkeypatch.setattr(data_folder, "MOUNTS", tmp_path / "mounts")
    assert filesystem_of(Path("/data/here")) == kind


def test_a_network_filesystem_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text("server:/x / nfs rw 0 0\n")
    monkeypatch.setattr(data_folder, "MOUNTS", tmp_path / "mounts")
    with pytest.raises(BadInput, match=r"lies on a network filesystem \(nfs\)"):
        make_data_folder(tmp_path / "data")


def test_where_the_system_does_not_tell_no_filesystem_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "MOUNTS", tmp_path / "missing")
    assert isinstance(make_data_folder(tmp_path / "data"), DataFolder)
