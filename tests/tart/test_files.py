import asyncio
import fcntl
import os
import stat
import threading
from pathlib import Path

import pytest

from applecart.tart import files as files_module
from applecart.tart.files import Files
from tests.tart.hostile_folders import as_ordinary_user

FULL_SYNC = 51  # F_FULLFSYNC of macOS
LONGEST_S = 60.0  # so that a loop that is stopped fails the test instead of hanging it


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


def test_a_write_that_finds_no_room_leaves_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a file took the last blocks of a full disk, and nobody ever removed it."""

    def no_room(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        Files().write(tmp_path / "kept.log", b"x" * 5000)
    assert list(tmp_path.iterdir()) == []


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


# What is durable


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was handed to the disk, in order: a file with its content at that moment, or a folder with the names in it."""
    seen: list[str] = []

    def note(handle: int) -> None:
        about = os.fstat(handle)
        is_folder = stat.S_ISDIR(about.st_mode)
        seen.append(",".join(sorted(os.listdir(handle))) if is_folder else f"{about.st_size} bytes")

    monkeypatch.setattr(os, "fsync", note)
    return seen


def test_a_file_is_on_the_disk_before_it_gets_its_name_and_the_name_before_writing_returns(
    tmp_path: Path, flushed: list[str]
) -> None:
    """D10: without the first a power cut leaves the name with half the content, without the second the old content."""
    Files().write(tmp_path / "entry.json", b"12345")
    assert flushed == ["5 bytes", "entry.json"]


def test_a_move_is_on_the_disk_when_it_returns(tmp_path: Path, flushed: list[str]) -> None:
    (tmp_path / "a").write_text("a")
    Files().move(tmp_path / "a", tmp_path / "b")
    assert flushed == ["b"]


@pytest.mark.parametrize("is_supported", [True, False])
def test_on_macos_the_drive_itself_is_flushed_where_the_file_system_can(
    tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch, is_supported: bool
) -> None:
    """There fsync gives the data to the drive, which loses what it only has in its memory when the power goes."""
    asked: list[int] = []

    def drive(handle: int, command: int) -> int:
        asked.append(command)
        if not is_supported:
            raise OSError(45, "Operation not supported")
        return 0

    monkeypatch.setattr(files_module, "_FULL_SYNC", FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", drive)
    Files().write(tmp_path / "entry.json", b"12345")
    assert asked == [FULL_SYNC] * 2
    assert flushed == ([] if is_supported else ["5 bytes", "entry.json"])


# Removing what a guest filled


async def test_the_place_of_a_folder_that_is_removed_aside_is_free_before_anything_else_runs(tmp_path: Path) -> None:
    """A new Pod of the same name stages its files there while the old ones still go."""
    place = _filled(tmp_path / "ci-job.going")  # a Pod may have any name
    removal = Files().remove_aside(place)
    with pytest.raises(StopIteration):
        removal.send(None)  # on virtual time a thread's work is done at once
    assert os.listdir(tmp_path) == []


@pytest.mark.real_time
async def test_a_removal_aside_neither_stops_the_loop_nor_reaches_what_comes_to_its_place(tmp_path: Path) -> None:
    """A guest left a million files, and the heartbeat stood still while they went."""
    may_go, is_at_work = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class SlowFiles(Files):
        def remove(self, path: Path) -> None:
            loop.call_soon_threadsafe(is_at_work.set)
            may_go.wait(LONGEST_S)
            super().remove(path)

    place = _filled(tmp_path / "ci-job")
    removal = asyncio.create_task(SlowFiles().remove_aside(place))
    await is_at_work.wait()
    assert not removal.done()
    assert not place.exists()
    _filled(place)
    may_go.set()
    await removal
    assert (place / "status" / "file").exists()
    assert os.listdir(tmp_path) == ["ci-job"]


async def test_a_removal_aside_that_was_cut_short_is_finished_by_the_next_one(tmp_path: Path) -> None:
    place, going = tmp_path / "ci-job", tmp_path / ".ci-job.going"
    _filled(going / "7")
    await Files().remove_aside(place)
    assert os.listdir(tmp_path) == []
    _filled(going / "7")
    _filled(place)
    await Files().remove_aside(place)
    assert os.listdir(tmp_path) == []
    _filled(going / "7")
    await Files().remove_aside(going)
    assert os.listdir(tmp_path) == []


async def test_a_folder_whose_guest_closed_it_is_removed_aside(tmp_path: Path) -> None:
    """What cannot be written to cannot be moved either."""
    with as_ordinary_user(tmp_path) as folder:
        place = _filled(folder / "ci-job")
        place.chmod(0o500)
        await Files().remove_aside(place)
    assert os.listdir(tmp_path) == []


async def test_removing_aside_is_harmless_twice_and_follows_no_link(tmp_path: Path) -> None:
    kept = _filled(tmp_path / "kept")
    link = tmp_path / "link"
    link.symlink_to(kept)
    file = tmp_path / "file"
    file.write_text("x")
    for path in (link, link, file, tmp_path / "never"):
        await Files().remove_aside(path)
    assert os.listdir(tmp_path) == ["kept"]
    assert (kept / "status" / "file").exists()


def _filled(folder: Path) -> Path:
    (folder / "status").mkdir(parents=True)
    (folder / "status" / "file").write_text("x")
    return folder
