"""A client that speaks SPDY but does not keep to what it asked for."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from applecart.clock import Clock
from applecart.kubelet.serve import spdy_terminal
from applecart.kubelet.serve.channel_terminal import STDOUT
from applecart.kubelet.serve.exec import Command
from applecart.kubelet.serve.spdy_frames import DICTIONARY, Ping, Reset, data, ping, refusal
from applecart.kubelet.serve.spdy_terminal import expected
from applecart.kubelet.serve.terminal import Streams
from applecart.tart.sessions import PipeSession
from tests.kubelet.serve.agent_stage import AgentStage, agent_stage
from tests.kubelet.serve.spdy_client import SpdyCommand, opening

pytestmark = pytest.mark.real_time

HANGS = ("sh", "-c", "echo hanging; sleep 1000")
SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[AgentStage]:
    async with agent_stage(tmp_path, clock) as stage:
        stage.guests.add()
        yield stage


async def until_killed(stage: AgentStage) -> None:
    async with asyncio.timeout(60):
        assert await stage.commands.sessions[0].wait() != 0


@pytest.mark.parametrize(
    ("streams", "opened"),
    [
        (Streams(stdin=True, stdout=True, stderr=True, tty=False), {"error", "stdin", "stdout", "stderr"}),
        (Streams(stdin=True, stdout=True, stderr=True, tty=True), {"error", "stdin", "stdout", "resize"}),
        (Streams(stdin=False, stdout=True, stderr=False, tty=False), {"error", "stdout"}),
    ],
)
def test_a_client_opens_a_stream_for_each_thing_it_asked_for(streams: Streams, opened: set[str]) -> None:
    assert expected(streams) == opened


async def heard(command: SpdyCommand, kind: type[Ping | Reset]) -> Ping | Reset:
    async for frame in command.frames:
        if isinstance(frame, kind):
            return frame
    raise AssertionError("the connection ended")


async def test_a_ping_is_answered_and_our_own_answers_are_not(stage: AgentStage) -> None:
    async with stage.running_over_spdy("sleep", "1000") as command, asyncio.timeout(60):
        command.writer.write(ping(2) + ping(9))
        assert await heard(command, Ping) == Ping(9)


async def test_a_stream_that_was_not_asked_for_is_refused(stage: AgentStage) -> None:
    async with stage.running_over_spdy("sleep", "1000", streams=("output",)) as command, asyncio.timeout(60):
        for stream, kind in ((99, "stdin"), (101, "stdout"), (103, "")):
            command.writer.write(opening(command.packer, stream, {"streamtype": kind}))
            assert await heard(command, Reset) == Reset(stream)


async def test_a_stream_that_the_client_gave_up_takes_no_more_and_the_rest_goes_on(stage: AgentStage) -> None:
    async with stage.running_over_spdy("sh", "-c", "read _; echo out; echo err >&2; exit 4") as command, asyncio.timeout(60):
        command.writer.write(refusal(command.streams["stderr"]))
        await command.type(b"go\n")
        await command.until_end()
        assert (command.out, command.err, command.exit_code) == (b"out\n", b"", 4)


async def test_stdin_that_the_client_gave_up_has_ended(stage: AgentStage) -> None:
    """The program waited for more until its client went, and a client waits for the program."""
    async with stage.running_over_spdy("sh", "-c", "cat; echo end") as command, asyncio.timeout(60):
        await command.type(b"typed\n")
        command.writer.write(refusal(command.streams["stdin"]))
        await command.until_end()
        assert (command.out, command.exit_code) == (b"typed\nend\n", 0)


async def test_a_client_that_gave_up_all_its_streams_is_let_go_when_the_command_has_ended(stage: AgentStage) -> None:
    async with stage.running_over_spdy("cat") as command, asyncio.timeout(60):
        for stream in command.streams.values():
            command.writer.write(refusal(stream))
        assert await stage.commands.sessions[0].wait() == 0
        while await anext(command.frames, None) is not None:
            pass


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\n\r\n", b"\x80\x02" + b"\0" * 20, b"\x80\x03\x00\x01\x00\x00\x00\x20" + b"x" * 32]
)
async def test_a_client_that_speaks_no_spdy_takes_its_command_with_it(stage: AgentStage, junk: bytes) -> None:
    async with stage.running_over_spdy(*HANGS) as command:
        await command.until_heard(STDOUT, b"hanging\n")
        command.writer.write(junk)
        command.writer.write_eof() if command.writer.can_write_eof() else command.writer.close()
        await until_killed(stage)


async def test_a_client_that_opens_no_streams_is_not_waited_for(stage: AgentStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spdy_terminal, "STREAMS_S", 0.1)
    command = stage.running_over_spdy(*HANGS)
    command.streams.clear()
    async with command:
        await until_killed(stage)


async def test_a_client_that_goes_while_its_typing_is_not_read_takes_its_command_with_it(
    stage: AgentStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("applecart.kubelet.serve.terminal.STALLED_S", 0.2)
    async with stage.running_over_spdy(*HANGS) as command:
        await command.until_heard(STDOUT, b"hanging\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while True:  # until nobody takes any more
                    await command.type(b"x" * 32_000)
    await until_killed(stage)


async def test_a_client_that_opens_its_streams_too_late_is_hung_up_on_in_silence(
    stage: AgentStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it sent after it was given up on was an error of the event loop, with a traceback."""
    monkeypatch.setattr(spdy_terminal, "STREAMS_S", 0.1)
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    killed, may_end = asyncio.Event(), asyncio.Event()
    kill = PipeSession.kill

    async def killed_slowly(session: PipeSession) -> None:
        killed.set()
        await may_end.wait()
        await kill(session)

    monkeypatch.setattr(PipeSession, "kill", killed_slowly)
    command = stage.running_over_spdy(*HANGS)
    streams = dict(command.streams)
    command.streams.clear()
    async with command, asyncio.timeout(60):
        await killed.wait()
        for kind, stream in streams.items():
            command.writer.write(opening(command.packer, stream, {"streamtype": kind}))
        command.writer.write(data(streams["stdin"], b"x" * 200_000))
        await heard_by(stage)
        may_end.set()
        with suppress(ConnectionError):  # what it sent is not read any more
            assert await anext(command.frames, None) is None
    assert not faults


