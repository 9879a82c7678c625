"""Files that a guest may have made into anything."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.log_files import MOST_BYTES, NEVER, LogFile, instant

NAME = "runner.log"


def link(folder: Path) -> None:
    (folder.parent / "secret").write_text("of the host")
    (folder / NAME).symlink_to(folder.parent / "secret")


def second_name(folder: Path) -> None:
    (folder.parent / "secret").write_text("of the host")
    os.link(folder.parent / "secret", folder / NAME)


def pipe(folder: Path) -> None:
    os.mkfifo(folder / NAME)


def folder_instead(folder: Path) -> None:
    (folder / NAME).mkdir()


def linked_share(folder: Path) -> None:
    real = folder.parent / "host"
    real.mkdir()
    (real / NAME).write_text("of the host")
    folder.rmdir()
    folder.symlink_to(real)


@pytest.mark.parametrize("make", [link, second_name, pipe, folder_instead, linked_share, lambda _: None])
def test_only_a_plain_file_is_read_and_nothing_waits(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Incident 54: a guest put a link where its log was expected, and a file of the host was published.

    A pipe in its place held the whole agent.
    """
    share = tmp_path / "share"
    share.mkdir()
    make(share)
    log = LogFile((share, NAME))
    assert not log.refresh()
    assert (log.read(0, 10), log.size, log.changed_at) == (b"", 0, NEVER)


def test_a_log_grows_and_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"one\n")
    log = LogFile((tmp_path, NAME))
    assert log.refresh()
    log.position = log.size
    path.write_bytes(b"one\ntwo\n")
    assert log.refresh()
    assert log.read(log.position, 100) == b"two\n"
    log.close()


@pytest.mark.parametrize("is_new_file", [True, False])
def test_a_log_that_was_replaced_or_cut_is_read_from_its_beginning(tmp_path: Path, is_new_file: bool) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"a long first line\n")
    log = LogFile((tmp_path, NAME))
    log.refresh()
    log.position = log.size
    if is_new_file:
        fresh = tmp_path / "fresh"
        fresh.write_bytes(b"a line as long as before\n")
        fresh.replace(path)
    else:
        path.write_bytes(b"new\n")
    log.refresh()
    assert log.position == 0
    log.close()


def test_a_log_that_was_removed_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"last words\n")
    log = LogFile((tmp_path, NAME))
    log.refresh()
    path.unlink()
    assert log.refresh()
    assert log.read(0, 100) == b"last words\n"
    log.close()


def test_of_a_terabyte_of_nothing_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.touch()
    os.truncate(path, 1 << 40)
    log = LogFile((tmp_path, NAME))
    log.refresh()
    assert log.size - log.begin == MOST_BYTES
    log.close()


@given(st.floats() | st.integers())
def test_a_guest_may_give_its_files_any_time(seconds: float) -> None:
    assert instant(seconds) >= NEVER


def test_a_kept_copy_stands_in_only_until_the_log_itself_was_read(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    (tmp_path / "kept").write_bytes(b"kept\n")
    copy = LogFile((share, NAME), (tmp_path, "kept"))
    assert copy.refresh()
    assert copy.read(0, 100) == b"kept\n"
    copy.close()
    (share / NAME).write_bytes(b"live\n")
    live = LogFile((share, NAME), (tmp_path, "kept"))
    live.refresh()
    (share / NAME).unlink()
    live.refresh()
    assert live.read(0, 100) == b"live\n"
    live.close()
