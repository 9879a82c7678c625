"""Files that only their owner may read."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from applecart.embedded.trust.private_file import make_private_folder, write_private


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def generous_umask() -> Iterator[None]:
    """A shell that would let everybody read and write."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous_umask")
def test_a_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"content")
    assert mode_of(tmp_path / "key") == 0o600
    assert (tmp_path / "key").read_bytes() == b"content"


def test_a_file_that_others_could_read_is_replaced_by_one_they_cannot(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"old")
    (tmp_path / "key").chmod(0o644)
    write_private(tmp_path / "key", b"new")
    assert mode_of(tmp_path / "key") == 0o600
    assert (tmp_path / "key").read_bytes() == b"new"


def test_a_reader_with_the_old_file_open_sees_the_old_content_whole(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"old content")
    with (tmp_path / "key").open("rb") as reader:
        write_private(tmp_path / "key", b"new")
        assert reader.read() == b"old content"


def test_what_a_crashed_writer_left_is_no_obstacle_and_nothing_else_stays(tmp_path: Path) -> None:
    (tmp_path / f".key.{os.getpid()}").write_bytes(b"half")
    write_private(tmp_path / "key", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_folder_is_made_private_or_narrowed(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    assert mode_of(tmp_path / "a" / "b") == 0o700
    (tmp_path / "a").chmod(0o755)
    make_private_folder(tmp_path / "a")
    assert mode_of(tmp_path / "a") == 0o700
