"""A guest's folders are whole, private, and hold nothing of an earlier guest."""

import os
import stat
from pathlib import Path

import pytest

from applecart.errors import BadInput
from applecart.kubelet.guest.env_file import read_env_file
from applecart.kubelet.guest.exit_report import CODE_FILE, read_report
from applecart.kubelet.guest.share import GuestShare
from applecart.secrets import Secret, redact
from applecart.tart.files import Files

VM = "ci-runner-1"


class Killed(BaseException):
    """The agent died here."""


class DyingFiles(Files):
    """Kills the agent before or after its nth change."""

    def __init__(self, at: int) -> None:
        self._left = at

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        self._count()
        super().write(path, data, mode)
        self._count()

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        self._count()
        super().make_folder(path, mode)
        self._count()

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)
        self._count()

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed


@pytest.fixture
def userdata(tmp_path: Path) -> Path:
    return tmp_path / "userdata"


def share(userdata: Path, files: Files | None = None) -> GuestShare:
    return GuestShare(userdata, VM, files or Files())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_guest_gets_its_environment_its_node_and_a_place_to_report(userdata: Path) -> None:
    made = share(userdata)
    made.stage({"TOKEN": Secret("hunter2-hunter2"), "URL": "https://dispatch"}, "mac-7")
    made.write_token(Secret("eyJ-a-token"))
    folder = userdata / VM
    assert read_env_file((folder / "tuist.env").read_bytes()) == {"TOKEN": "hunter2-hunter2", "URL": "https://dispatch"}
    assert (folder / "sa_token").read_text() == "eyJ-a-token"
    assert (folder / "status" / "node-name").read_text() == "mac-7"


def test_only_the_status_folder_is_open_to_the_guests_user(userdata: Path) -> None:
    previous = os.umask(0o077)
    try:
        made = share(userdata)
        made.stage({}, "mac-7")
        made.write_token(Secret("eyJ-a-token"))
    finally:
        os.umask(previous)
    folder = userdata / VM
    modes = {path: mode(folder / path) for path in ("", "tuist.env", "sa_token", "status", "status/node-name")}
    assert modes == {"": 0o700, "tuist.env": 0o600, "sa_token": 0o600, "status": 0o777, "status/node-name": 0o644}


def test_both_folders_are_always_shared_and_only_one_can_be_written(userdata: Path) -> None:
    """Weakness 10: without cache volumes there was no status share, so no guest could report its exit code.
    Incident 43: `:rw` on a share made every VM exit at once."""
    assert [each.word for each in share(userdata).shares()] == [f"env:{userdata}/{VM}:ro", f"status:{userdata}/{VM}/status"]


def test_the_report_of_an_earlier_guest_of_the_same_name_is_gone(userdata: Path) -> None:
    first = share(userdata)
    first.stage({"A": "1"}, "mac-7")
    first.write_token(Secret("eyJ-old-token"))
    (first.status_folder / CODE_FILE).write_text("0")
    second = share(userdata)
    second.stage({"B": "2"}, "mac-7")
    assert read_report(second.status_folder).code is None
    assert not (second.folder / "sa_token").exists()
    assert read_env_file((second.folder / "tuist.env").read_bytes()) == {"B": "2"}


@pytest.mark.parametrize("at", range(12))
def test_an_agent_killed_anywhere_while_staging_stages_anew(userdata: Path, at: int) -> None:
    """Weakness 35: the file was written in place, so a crash left half of one."""
    share(userdata).stage({"OLD": "x"}, "mac-7")
    values = {"A": "1" * 5000, "B": "2"}
    try:
        share(userdata, DyingFiles(at)).stage(values, "mac-8")
    except Killed:
        found = userdata / VM / "tuist.env"
        assert not found.exists() or read_env_file(found.read_bytes()) in ({"OLD": "x"}, values)
        share(userdata).stage(values, "mac-8")
    assert read_env_file((userdata / VM / "tuist.env").read_bytes()) == values
    assert (userdata / VM / "status" / "node-name").read_text() == "mac-8"


def test_a_bad_value_leaves_what_was_there(userdata: Path) -> None:
    share(userdata).stage({"A": "1"}, "mac-7")
    with pytest.raises(BadInput):
        share(userdata).stage({"A": "\0"}, "mac-7")
    assert (userdata / VM / "tuist.env").read_bytes() == b"A=1\n"


@pytest.mark.usefixtures("forgotten_secrets")
async def test_what_a_guest_was_given_is_masked_for_as_long_as_it_may_print_it(userdata: Path) -> None:
    """I9: what was staged is long forgotten when the guest prints it, and another agent never knew it."""
    share(userdata).stage({"PASSWORD": Secret("hunter2-hunter2"), "URL": "https://dispatch"}, "mac-7")
    share(userdata).write_token(Secret("a-first-token"))
    said = "hunter2-hunter2 https://dispatch a-first-token a-second-token"
    assert redact(said) == said
    watched = share(userdata)
    with watched.masked(["PASSWORD", "ABSENT"]):
        assert redact(said) == "*** https://dispatch *** a-second-token"
        watched.write_token(Secret("a-second-token"))
        assert redact(said) == "*** https://dispatch *** ***"
    del watched
    assert redact(said) == said


@pytest.mark.usefixtures("forgotten_secrets")
def test_a_folder_that_is_not_there_has_no_secrets(userdata: Path) -> None:
    with share(userdata).masked(["PASSWORD"]):
        assert redact("as it is") == "as it is"


def test_telling_a_guest_something_never_writes_through_its_links(userdata: Path, tmp_path: Path) -> None:
    """Weakness 28 in another place: a guest's link must not make the agent write elsewhere."""
    made = share(userdata)
    made.stage({}, "mac-7")
    outside = tmp_path / "outside"
    outside.write_text("precious")
    for name in ("cache-ready", ".cache-ready.new"):
        (made.status_folder / name).symlink_to(outside)
    made.tell("cache-ready", b"1")
    assert outside.read_text() == "precious"
    assert not (made.status_folder / "cache-ready").is_symlink()
    assert (made.status_folder / "cache-ready").read_bytes() == b"1"


async def test_removing_follows_no_link_of_the_guest_and_is_harmless_to_repeat(userdata: Path, tmp_path: Path) -> None:
    made = share(userdata)
    made.stage({}, "mac-7")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    (made.status_folder / "link").symlink_to(outside)
    await made.remove()
    await made.remove()
    assert (outside / "precious").exists()
    assert not made.folder.exists()


@pytest.mark.parametrize("vm", ["", ".", "..", "a/b", "/etc"])
def test_a_name_that_leaves_the_folder_is_refused(userdata: Path, vm: str) -> None:
    with pytest.raises(ValueError, match="not the name of a VM"):
        GuestShare(userdata, vm, Files())


@pytest.mark.parametrize("path", ["/var/lib/a:b", "/var/a,b"])
def test_a_folder_that_tart_cannot_be_told_is_refused_with_the_flag(path: str) -> None:
    with pytest.raises(BadInput, match="--userdata-dir"):
        GuestShare(Path(path), VM, Files())