async def heard_by(stage: AgentStage) -> None:
    """What was written to the agent before has arrived when it has answered somebody who came later."""
    assert (await stage.get("/healthz"))[0] == 200


async def test_a_client_without_streams_is_not_told_of_a_command_that_broke(
    stage: AgentStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was waited for, for ever, so that it could be told."""
    monkeypatch.setattr(spdy_terminal, "STREAMS_S", 0.1)

    async def breaks(_: Command) -> None:
        raise OSError("lost")

    monkeypatch.setattr(Command, "run", breaks)
    command = stage.running_over_spdy("true")
    command.streams.clear()
    async with command, asyncio.timeout(60):
        assert await anext(command.frames, None) is None


async def test_data_for_streams_that_nobody_opened_is_dropped(stage: AgentStage) -> None:
    async with stage.running_over_spdy("cat") as command, asyncio.timeout(60):
        command.writer.write(data(77, b"nobody") + data(0, b"nothing", is_last=True))
        await command.type(b"somebody")
        await command.close_stdin()
        await command.until_end()
        assert (command.out, command.exit_code) == (b"somebody", 0)


@pytest.mark.parametrize("protocols", ["", "none", "v5.channel.k8s.io, v2.channel.k8s.io"])
async def test_a_client_without_our_protocol_starts_nothing(stage: AgentStage, protocols: str) -> None:
    """The embedded API asks like this, only to hear what else stands in the way of a client whose WebSocket was refused."""
    headers = {**SPDY, "X-Stream-Protocol-Version": protocols}
    async with (
        stage.session() as session,
        session.post("/exec/default/job/vm?command=true&output=1", headers=headers) as answer,
    ):
        assert answer.status == 403
        assert "unable to negotiate protocol: client supports" in await answer.text()
    assert not stage.commands.sessions


def test_the_client_of_these_tests_packs_as_the_protocol_says() -> None:
    packer = zlib.compressobj(zdict=DICTIONARY)
    assert zlib.decompressobj(zdict=DICTIONARY).decompress(opening(packer, 1, {"a": "b"})[18:]) == b"\0\0\0\1\0\0\0\1a\0\0\0\1b"
