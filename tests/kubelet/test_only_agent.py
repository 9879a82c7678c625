"""The lock of a state folder, with real processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from applecart.errors import BadInput
from applecart.kubelet.only_agent import LOCK, only_agent

pytestmark = pytest.mark.real_time

HOLDS = "import sys; from pathlib import Path; from applecart.kubelet.only_agent import only_agent as it"
HOLDS += "\nwith it(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


def test_it_is_free_again_when_the_agent_ends(tmp_path: Path) -> None:
    for _ in range(2):
        with only_agent(tmp_path), pytest.raises(BadInput, match="in use by another tart-kubelet"), only_agent(tmp_path):
            raise AssertionError("two hold it")


def test_it_is_free_again_when_the_agent_is_killed_and_names_who_holds_it_now(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(BadInput, match=rf"\(process {first.pid}\)"), only_agent(tmp_path):
            raise AssertionError("two hold it")
        first.send_signal(signal.SIGKILL)
        first.wait()
    with only_agent(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"


def test_programs_that_the_agent_starts_do_not_hold_it(tmp_path: Path) -> None:
    """VMs outlive their agent, and the next one must not wait for them."""
    with only_agent(tmp_path):
        child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with only_agent(tmp_path):
            pass
    finally:
        child.communicate()


@pytest.mark.parametrize("before", ["", "4711\n4712\n4713\n", "\xff\xfe"])
def test_whatever_the_file_holds_is_replaced(tmp_path: Path, before: str) -> None:
    (tmp_path / LOCK).write_bytes(before.encode("latin-1"))
    with only_agent(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"


def test_an_agent_starts_on_a_full_disk(tmp_path: Path) -> None:
    """It must start to tear down the VMs that filled it; it ended instead, again and again, over the number in its lock."""
    starts = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n{HOLDS}"  # no byte can be written
    argv = [sys.executable, "-c", starts, str(tmp_path)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stderr


def test_a_lock_that_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    """As one that an agent of another user left."""
    (tmp_path / LOCK).mkdir()
    with (
        pytest.raises(BadInput, match=r"its lock .*/lock cannot be opened \(Is a directory\); give it"),
        only_agent(tmp_path),
    ):
        raise AssertionError("it holds nothing")
