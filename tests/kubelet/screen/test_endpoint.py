import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from applecart.kubelet.garbage.log_rotation import rotate
from applecart.kubelet.screen.endpoint import ScreenLog, parse_line
from applecart.kubelet.serve.log_lines import cleaned
from applecart.tart.files import Files
from tests.kubelet.screen.stage import PASSWORD, printed


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "ci-job.log"


def found(log: Path) -> tuple[int, str] | None:
    screen = ScreenLog(log)
    try:
        endpoint = screen.endpoint()
        return None if endpoint is None else (endpoint.port, endpoint.password.reveal())
    finally:
        screen.close()


@pytest.mark.parametrize(
    ("line", "port"),
    [
        (b"VNC server is running at vnc://:a-b-c-d@127.0.0.1:5901", 5901),
        (b"VNC server is running at vnc://:a-b-c-d@127.0.0.1:5901\r", 5901),
        (b"VNC server is running at vnc://:a-b-c-d@127.0.0.1:65535/", 65535),
        (b"VNC server is running at vnc://someone:a@b@127.0.0.1:1", 1),
        (b"VNC server is running at vnc://127.0.0.1:5901", None),
        (b"VNC server is running at vnc://:@127.0.0.1:5901", None),
        (b"VNC server is running at vnc://someone@127.0.0.1:5901", None),
        (b"VNC server is running at vnc://:a-b-c-d@127.0.0.1:0", None),
        (b"VNC server is running at vnc://:a-b-c-d@127.0.0.1:65536", None),
        (b"VNC server is running at vnc://:a-b-c-d@127.0.0.1", None),
        (b"VNC server is running at vnc://:a-b-c-d@10.0.0.1:5901", None),
        (b"VNC server is running at vnc://:a b@127.0.0.1:5901", None),
        (b"Opening vnc://:a-b-c-d@127.0.0.1:5901...", None),
        (b"he said: VNC server is running at vnc://:a-b-c-d@127.0.0.1:5901", None),
        (b"", None),
    ],
)
def test_only_a_screen_of_this_mac_with_a_password_counts(line: bytes, port: int | None) -> None:
    endpoint = parse_line(line)
    assert (endpoint and endpoint.port) == port


@given(line=st.binary(max_size=200))
@example(line=b"VNC server is running at vnc://:\xff\xfe@127.0.0.1:5901")
def test_no_line_breaks_the_reading(line: bytes) -> None:
    parse_line(line)
    parse_line(b"VNC server is running at vnc://:" + line)


def test_no_log_and_a_silent_one_have_no_screen(log: Path) -> None:
    assert found(log) is None
    log.write_text("starting\n")
    assert found(log) is None


def test_the_screen_is_read_again_by_an_agent_that_did_not_start_the_vm(log: Path) -> None:
    """Weakness 31: what was known of a screen was deleted at every look, so none could be seen after a restart."""
    log.write_text("starting\n" + printed(5901) + "guest is up\n")
    assert found(log) == found(log) == (5901, PASSWORD)


def test_the_last_run_counts(log: Path) -> None:
    log.write_text(printed(5901) + "it stopped\n" + printed(5902, "other-words-of-run-two"))
    assert found(log) == (5902, "other-words-of-run-two")


def test_a_line_that_is_still_being_written_waits_for_its_end(log: Path) -> None:
    screen = ScreenLog(log)
    log.write_text(printed(59012)[:-2])
    assert screen.endpoint() is None
    with log.open("a") as file:
        file.write("2\n")
    endpoint = screen.endpoint()
    screen.close()
    assert endpoint is not None
    assert endpoint.port == 59012


def test_a_line_is_found_wherever_the_blocks_of_a_long_log_are_cut(log: Path) -> None:
    log.write_text("x" * (64 * 1024 - 30) + "\n" + printed(5901) + "y" * 300_000 + "\n")
    assert found(log) == (5901, PASSWORD)


def test_a_log_that_is_cut_does_not_take_the_screen_with_it(log: Path) -> None:
    log.write_text(printed(5901))
    screen = ScreenLog(log)
    before = screen.endpoint()
    rotate(log, log.with_suffix(".log.1"), Files())
    with log.open("a") as file:
        file.write("noise\n")
    assert screen.endpoint() == before is not None
    with log.open("a") as file:
        file.write(printed(5902))
    after = screen.endpoint()
    screen.close()
    assert after is not None
    assert after.port == 5902


def test_a_link_in_place_of_a_log_is_not_followed(log: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(printed())
    log.symlink_to(tmp_path / "elsewhere")
    assert found(log) is None
    log.unlink()
    os.mkfifo(log)
    assert found(log) is None


def test_the_password_shows_nowhere(log: Path) -> None:
    """Weakness 30: the password stood in a file in plain text."""
    log.write_text(printed(5901))
    screen = ScreenLog(log)
    endpoint = screen.endpoint()
    screen.close()
    assert PASSWORD not in repr(endpoint)
    assert cleaned(printed(5901).encode()) == b"VNC server is running at vnc://:REDACTED@127.0.0.1:5901\n"
