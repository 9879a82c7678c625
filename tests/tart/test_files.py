import shutil
import stat
from pathlib import Path

import pytest

from applecart.tart.files import Files


def test_a_written_file_is_its_owners_alone_whatever_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o644)
    Files().write(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_crash_while_writing_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "entry.json"
    files = Files()
    files.write(path, b"old")

    def power_cut(self: Path, target: Path) -> Path:
        raise OSError("power cut")

    with monkeypatch.context() as during:
        during.setattr(Path, "replace", power_cut)
        with pytest.raises(OSError, match="power cut"):
            files.write(path, b"new")
    assert path.read_bytes() == b"old"
    files.write(path, b"newer")  # what the crash left behind is in nobody's way
    assert path.read_bytes() == b"newer"
    assert [each.name for each in tmp_path.iterdir()] == ["entry.json"]


def test_a_folder_gets_its_mode_whatever_the_umask_is(tmp_path: Path) -> None:
    Files().make_folder(tmp_path / "a" / "status", 0o777)
    assert stat.S_IMODE((tmp_path / "a" / "status").stat().st_mode) == 0o777


def test_removing_is_harmless_twice_and_does_not_follow_links(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "out").symlink_to(kept)
    link = tmp_path / "link"
    link.symlink_to(kept)
    files = Files()
    for path in (folder, folder, link, link, tmp_path / "never"):
        files.remove(path)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()


def test_moving_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    Files().move(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "a"
    assert not (tmp_path / "a").exists()


def test_a_folder_that_a_guest_closed_is_removed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I5: such a folder would hold its Pod for ever. Root may remove anything, so the refusal is made here."""
    closed = tmp_path / "status" / "closed"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    closed.chmod(0)
    remove = shutil.rmtree

    def refuse_what_is_closed(path: Path) -> None:
        if stat.S_IMODE(closed.stat().st_mode) == 0:
            raise PermissionError(13, "Permission denied", str(path))
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", refuse_what_is_closed)
    Files().remove(tmp_path / "status")
    assert list(tmp_path.iterdir()) == []
