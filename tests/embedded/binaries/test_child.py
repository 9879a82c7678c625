"""A child process is started, told of, and ended for certain."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from applecart.embedded.binaries.child import Child
from applecart.errors import BadInput
from tests.embedded.binaries.stand_ins import DEAF, NEVER_READY, is_alive, named_pipe, put_program

pytestmark = pytest.mark.real_time

PATIENCE_S = 60.0  # for what happens at once on an idle machine
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pidfd and tells a child of its parent's death")


def ends(pidfd: int) -> bool:
    """Whether a process that need not be our child ends; closes the descriptor."""
    ended, _, _ = select.select([pidfd], [], [], PATIENCE_S)
    os.close(pidfd)
    return bool(ended)


async def test_what_it_says_is_in_its_log_and_its_exit_code_is_known(tmp_path: Path) -> None:
    child = Child.start(put_program(tmp_path, "tell", "echo out; echo err >&2; exit 7"), [], tmp_path / "log")
    assert await child.ended() == 7
    assert (tmp_path / "log").read_text() == "out\nerr\n"
    assert child.tail() == "out | err"


async def test_it_gets_its_arguments_as_they_are(tmp_path: Path) -> None:
    program = put_program(tmp_path, "tell", 'for a in "$@"; do echo "<$a>"; done')
    child = Child.start(program, ["a b", "", "$HOME", "--x='y'"], tmp_path / "log")
    await child.ended()
    assert (tmp_path / "log").read_text().splitlines() == ["<a b>", "<>", "<$HOME>", "<--x='y'>"]


async def test_nothing_of_the_callers_environment_can_configure_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """etcd takes every ETCD_ variable as a flag, and a proxy would come between two processes of one machine."""
    monkeypatch.setenv("ETCD_DATA_DIR", "/elsewhere")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    child = Child.start(put_program(tmp_path, "tell", "env"), [], tmp_path / "log", {"POD_NAME": "ours"})
    await child.ended()
    said = (tmp_path / "log").read_text()
    assert "POD_NAME=ours" in said
    assert "ETCD_" not in said
    assert "PROXY" not in said


async def test_its_input_is_empty(tmp_path: Path) -> None:
    child = Child.start(put_program(tmp_path, "read", "wc -c"), [], tmp_path / "log")
    await child.ended()
    assert (tmp_path / "log").read_text().strip() == "0"


async def test_a_log_goes_on_where_the_last_run_ended(tmp_path: Path) -> None:
    for word in ("first", "second"):
        await Child.start(put_program(tmp_path, "tell", f"echo {word}"), [], tmp_path / "log").ended()
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


@pytest.mark.parametrize("what", ["missing", "folder", "not executable"])
def test_a_program_that_cannot_be_run_is_named_before_anything_starts(tmp_path: Path, what: str) -> None:
    program = tmp_path / "etcd"
    if what == "folder":
        program.mkdir()
    elif what == "not executable":
        program.write_text("#!/bin/sh\n")
    with pytest.raises(BadInput, match=r"/etcd is missing or not executable; it is needed to start etcd"):
        Child.start(program, [], tmp_path / "log")
    assert not (tmp_path / "log").exists()


async def test_a_program_of_another_machine_says_so_in_its_log(tmp_path: Path) -> None:
    program = put_program(tmp_path, "etcd", "")
    program.write_bytes(b"\x7fELF of another machine")
    child = Child.start(program, [], tmp_path / "log")
    assert await child.ended() == 1
    assert child.tail().endswith("/etcd cannot be run: Exec format error")


async def test_the_tail_is_short_whatever_the_log_holds(tmp_path: Path) -> None:
    child = Child.start(put_program(tmp_path, "true", "exit 0"), [], tmp_path / "log")
    await child.ended()
    assert child.tail() == "(nothing)"
    (tmp_path / "log").write_bytes(b"\xff\xfe" * 50_000 + b"\n" + b"x" * 5_000 + b"\n\nthe end\n\n")
    assert child.tail().endswith(" | the end")
    assert len(child.tail()) < 1_500


async def test_stopping_asks_first(tmp_path: Path) -> None:
    pipe = named_pipe(tmp_path / "pipe")
    polite = f"trap 'echo bye; exit 0' TERM; echo up > {pipe}; while :; do sleep 0.01; done"
    child = Child.start(put_program(tmp_path, "polite", polite), [], tmp_path / "log")
    await asyncio.to_thread(pipe.read_text)
    await child.stop(PATIENCE_S)
    assert child.exit_code == 0
    assert child.tail().endswith("bye")  # the shell may first tell of its own child's end


@ON_LINUX
async def test_one_that_does_not_listen_is_killed_with_all_its_group(tmp_path: Path) -> None:
    pipe = named_pipe(tmp_path / "pipe")
    child = Child.start(put_program(tmp_path, "deaf", DEAF.format(pipe=pipe)), [], tmp_path / "log")
    second = os.pidfd_open(int(await asyncio.to_thread(pipe.read_text)))
    await child.stop(grace_s=0.05)
    assert child.exit_code == -signal.SIGKILL
    assert ends(second)


async def test_a_cancelled_stop_leaves_nothing_behind(tmp_path: Path) -> None:
    pipe = named_pipe(tmp_path / "pipe")
    child = Child.start(put_program(tmp_path, "deaf", DEAF.format(pipe=pipe)), [], tmp_path / "log")
    await asyncio.to_thread(pipe.read_text)
    stopping = asyncio.ensure_future(child.stop(PATIENCE_S))
    await asyncio.sleep(0)  # it has asked and waits now
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert child.exit_code == -signal.SIGKILL


async def test_stopping_twice_or_after_the_end_signals_nobody(tmp_path: Path) -> None:
    child = Child.start(put_program(tmp_path, "true", "exit 3"), [], tmp_path / "log")
    await child.ended()
    await child.stop(PATIENCE_S)
    await child.stop(PATIENCE_S)
    assert child.exit_code == 3


async def test_it_has_a_process_group_of_its_own(tmp_path: Path) -> None:
    """Ctrl-C in a terminal goes to the group; the cluster must stop in its order, not all at once."""
    child = Child.start(put_program(tmp_path, "wait", NEVER_READY), [], tmp_path / "log")
    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)
    await child.stop(PATIENCE_S)


def test_one_loop_may_start_it_and_another_stop_it(tmp_path: Path) -> None:
    async def start() -> Child:
        return Child.start(put_program(tmp_path, "wait", NEVER_READY), [], tmp_path / "log")

    child = asyncio.run(start())
    assert is_alive(child.pid)
    asyncio.run(child.stop(PATIENCE_S))
    assert child.exit_code == -signal.SIGTERM


@ON_LINUX
def test_it_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    """A killed test run used to leave an API server that held its port for days."""
    pipe = named_pipe(tmp_path / "pipe")
    program = put_program(tmp_path, "wait", f"echo up > {pipe}; {NEVER_READY}")
    code = (
        "import sys; from pathlib import Path; from applecart.embedded.binaries.child import Child\n"
        f"print(Child.start(Path({str(program)!r}), [], Path({str(tmp_path / 'log')!r})).pid, flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        grandchild = os.pidfd_open(int(parent.stdout.readline()))
        pipe.read_text()  # the program itself runs now, not what starts it
        parent.kill()
    assert ends(grandchild)
