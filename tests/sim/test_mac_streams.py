"""Streams of simulated programs: as much room as a pipe has, and nobody talks to the dead."""

import asyncio
from pathlib import Path

import pytest

from applecart.sim.mac_streams import BUFFERED_BYTES, KEPT_BYTES, Collected, Held, Logged, Pipe
from tests.virtual_time import elapse


async def test_a_writer_waits_until_there_is_room(tmp_path: Path) -> None:
    pipe = Pipe()
    await pipe.write(b"x" * BUFFERED_BYTES)
    writing = asyncio.create_task(pipe.write(b"more"))
    await elapse(10)
    assert not writing.done()
    assert len(await pipe.read()) == BUFFERED_BYTES
    await writing
    pipe.end()
    assert [await pipe.read(), await pipe.read()] == [b"more", b""]


async def test_a_reader_waits_for_the_end_or_for_something(tmp_path: Path) -> None:
    pipe = Pipe()
    reading = asyncio.create_task(pipe.read())
    await elapse(10)
    assert not reading.done()
    pipe.end()
    assert await reading == b""


async def test_writing_to_somebody_who_left_breaks_also_a_write_that_waits(tmp_path: Path) -> None:
    pipe = Pipe()
    await pipe.write(b"x" * BUFFERED_BYTES)
    writing = asyncio.create_task(pipe.write(b"more"))
    await elapse(1)
    pipe.break_off()
    with pytest.raises(BrokenPipeError):
        await writing
    with pytest.raises(BrokenPipeError):
        await pipe.write(b"more")


async def test_collected_output_is_bounded_and_told_as_it_comes() -> None:
    seen: list[int] = []
    streams = Collected(lambda data: seen.append(len(data)))
    for _ in range(5):
        await streams.out(b"a" * KEPT_BYTES)
        await streams.err(b"b" * KEPT_BYTES)
    await streams.out(b"end")
    assert streams.seen_out.endswith(b"aend")
    assert len(streams.seen_out) == len(streams.seen_err) == KEPT_BYTES
    assert seen == [KEPT_BYTES] * 5 + [3]
    assert await streams.read() == b""
    streams.break_off()
    for write in (streams.out, streams.err):
        with pytest.raises(BrokenPipeError):
            await write(b"more")


async def test_a_log_is_appended_to_privately_and_never_through_a_link(tmp_path: Path) -> None:
    streams = Logged(tmp_path / "log")
    await streams.out(b"one\n")
    await streams.err(b"two\n")
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    assert await streams.read() == b""
    (tmp_path / "link").symlink_to(tmp_path / "log")
    with pytest.raises(OSError, match="symbolic"):
        await Logged(tmp_path / "link").out(b"three\n")


async def test_a_terminal_mixes_its_streams_and_pipes_keep_them_apart() -> None:
    for is_tty, out, err in ((True, b"a\r\nb\r\n", b""), (False, b"a\n", b"b\n")):
        streams = Held(is_tty=is_tty)
        await streams.out(b"a\n")
        await streams.err(b"b\n")
        streams.end()
        assert (await streams.stdout.read(), await streams.stderr.read()) == (out, err)


async def test_when_the_holder_is_gone_input_ends_and_output_breaks() -> None:
    streams = Held(is_tty=False)
    streams.break_off()
    assert await streams.read() == b""
    with pytest.raises(BrokenPipeError):
        await streams.out(b"anybody?")


async def test_a_window_that_never_changes_is_waited_for_in_vain(tmp_path: Path) -> None:
    for streams in (Collected(None), Logged(tmp_path / "log"), Held(is_tty=True)):
        waiting = asyncio.create_task(streams.size())
        await elapse(100)
        assert not waiting.done()
        waiting.cancel()
