import asyncio
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput, DeadlineExceeded
from applecart.tart.programs import Tail, run_program
from tests.tart.real_processes import FOREVER, is_alive, sh, until, written

pytestmark = pytest.mark.real_time


async def hung_until_written(argv: list[str], file: Path) -> str:
    """Runs it to its deadline, as often as it takes until a loaded machine gets as far as the file before that."""
    deadline_s = 1.0
    while not has_line(file):
        with pytest.raises(DeadlineExceeded, match=f"/bin/sh did not end within {deadline_s:g} s and was killed"):
            await run_program(argv, deadline_s=deadline_s)
        deadline_s *= 2
    return await written(file)


def has_line(file: Path) -> bool:
    return file.exists() and file.read_text().endswith("\n")


async def test_a_program_ends_with_its_code_and_both_its_streams() -> None:
    ended = await run_program(sh("echo out; echo err >&2; exit 7"), deadline_s=30)
    assert (ended.code, ended.out, ended.err) == (7, b"out\n", b"err\n")


async def test_a_program_that_a_signal_ended_reads_as_128_and_its_number() -> None:
    ended = await run_program(sh("kill -INT $$"), deadline_s=30)
    assert ended.code == 128 + signal.SIGINT


async def test_stdin_is_empty_so_that_nobody_is_asked_anything() -> None:
    assert (await run_program(sh("cat; echo done"), deadline_s=30)).out == b"done\n"


async def test_env_is_added_to_ours() -> None:
    ended = await run_program(sh('echo "$MORE"; [ -n "$PATH" ] && echo path'), deadline_s=30, env={"MORE": "x y"})
    assert ended.out == b"x y\npath\n"


async def test_output_is_seen_as_it_comes() -> None:
    seen: list[bytes] = []
    ended = await run_program(sh("echo one; echo two; echo no >&2"), deadline_s=30, on_output=seen.append)
    assert b"".join(seen) == ended.out == b"one\ntwo\n"


async def test_only_the_end_of_a_long_output_is_kept() -> None:
    ended = await run_program(sh("yes 0123456789 | head -c 3000000; echo; echo end"), deadline_s=60)
    assert len(ended.out) == 1 << 20
    assert ended.out.endswith(b"\nend\n")


@given(st.lists(st.binary(max_size=50)), st.integers(1, 40))
def test_a_tail_is_the_end_of_everything_whatever_the_pieces(pieces: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for piece in pieces:
        tail.add(piece)
    assert bytes(tail) == b"".join(pieces)[-limit:]


async def test_a_hung_program_is_killed_at_its_deadline_with_its_children(tmp_path: Path) -> None:
    """Incident 8: one hung call kept a host idle, with nothing to see, while Pods waited for minutes."""
    child = tmp_path / "child"
    script = sh(f'trap "" INT TERM; (echo $$; {FOREVER}) & echo $! >"$1"; {FOREVER}', str(child))
    pid = int(await hung_until_written(script, child))
    await until(lambda: not is_alive(pid))


async def test_a_grandchild_in_another_group_that_holds_the_pipe_cannot_hold_us(tmp_path: Path) -> None:
    """Incident 8, its second half: the kill came, but the call returned only when the last holder of the pipe went away."""
    holder = tmp_path / "holder"
    script = f'setsid /bin/sh -c \'echo $$ >"$1"; {FOREVER}\' sh "$1" & while [ ! -s "$1" ]; do :; done; {FOREVER}'
    try:
        await hung_until_written(sh(script, str(holder)), holder)
        assert is_alive(int(holder.read_text()))
    finally:
        os.killpg(int(holder.read_text()), signal.SIGKILL)


async def test_a_program_has_ended_although_a_child_of_it_holds_the_pipe(tmp_path: Path) -> None:
    holder = tmp_path / "holder"
    try:
        async with asyncio.timeout(60):
            ended = await run_program(sh(f'echo hi; ({FOREVER}) & echo $! >"$1"; exit 3', str(holder)), deadline_s=None)
        assert (ended.code, ended.out) == (3, b"hi\n")
    finally:
        os.killpg(os.getpgid(int(holder.read_text())), signal.SIGKILL)


async def test_cancelling_the_call_kills_the_program(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    call = asyncio.create_task(run_program(sh(f'echo $$ >"$1"; {FOREVER}', str(file)), deadline_s=None))
    pid = int(await written(file))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not is_alive(pid)  # at once: whoever cancelled may count on its locks being free


async def test_cancelling_at_any_moment_of_the_start_leaves_nothing(tmp_path: Path) -> None:
    await run_program(sh("exit 0"), deadline_s=30)
    before = len(os.listdir("/dev/fd"))
    for moment in range(12):
        call = asyncio.create_task(run_program(sh(f'echo $$ >"$1"; {FOREVER}', str(tmp_path / str(moment))), deadline_s=None))
        for _ in range(moment):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await asyncio.sleep(0)
    assert len(os.listdir("/dev/fd")) <= before
    pids = [(tmp_path / name).read_text() for name in os.listdir(tmp_path)]
    assert not [pid for pid in pids if pid and is_alive(int(pid))]


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/etc/passwd"], ["/"], ["/bin/sh", "a\0b"]])
async def test_a_program_that_cannot_be_started_is_a_sentence(argv: list[str]) -> None:
    with pytest.raises(BadInput, match="cannot be started"):
        await run_program(argv, deadline_s=30)
