"""A simulated guest and its programs, on virtual time; the agent's HTTP is proven by the relay's tests."""

import asyncio
from datetime import timedelta

import pytest

from applecart.clock import Clock
from applecart.kubelet.serve.terminal import exit_status
from applecart.sim.guest import Guest, LogRequest
from applecart.sim.guest_programs import NOT_FOUND, run
from tests.virtual_time import elapse


class ScriptedTerminal:
    """Types what it was given, and keeps what it sees."""

    def __init__(self, *typed: bytes) -> None:
        self._typed = list(typed)
        self.seen_out = b""
        self.seen_err = b""

    async def read(self) -> bytes:
        return self._typed.pop(0) if self._typed else b""

    async def out(self, data: bytes) -> None:
        self.seen_out += data

    async def err(self, data: bytes) -> None:
        self.seen_err += data

    async def size(self) -> tuple[int, int]:
        return 80, 24


async def read(guest: Guest, asked: LogRequest, *, is_previous: bool = False) -> bytes:
    return b"".join([text async for text in guest.read(asked, is_previous=is_previous)])


async def test_a_log_is_cut_as_it_is_asked(clock: Clock) -> None:
    guest = Guest(clock)
    guest.say("old", ago=timedelta(hours=1))
    guest.say("one", "two")
    assert await read(guest, LogRequest()) == b"old\none\ntwo\n"
    assert await read(guest, LogRequest(tail_lines=1)) == b"two\n"
    assert await read(guest, LogRequest(tail_lines=0)) == b""
    assert await read(guest, LogRequest(since=clock.now() - timedelta(minutes=1))) == b"one\ntwo\n"
    assert await read(guest, LogRequest(limit_bytes=6)) == b"old\non"
    assert await read(guest, LogRequest(timestamps=True, tail_lines=1)) == b"2026-01-01T00:00:00.000000000Z two\n"


async def test_a_followed_log_ends_with_its_guest(clock: Clock) -> None:
    guest = Guest(clock)
    guest.say("one")
    reading = asyncio.create_task(read(guest, LogRequest(follow=True)))
    await elapse(1)
    guest.say("two", "three")
    await elapse(1)
    assert not reading.done()
    guest.end()
    assert await reading == b"one\ntwo\nthree\n"


async def test_the_run_before_keeps_its_log(clock: Clock) -> None:
    guest = Guest(clock)
    guest.say("before")
    guest.restart()
    guest.say("after")
    assert await read(guest, LogRequest(), is_previous=True) == b"before\n"
    assert await read(guest, LogRequest()) == b"after\n"


@pytest.mark.parametrize(
    ("command", "typed", "code", "out", "err"),
    [
        (["echo", "a", "b"], [], 0, b"a b\n", b""),
        (["cat"], [b"x", b"y"], 0, b"xy", b""),
        (["cat", "/f"], [], 0, b"content", b""),
        (["cat", "/g"], [], 1, b"", b"cat: /g: No such file or directory\n"),
        (["sh", "-c", "echo a; echo b >&2; exit 300"], [], 44, b"a\n", b"b\n"),
        (["sh"], [], 0, b"", b""),
        (["nothing"], [], NOT_FOUND, b"", b"sh: nothing: not found\n"),
        ([], [], NOT_FOUND, b"", b"sh: : not found\n"),
        (["window", "1"], [], 0, b"80x24\n", b""),
        (["test", "-d", "/f"], [], 1, b"", b""),
    ],
)
async def test_programs_do_what_their_namesakes_do(
    clock: Clock, command: list[str], typed: list[bytes], code: int, out: bytes, err: bytes
) -> None:
    terminal = ScriptedTerminal(*typed)
    assert await run(Guest(clock, files={"/f": b"content"}), command, terminal) == code
    assert (terminal.seen_out, terminal.seen_err) == (out, err)


async def test_tar_unpacks_what_tar_packed(clock: Clock) -> None:
    there, here = Guest(clock, files={"/d/a": b"1" * 5000, "/d/b": b"", "/e": b"3"}), Guest(clock)
    packed = ScriptedTerminal()
    await run(there, ["tar", "cf", "-", "/d"], packed)
    pieces = [packed.seen_out[at : at + 1000] for at in range(0, len(packed.seen_out), 1000)]
    assert await run(here, ["tar", "-xmf", "-", "-C", "/new"], ScriptedTerminal(*pieces)) == 0
    assert here.files == {"/new/d/a": b"1" * 5000, "/new/d/b": b""}


def test_an_exit_code_is_a_cause_of_the_status() -> None:
    assert exit_status(0)["status"] == "Success"
    assert exit_status(3)["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
