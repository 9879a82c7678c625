import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from applecart.errors import BadInput, Transient
from applecart.tart.mac import Session
from applecart.tart.this_mac import ThisMac
from tests.tart.exhausted import no_descriptors
from tests.tart.real_processes import FOREVER, is_alive, sh, until, written

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def opened(argv: list[str], *, tty: bool = False) -> AsyncIterator[Session]:
    session = await ThisMac().open(argv, tty=tty, env={"FROM_US": "yes"})
    try:
        yield session
    finally:
        await session.kill()


async def everything(read: Callable[[], Awaitable[bytes]]) -> bytes:
    whole = b""
    while piece := await read():
        whole += piece
    return whole


async def read_until(session: Session, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        piece = await session.read_out()
        assert piece, f"ended before {text!r}; it said {seen!r}"
        seen += piece
    return seen


async def test_streams_are_apart_and_the_code_is_the_programs() -> None:
    async with opened(sh('echo "out $FROM_US"; echo err >&2; cat; exit 4')) as session:
        await session.write(b"in\n")
        await session.close_stdin()
        out, err = await asyncio.gather(everything(session.read_out), everything(session.read_err))
        assert (out, err, await session.wait()) == (b"out yes\nin\n", b"err\n", 4)


async def test_a_session_that_a_signal_ended_reads_as_128_and_its_number() -> None:
    async with opened(sh("kill -TERM $$")) as session:
        assert await session.wait() == 128 + signal.SIGTERM


@pytest.mark.parametrize("tty", [False, True])
async def test_a_program_that_prints_without_end_waits_for_its_reader(tmp_path: Path, tty: bool) -> None:
    """What nobody reads is held by the program, not by the agent."""
    printed = tmp_path / "printed"
    printed.write_text("")
    lines = f'while echo {"x" * 4095}; do echo >>"$1"; done'
    async with opened(sh(lines, str(printed)), tty=tty) as session:
        seen = -1
        while seen < (lines_held := printed.stat().st_size) or not lines_held:  # waits when two looks see the same
            seen = lines_held
            assert lines_held * 4096 <= 1 << 20
            await asyncio.sleep(0.2)
        assert await session.read_out()


async def test_writing_to_a_program_that_reads_no_longer_is_harmless() -> None:
    async with opened(sh("exec <&-; exit 0")) as session:
        await session.wait()
        for _ in range(3):
            await session.write(b"x" * 1000)
        await session.close_stdin()


async def test_kill_ends_it_and_what_it_started_and_reading_ends(tmp_path: Path) -> None:
    file = tmp_path / "child"
    async with opened(sh(f'trap "" TERM; ({FOREVER}) & echo $! >"$1"; {FOREVER}', str(file))) as session:
        child = int(await written(file))
        reading = asyncio.create_task(session.read_out())
        await session.kill()
        assert await reading == b""
        assert await session.wait() == 128 + signal.SIGKILL
        await until(lambda: not is_alive(child))
        await session.kill()  # twice is harmless


async def test_a_killed_program_is_always_known_to_have_been_killed() -> None:
    """asyncio can lose the code of a child that dies while it closes: it said 255 then."""
    for _ in range(25):
        async with opened(sh(FOREVER)) as session:
            await session.kill()
            assert await session.wait() == 128 + signal.SIGKILL


async def test_a_terminal_is_one_to_the_program_and_tells_its_size() -> None:
    script = 'test -t 0 && test -t 2 && echo "tty"; trap "stty size" WINCH; echo ready; while :; do sleep 0.02; done'
    async with opened(sh(script), tty=True) as session:
        seen = await read_until(session, b"ready")
        assert b"tty" in seen
        session.resize(132, 43)
        await read_until(session, b"43 132")
        assert await session.read_err() == b""


async def test_input_to_a_terminal_reaches_the_program_and_has_an_end() -> None:
    async with opened(sh("stty -echo; echo ready; cat; echo done; exit 6"), tty=True) as session:
        await read_until(session, b"ready")
        await session.write(b"hello\n")
        await read_until(session, b"hello")
        await session.close_stdin()
        await read_until(session, b"done")
        assert await everything(session.read_out) in (b"\r\n", b"")
        assert await session.wait() == 6


@pytest.mark.parametrize("tty", [False, True])
async def test_who_writes_faster_than_the_program_reads_waits(tty: bool) -> None:
    async with opened(sh(f"[ -t 0 ] && stty raw -echo; echo ready; {FOREVER}"), tty=tty) as session:
        await read_until(session, b"ready")
        writing = asyncio.create_task(session.write(b"x" * (4 << 20)))
        done, _ = await asyncio.wait([writing], timeout=0.2)
        assert not done
        writing.cancel()


async def test_a_terminal_is_killed_like_any_other_and_bad_sizes_are_harmless() -> None:
    async with opened(sh(f"echo $$; {FOREVER}"), tty=True) as session:
        pid = int(await read_until(session, b"\n"))
        session.resize(-1, 10**9)
        await session.kill()
        assert not is_alive(pid)
        assert await session.read_out() == b""
        session.resize(80, 24)
        await session.write(b"x")


@pytest.mark.parametrize("tty", [False, True])
async def test_a_program_that_is_missing_is_a_sentence(tty: bool) -> None:
    with pytest.raises(BadInput, match="/no/such/tart cannot be started"):
        await ThisMac().open(["/no/such/tart"], tty=tty)


@pytest.mark.parametrize("tty", [False, True])
async def test_a_host_without_handles_is_a_sentence_whichever_is_the_first_that_is_missing(tty: bool) -> None:
    async with opened(sh("exit 0"), tty=True) as session:
        await session.wait()
    await asyncio.sleep(0)
    before = len(os.listdir("/dev/fd"))
    for spare in range(3):
        with no_descriptors(but=spare), pytest.raises(Transient, match=r"Too many open files|out of pty devices"):
            await ThisMac().open(sh("exit 0"), tty=tty)
    if tty or sys.version_info >= (3, 12):  # Python itself loses the first pipe of a program whose second it cannot open
        await until(lambda: len(os.listdir("/dev/fd")) <= before)


@pytest.mark.parametrize("tty", [False, True])
async def test_cancelling_at_any_moment_of_the_opening_leaves_nothing(tmp_path: Path, tty: bool) -> None:
    """A client that went away while its terminal was being opened left a program and two handles for ever."""
    async with opened(sh("exit 0"), tty=True) as session:
        await session.wait()
    await asyncio.sleep(0)
    before = len(os.listdir("/dev/fd"))
    for moment in range(16):
        call = asyncio.create_task(ThisMac().open(sh(f'trap "" HUP; {FOREVER}', str(tmp_path)), tty=tty))
        for _ in range(moment):
            await asyncio.sleep(0)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await (await call).kill()
        while any(str(tmp_path) in it.command for it in await ThisMac().processes()):  # noqa: ASYNC110 (no event comes from over there)
            await asyncio.sleep(0.01)  # a child that the shell was just making dies a moment after it
    await until(lambda: len(os.listdir("/dev/fd")) <= before)


@pytest.mark.parametrize("tty", [False, True])
async def test_a_kill_that_is_cut_short_leaves_no_handle(tty: bool) -> None:
    async with opened(sh("exit 0"), tty=True) as session:
        await session.wait()
    await asyncio.sleep(0)
    before = len(os.listdir("/dev/fd"))
    session = await ThisMac().open(sh(FOREVER), tty=tty)
    killing = asyncio.create_task(session.kill())
    await asyncio.sleep(0)
    killing.cancel()
    await asyncio.wait([killing])
    await session.wait()
    await until(lambda: len(os.listdir("/dev/fd")) <= before)  # asyncio closes a pipe some turns after it was told to


async def test_no_file_stays_open_after_sessions() -> None:
    async def use(*, tty: bool) -> None:
        async with opened(sh("echo hi"), tty=tty) as session:
            await everything(session.read_out)
            await session.wait()

    await use(tty=True)
    await asyncio.sleep(0)
    before = len(os.listdir("/dev/fd"))
    for number in range(6):
        await use(tty=number % 2 == 0)
    await asyncio.sleep(0)
    assert len(os.listdir("/dev/fd")) <= before
