"""The simulated Tart as a real program: everything its command line does in-process, and what only a process can show."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from applecart.errors import DeadlineExceeded
from applecart.sim.tart.registry import Registry
from applecart.tart.this_mac import ThisMac
from tests.sim.tart.sim_tart import EXECUTABLE, IMAGE, SimTart, end_vms, executable
from tests.sim.tart.test_cli import (  # noqa: F401 (the same tests with another fixture)
    test_a_crash_of_the_guest_is_told_by_words_only,
    test_a_guest_reads_its_environment_and_leaves_its_exit_code_and_log,
    test_a_third_macos_guest_is_refused,
    test_a_vm_ends_with_its_process,
    test_a_vm_is_pulled_cloned_run_asked_stopped_and_deleted,
    test_every_command_but_pull_and_clone_deletes_what_nobody_holds_in_tmp,
    test_what_tart_refuses_is_refused_with_its_code_and_words,
    test_without_a_session_on_the_screen_no_vm_starts,
)
from tests.sim.tart.test_faults import WRONG

pytestmark = pytest.mark.real_time

SLOW_BYTES_PER_S = 10**6  # a pull that cannot end before somebody ends it


@pytest.fixture
async def tart(tmp_path: Path) -> AsyncIterator[SimTart]:
    tart = executable(tmp_path)
    yield tart
    end_vms(tart)


async def test_without_a_home_of_its_own_it_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".tart")
    for home in ("", str(tmp_path / ".tart"), str(tmp_path / "link")):  # a person's own VMs are there
        ended = await ThisMac().run([*EXECUTABLE, "list"], deadline_s=60, env={"TART_HOME": home, "HOME": str(tmp_path)})
        assert ended.code == 1
        assert b"set TART_HOME" in ended.err


async def test_a_hang_dies_with_its_group_at_the_deadline(tart: SimTart) -> None:
    """Incident 8: a grandchild that held the output kept the worker waiting after the kill."""
    tart.faults({"on": "list", "kind": "hang", "with_grandchild": True})
    deadline_s = 1.0
    while not (tart.home / "sim" / "faults-struck.json").exists():  # a loaded machine may not get as far as that
        with pytest.raises(DeadlineExceeded):
            await tart.run("list", deadline_s=deadline_s)
        deadline_s *= 2
    assert await tart.out("list", "-q") == ""


@pytest.mark.parametrize(("fault", "says"), [WRONG[0], WRONG[4], WRONG[5], WRONG[9]])
async def test_a_wrong_fault_is_a_sentence_of_the_program_too(fault: dict[str, object], says: str, tart: SimTart) -> None:
    tart.home.mkdir()
    tart.faults(fault)
    ended = await tart.run("list")
    assert ended.code == 1
    assert ended.err.startswith(b"simulated Tart: faults.json cannot be used: ")
    assert says in ended.err.decode()
    assert ended.err.count(b"\n") == 1


async def test_pushes_at_the_same_time_lose_no_tag(tart: SimTart) -> None:
    await tart.out("create", "v")
    names = [f"ghcr.io/acme/pushed:{number}" for number in range(6)]
    pushed = await asyncio.gather(*(tart.run("push", "v", name) for name in names))
    assert [ended.code for ended in pushed] == [0] * len(names)
    content = Registry(tart.home / "sim", {}).content()
    assert set(content.tags) == set(names)
    assert set(content.sizes) == set(content.tags.values())


async def test_a_pull_that_is_killed_resumes_and_one_that_is_interrupted_starts_over(tart: SimTart) -> None:
    for number, is_kept in ((signal.SIGKILL, True), (signal.SIGINT, False)):
        tart.faults({"on": "pull", "kind": "slow", "bytes_per_s": SLOW_BYTES_PER_S, "text": str(number)})
        pulling = await asyncio.create_subprocess_exec(
            *EXECUTABLE, "pull", IMAGE, env={**os.environ, "TART_HOME": str(tart.home), "CI": "1"}, stdout=subprocess.PIPE
        )
        assert pulling.stdout is not None
        while (line := await pulling.stdout.readline()) != b"0%\n":
            assert line, "the pull ended by itself"
        pulling.send_signal(number)
        await pulling.communicate()
        assert any((tart.home / "tmp").iterdir()) is is_kept
    assert (await tart.run("pull", IMAGE)).code == 0


async def test_kill_agent_kills_the_process_that_is_named(tart: SimTart) -> None:
    agent = await asyncio.create_subprocess_exec("/bin/sleep", "600")
    try:
        (tart.home / "sim").mkdir(parents=True)
        (tart.home / "sim" / "agent.pid").write_text(f"{agent.pid}\n")
        tart.faults({"on": "create", "kind": "kill-agent", "when": "after"})
        await tart.out("create", "v")
        assert await agent.wait() == -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError):
            agent.kill()


@pytest.mark.parametrize("content", [None, "", "soon", "-1", "1"])
async def test_kill_agent_kills_nobody_when_it_is_not_told_whom(content: str | None, tart: SimTart) -> None:
    """It once killed whoever had started the program: the shell of the person at the terminal."""
    (tart.home / "sim").mkdir(parents=True)
    if content is not None:
        (tart.home / "sim" / "agent.pid").write_text(content)
    tart.faults({"on": "list", "kind": "kill-agent"})
    shell = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", '"$@"; echo "ended with $?"', "sh", *EXECUTABLE, "list",
        env={**os.environ, "TART_HOME": str(tart.home)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await shell.communicate()
    assert out == b"ended with 1\n"
    assert err.startswith(b"simulated Tart: kill-agent kills the process whose pid is in sim/agent.pid")


async def test_a_command_reads_what_is_typed_and_a_crash_has_a_signal(tart: SimTart) -> None:
    await tart.out("create", "v")
    await tart.boot("v")
    session = await tart.session("exec", "-i", "v", "cat")
    await session.write(b"typed")
    assert await session.read_out() == b"typed"
    await session.close_stdin()
    assert await session.wait() == 0
    tart.faults({"on": "get", "kind": "crash"})
    assert (await tart.run("get", "v")).code == 128 + signal.SIGTRAP


def test_it_starts_without_heavy_imports() -> None:
    heavy = "import sys, applecart.sim.tart.executable; print({'aiohttp', 'click', 'rich', 'yaml'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, check=True).stdout == b"set()\n"
