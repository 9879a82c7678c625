"""Folders a guest is given, and what it leaves in them, kindly or not."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from applecart.sim.tart.guest_shares import HUGE_BYTES, Share, StatusShare, environment, parse_share
from applecart.sim.tart.refusals import Refused

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_share_is_a_name_a_path_and_options(tmp_path: Path) -> None:
    for text, expected in [
        (f"env:{tmp_path}:ro", Share("env", tmp_path, True)),
        (f"status:{tmp_path}", Share("status", tmp_path, False)),
        (f"{tmp_path}", Share("", tmp_path, False)),
        (f"x:{tmp_path}:ro,tag=build", Share("x", tmp_path, True)),
    ]:
        assert parse_share(text) == expected


@pytest.mark.parametrize("suffix", [":rw", ":caching=cached", "/missing", "\0"])
def test_an_option_that_does_not_exist_becomes_a_path_that_does_not(tmp_path: Path, suffix: str) -> None:
    """Incident 43: `:rw` on a share made every VM exit at once."""
    with pytest.raises(Refused) as refused:
        parse_share(f"env:{tmp_path}{suffix}")
    assert refused.value.code == 1


def test_an_environment_is_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "tuist.env").write_bytes(b"A=1\nB=x=y\nnothing\nC=two\\nlines\nD=\xff\n")
    share = {"env": Share("env", tmp_path, True)}
    assert environment(share) == {"A": "1", "B": "x=y", "C": "two\nlines", "D": "\N{REPLACEMENT CHARACTER}"}
    assert environment({}) == environment({"env": Share("env", tmp_path / "gone", True)}) == {}


def test_a_kind_guest_leaves_plain_files_with_the_time_of_its_clock(tmp_path: Path) -> None:
    status = StatusShare({"status": Share("status", tmp_path, False)}, None)
    status.log(["one"], AT)
    status.log(["two"], AT)
    status.report(143, AT)
    assert (tmp_path / "runner.log").read_text() == "one\ntwo\n"
    assert (tmp_path / "runner-rc").read_text() == "143\n"
    assert (tmp_path / "runner-rc").stat().st_mtime == AT.timestamp()


def test_a_guest_without_a_code_reports_none(tmp_path: Path) -> None:
    StatusShare({"status": Share("status", tmp_path, False)}, None).report(None, AT)
    assert list(tmp_path.iterdir()) == []


def test_a_hostile_guest_leaves_traps(tmp_path: Path) -> None:
    """Incident 54: a link would show any file of the host, a pipe would park whoever reads it."""
    share = {"status": Share("status", tmp_path, False)}
    rc, log = tmp_path / "runner-rc", tmp_path / "runner.log"
    StatusShare(share, "symlink").report(0, AT)
    assert rc.is_symlink()
    assert log.is_symlink()
    StatusShare(share, "fifo").report(0, AT)
    assert stat.S_ISFIFO(rc.lstat().st_mode)
    StatusShare(share, "folder").report(0, AT)
    assert log.is_dir()
    StatusShare(share, "huge").report(0, AT)
    assert rc.stat().st_size == HUGE_BYTES


def test_a_share_that_is_gone_or_read_only_or_not_there_is_no_matter(tmp_path: Path) -> None:
    for shares in ({}, {"status": Share("status", tmp_path, True)}, {"status": Share("status", tmp_path / "gone", False)}):
        status = StatusShare(shares, None)
        status.log(["one"], AT)
        status.report(0, AT)
    assert list(tmp_path.iterdir()) == []
