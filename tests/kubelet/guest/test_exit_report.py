"""How a guest ended: its own word first, and never a success that nobody saw."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.pods import FAILED, SUCCEEDED
from applecart.kubelet.guest.exit_report import (
    CODE_BYTES,
    CODE_FILE,
    LOG_BYTES,
    LOG_FILE,
    LOG_LINES,
    ExitReport,
    guest_error,
    last_lines,
    parse_code,
    read_report,
    resolve_exit,
)
from applecart.kubelet.guest.guest_files import GuestFile
from applecart.kubelet.guest.share import GuestShare
from applecart.tart.files import Files
from applecart.tart.mac import RunEnd

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STARTED = NOON - timedelta(hours=1)
NOW = NOON + timedelta(seconds=30)
CRASH = "guest has stopped the virtual machine due to error: the guest panicked"
RAN = RunEnd(0, NOON)


def file(data: bytes, *, offset: int = 0) -> GuestFile:
    return GuestFile(data, offset, offset + len(data), NOON)


@pytest.fixture
def status(tmp_path: Path) -> Path:
    share = GuestShare(tmp_path, "ci-runner-1", Files())
    share.stage({}, "mac-7")
    return share.status_folder


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"0", 0),
        (b"0\n", 0),
        (b"143\r\n", 143),
        (b"255 \n", 255),
        (b"256", None),
        (b"999", None),
        (b"1000", None),
        (b"4294967296", None),
        (b"", None),
        (b"\n", None),
        (b" 0", None),
        (b"-1", None),
        (b"+0", None),
        (b"00", None),
        (b"007", None),
        (b"0x0", None),
        (b"0.0", None),
        (b"0\n1", None),
        (b"0\0", None),
        ("\N{ARABIC-INDIC DIGIT ZERO}".encode(), None),
        (b"ok", None),
    ],
)
def test_an_exit_code_is_a_number_from_0_to_255_or_unreported(data: bytes, code: int | None) -> None:
    """Incident 12: a large number wrapped around to 0, and a failure counted as success."""
    assert parse_code(file(data)) == code


@given(st.binary(max_size=20))
def test_whatever_a_guest_writes_is_a_code_or_unreported(data: bytes) -> None:
    code = parse_code(file(data))
    assert code is None or (0 <= code <= 255 and data.split()[0] == str(code).encode())


def test_a_code_that_was_cut_out_of_a_longer_text_is_unreported(status: Path) -> None:
    (status / CODE_FILE).write_bytes(b"1" * 1000 + b"0" + b" " * (CODE_BYTES - 1))
    assert read_report(status).code is None


def test_a_report_is_read_with_its_time_and_log(status: Path) -> None:
    (status / CODE_FILE).write_text("7\n")
    os.utime(status / CODE_FILE, (NOON.timestamp(), NOON.timestamp()))
    (status / LOG_FILE).write_text("one\ntwo\n")
    assert read_report(status) == ExitReport(7, NOON, ("one", "two"))


def test_a_guest_that_left_nothing_reported_nothing(status: Path) -> None:
    assert read_report(status) == ExitReport()
    assert read_report(status / "absent") == ExitReport()


@pytest.mark.timeout(10)
def test_hostile_reports_are_no_reports(status: Path, tmp_path: Path) -> None:
    """Incident 54, weakness 27: six of seven readers of the status folder followed links or waited for pipes."""
    (tmp_path / "zero").write_text("0")
    (status / CODE_FILE).symlink_to(tmp_path / "zero")
    os.mkfifo(status / LOG_FILE)
    assert read_report(status) == ExitReport()


def test_only_the_last_lines_of_a_long_log_are_kept_and_no_half_line(status: Path) -> None:
    lines = [f"line {number} " + "x" * 500 for number in range(1000)]
    (status / LOG_FILE).write_text("\n".join(lines) + "\n")
    found = read_report(status).log
    assert found == tuple(lines[-len(found) :])
    assert len("\n".join(found)) <= LOG_BYTES
    (status / LOG_FILE).write_text("\n".join(str(number) for number in range(1000)))
    assert read_report(status).log == tuple(str(number) for number in range(1000 - LOG_LINES, 1000))


def test_a_log_of_one_endless_line_still_tells_why(status: Path) -> None:
    """A progress bar ends no line, and the reason after it was lost with all of it."""
    for bar in (b"\r42%", b"."):
        (status / LOG_FILE).write_bytes(bar * (2 * LOG_BYTES // len(bar)) + b"xcodebuild: error: no such scheme")
        assert read_report(status).log[-1].endswith("xcodebuild: error: no such scheme")


@given(st.binary(max_size=300), st.booleans())
def test_any_log_has_lines(data: bytes, is_cut: bool) -> None:
    found = last_lines(file(data, offset=9 if is_cut else 0))
    assert len(found) <= LOG_LINES
    assert all("\n" not in line for line in found)


def resolved(end: RunEnd = RAN, code: int | None = None, vm_log: tuple[str, ...] = (), at: datetime | None = None) -> object:
    found = resolve_exit(end, ExitReport(code, at), vm_log, STARTED, NOW)
    return found.phase, found.reason, found.container_reason, found.code, found.signal


@pytest.mark.parametrize(
    ("end", "code", "vm_log", "expected"),
    [
        (RAN, 0, (), (SUCCEEDED, "", "Completed", 0, 0)),
        (RAN, 3, (), (FAILED, "", "Error", 3, 0)),
        (RAN, 143, (), (FAILED, "", "Error", 143, 0)),
        # What the guest said counts, whatever became of its hypervisor.
        (RunEnd(137, NOON), 0, (CRASH,), (SUCCEEDED, "", "Completed", 0, 0)),
        (RunEnd(None, None), 0, (), (SUCCEEDED, "", "Completed", 0, 0)),
        (RunEnd(1, NOON), None, ("no such VM",), (FAILED, "TartRunFailed", "TartRunFailed", 1, 0)),
        (RunEnd(137, NOON), None, (), (FAILED, "TartRunFailed", "TartRunFailed", 137, 9)),
        (RunEnd(143, NOON), None, (), (FAILED, "TartRunFailed", "TartRunFailed", 143, 15)),
        (RunEnd(128, NOON), None, (), (FAILED, "TartRunFailed", "TartRunFailed", 128, 0)),
        (RunEnd(255, NOON), None, (), (FAILED, "TartRunFailed", "TartRunFailed", 255, 0)),
        (RAN, None, ("guest has stopped the virtual machine",), (SUCCEEDED, "TartRunExited", "TartRunExited", 0, 0)),
    ],
)
def test_the_guests_word_comes_before_the_hypervisors(
    end: RunEnd, code: int | None, vm_log: tuple[str, ...], expected: object
) -> None:
    """Incidents 4 and 11: a clean halt counted as a failure, and later no exit was told at all."""
    assert resolved(end, code, vm_log) == expected


def test_a_guest_that_crashed_has_failed_although_tart_exits_with_0() -> None:
    """Weakness 10: `tart run` exits with 0 when the guest panics; only its output says so."""
    found = resolve_exit(RAN, ExitReport(), ("booting", CRASH, ""), STARTED, NOW)
    assert (found.phase, found.reason, found.code) == (FAILED, "TartRunFailed", 255)
    assert "the guest panicked" in found.message


def test_an_end_that_nobody_recorded_is_never_a_success() -> None:
    """Weakness 9: the crash of a VM found after a restart was reported as Succeeded."""
    found = resolve_exit(RunEnd(None, None), ExitReport(), (), STARTED, NOW)
    assert (found.phase, found.reason, found.container_reason, found.code) == (FAILED, "TartRunExited", "TartRunExited", 255)
    assert "unknown" in found.message


def test_a_failed_run_says_what_tart_printed_last() -> None:
    """Incident 43: every VM exited at once and no status said why."""
    log = (*(f"line {number}" for number in range(1000)), "Error: invalid --dir argument", "")
    found = resolve_exit(RunEnd(64, NOON), ExitReport(), log, STARTED, NOW)
    assert found.message.startswith("tart run exited with code 64")
    assert found.message.endswith("Error: invalid --dir argument")
    assert len(found.message) <= 2000


def test_the_password_of_a_screen_is_in_no_status() -> None:
    """I9: nobody holds it as a Secret when a VM ends before it has an address."""
    log = ("VNC server is running at vnc://:four-random-words-here@127.0.0.1:5901", "Error: no memory left")
    found = resolve_exit(RunEnd(1, NOON), ExitReport(), log, STARTED, NOW)
    assert found.message.endswith("vnc://:REDACTED@127.0.0.1:5901\nError: no memory left")


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        (CRASH, True),
        ("virtual machine's network attachment <VZ> has been disconnected with error: gone", True),
        ("guest has stopped the virtual machine", False),
        ("network attachment is ready", False),
        ("", False),
    ],
)
def test_tarts_words_for_a_crash_are_recognised(line: str, is_error: bool) -> None:
    assert bool(guest_error(["booting", line, "bye"])) is is_error


@pytest.mark.parametrize(
    ("ended_at", "reported_at", "expected"),
    [
        (NOON, NOON - timedelta(seconds=5), NOON),
        (None, NOON - timedelta(seconds=5), NOON - timedelta(seconds=5)),
        (None, None, NOW),
        # The guest sets the time of its own file.
        (None, NOW + timedelta(days=1), NOW),
        (None, STARTED - timedelta(days=1), NOW),
    ],
)
def test_a_job_is_billed_until_its_end_and_not_until_somebody_looked(
    ended_at: datetime | None, reported_at: datetime | None, expected: datetime
) -> None:
    """Incident 13: the time of the look was billed, up to half a minute and the whole teardown too much."""
    found = resolve_exit(RunEnd(0 if ended_at else None, ended_at), ExitReport(0, reported_at), (), STARTED, NOW)
    assert found.finished_at == expected


async def test_the_end_is_known_after_the_folders_are_gone(tmp_path: Path) -> None:
    """Incident 13: the report lay in the folder that teardown deletes."""
    share = GuestShare(tmp_path, "ci-runner-1", Files())
    share.stage({}, "mac-7")
    (share.status_folder / CODE_FILE).write_text("3")
    os.utime(share.status_folder / CODE_FILE, (NOON.timestamp(), NOON.timestamp()))
    report = read_report(share.status_folder)
    await share.remove()
    found = resolve_exit(RunEnd(None, None), report, (), STARTED, NOW)
    assert (found.code, found.finished_at) == (3, NOON)


@given(
    st.none() | st.integers(0, 255),
    st.none() | st.integers(0, 255),
    st.lists(st.text(max_size=30), max_size=5),
    st.none() | st.integers(-(10**7), 10**7).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)
def test_success_needs_a_zero_that_somebody_saw(
    run_code: int | None, guest_code: int | None, vm_log: list[str], at: datetime | None
) -> None:
    found = resolve_exit(RunEnd(run_code, None), ExitReport(guest_code, at), tuple(vm_log), STARTED, NOW)
    assert (found.phase == SUCCEEDED) == (found.code == 0)
    assert found.code != 0 or guest_code == 0 or (guest_code is None and run_code == 0)
    assert found.finished_at is not None
    assert found.finished_at <= NOW
