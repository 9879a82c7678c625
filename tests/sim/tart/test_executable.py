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
from applecart.tart.this_mac import ThisMac
from tests.sim.tart.both_ways import EXECUTABLE, IMAGE, SimTart, end_vms, executable
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

pytestmark = pytest.mark.real_time


@pytest.fixture
async def tart(tmp_path: Path) -> AsyncIterator[SimTart]:
    tart = executable(tmp_path)
    yield tart
    end_vms(tart)


async def test_without_a_home_of_its_own_it_does_nothing() -> None:
    ended = await ThisMac().run([*EXECUTABLE, "list"], deadline_s=60, env={"TART_HOME": ""})
    assert ended.code == 1
    assert b"set TART_HOME" in ended.err


async def test_a_hang_ignores_polite_signals_and_dies_with_its_group(tart: SimTart) -> None:
    """Incident 8: a grandchild that held the output kept the worker waiting after the kill."""
    tart.faults({"on": "list", "kind": "hang", "with_grandchild": True})
    hung = asyncio.create_task(tart.run("list", deadline_s=3))
    while not (tart.home / "sim" / "faults-struck.json").exists():  # noqa: ASYNC110 (the other side is a process)
        await asyncio.sleep(0.01)
    with pytest.raises(DeadlineExceeded):
        await hung
    assert await tart.out("list", "-q") == ""


async def test_a_pull_that_is_killed_resumes_and_one_that_is_interrupted_starts_over(tart: SimTart) -> None:
    for number, is_kept in ((signal.SIGKILL, True), (signal.SIGINT, False)):
        tart.faults({"on": "pull", "kind": "slow", "bytes_per_s": 10**10, "text": str(number)})
        pulling = await asyncio.create_subprocess_exec(
            *EXECUTABLE, "pull", IMAGE, env={**os.environ, "TART_HOME": str(tart.home), "CI": "1"}, stdout=subprocess.PIPE
        )
        assert pulling.stdout is not None
        while b"9%" not in await pulling.stdout.readline():
            pass
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
