"""Whatever a guest puts where a file is expected, the agent neither follows it, nor waits for it, nor reads too much."""

import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.kubelet.guest.guest_files import LONGEST_SECRET_BYTES, GuestFile, read_tail

LIMIT = 64


@pytest.fixture
def status(tmp_path: Path) -> Path:
    folder = tmp_path / "status"
    folder.mkdir()
    return folder


@pytest.fixture
def host_file(tmp_path: Path) -> Path:
    file = tmp_path / "host-secret"
    file.write_text("of the host")
    return file


def test_a_plain_file_is_read_with_its_time(status: Path) -> None:
    (status / "report").write_bytes(b"143\n")
    os.utime(status / "report", (1_700_000_000, 1_700_000_000))
    found = read_tail(status, "report", LIMIT)
    assert found is not None
    assert (found.data, found.is_whole, found.size_bytes) == (b"143\n", True, 4)
    assert found.modified_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_a_file_that_is_not_there_is_none_and_no_news(status: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_tail(status, "report", LIMIT) is None
    assert read_tail(status / "absent", "report", LIMIT) is None
    assert not caplog.records


def refused(status: Path, caplog: pytest.LogCaptureFixture, name: str = "report") -> bool:
    found = read_tail(status, name, LIMIT)
    return found is None and "a file of a guest was not read" in caplog.text


def test_a_link_is_not_followed(status: Path, host_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Incident 54: a link at runner.log published a file of the host in the logs."""
    (status / "report").symlink_to(host_file)
    assert refused(status, caplog)


def test_a_link_that_leads_nowhere_is_refused_too(status: Path, caplog: pytest.LogCaptureFixture) -> None:
    (status / "report").symlink_to("nowhere")
    assert refused(status, caplog)


@pytest.mark.timeout(10)
def test_a_pipe_does_not_hold_the_agent(status: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Incident 54, weakness 27: a guest could park the whole node agent with one mkfifo."""
    os.mkfifo(status / "report")
    assert refused(status, caplog)


@pytest.mark.timeout(10)
def test_a_pipe_with_a_silent_writer_does_not_hold_the_agent(status: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(status / "report")
    writer = os.open(status / "report", os.O_RDWR | os.O_NONBLOCK)
    try:
        assert refused(status, caplog)
    finally:
        os.close(writer)


def test_a_folder_is_refused(status: Path, caplog: pytest.LogCaptureFixture) -> None:
    (status / "report").mkdir()
    assert refused(status, caplog)


def test_a_socket_is_refused(status: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(status)  # a socket's path may be about a hundred characters long
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("report")
        assert refused(status, caplog)


def test_a_device_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert refused(Path("/dev"), caplog, "zero")


def test_another_name_of_a_host_file_is_refused(status: Path, host_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.link(host_file, status / "report")
    assert refused(status, caplog)


def test_a_status_folder_that_became_a_link_is_refused(status: Path, host_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    status.rmdir()
    status.symlink_to(host_file.parent)
    assert refused(status, caplog, host_file.name)


@pytest.mark.parametrize("name", ["", ".", "..", "../host-secret", "/etc/passwd", "a/b", "nul\0"])
def test_a_name_that_is_a_path_is_refused(status: Path, host_file: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    assert host_file.exists()
    assert refused(status, caplog, name)


def test_only_the_end_of_a_huge_file_is_read(status: Path) -> None:
    with (status / "report").open("wb") as file:
        file.truncate(1 << 40)  # sparse: it takes no room
        file.seek(0, os.SEEK_END)
        file.write(b"the end")
    found = read_tail(status, "report", LIMIT)
    assert found is not None
    assert len(found.data) == LIMIT
    assert found.data.endswith(b"the end")
    assert not found.is_whole


def test_a_file_replaced_while_it_is_read_gives_the_one_that_was_opened(
    status: Path, host_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (status / "report").write_bytes(b"7")
    look = os.fstat

    def swapped(handle: int) -> os.stat_result:
        found = look(handle)
        (status / "report").unlink()
        (status / "report").symlink_to(host_file)
        return found

    monkeypatch.setattr(os, "fstat", swapped)
    found = read_tail(status, "report", LIMIT)
    assert found is not None
    assert found.data == b"7"


def test_a_file_that_grows_while_it_is_read_stays_within_the_limit(status: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (status / "report").write_bytes(b"x" * 10)
    read = os.pread

    def growing(handle: int, count: int, offset: int) -> bytes:
        with (status / "report").open("ab") as file:
            file.write(b"y" * 1000)
        return read(handle, min(count, 7), offset)

    monkeypatch.setattr(os, "pread", growing)
    found = read_tail(status, "report", LIMIT)
    assert found is not None
    assert len(found.data) == LIMIT


@pytest.mark.parametrize("seconds", [-(2**40), 2**40, 0])
def test_a_time_that_is_none_does_not_stop_the_reading(status: Path, seconds: int) -> None:
    (status / "report").write_bytes(b"0")
    try:
        os.utime(status / "report", (seconds, seconds))
    except OSError:
        pytest.skip("this file system keeps no such time")
    found = read_tail(status, "report", LIMIT)
    assert found is not None
    assert found.data == b"0"


def test_every_handle_is_closed_again(status: Path, host_file: Path) -> None:
    open_handles = Path("/dev/fd")
    (status / "link").symlink_to(host_file)
    (status / "good").touch()
    (status / "folder").mkdir()
    before = len(list(open_handles.iterdir()))
    for name in ("link", "good", "folder", "absent", ".."):
        read_tail(status, name, LIMIT)
    assert len(list(open_handles.iterdir())) == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=100), st.integers(0, 50))
def test_a_tail_is_what_python_would_slice(status: Path, data: bytes, limit: int) -> None:
    (status / "report").write_bytes(data)
    tail = read_tail(status, "report", limit)
    assert tail is not None
    assert tail.data == data[max(0, len(data) - limit) :]
    assert tail.is_whole == (limit >= len(data))


LONG = b"x" * 2 * LONGEST_SECRET_BYTES


@pytest.mark.parametrize(
    ("data", "offset", "whole"),
    [
        (b"one\ntwo\n", 0, b"one\ntwo\n"),
        (b"ne\ntwo\n", 1, b"two\n"),
        (b"0%\r20%\r30%", 1, b"20%\r30%"),
        (b"cret", 1, b""),
        (LONG, 1, LONG[LONGEST_SECRET_BYTES:]),
        (LONG, 0, LONG),
        (b"", 1, b""),
    ],
)
def test_a_tail_begins_with_its_first_whole_line(data: bytes, offset: int, whole: bytes) -> None:
    """I9: of a secret that the limit cut in two, the second half is recognised by nobody."""
    assert GuestFile(data, offset, offset + len(data), None).whole_lines == whole
