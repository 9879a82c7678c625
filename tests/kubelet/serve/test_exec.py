"""Commands in a guest, over real WebSockets and real SPDY into real processes of this machine."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import aiohttp
import pytest

from applecart.clock import Clock
from applecart.kubelet.serve.channel_terminal import ERROR, STDOUT, ChannelTerminal
from applecart.kubelet.serve.guests import Guest, State
from applecart.kubelet.serve.spdy_terminal import SpdyTerminal
from applecart.tart.failures import VmNotRunning
from applecart.tart.mac import Session
from tests.embedded.relay.remote_command import RemoteCommand
from tests.kubelet.serve.agent_stage import ALL, V4, V5, AgentStage, agent_stage
from tests.kubelet.serve.local_guests import print_to
from tests.kubelet.serve.spdy_client import SpdyCommand

pytestmark = pytest.mark.real_time

PYTHON = sys.executable
FLOOD = f"{PYTHON} -c 'import sys; [sys.stdout.write(\"x\" * 65536) for _ in range(200)]'"
LAST_WORDS = "Failed to connect to the VM using its control socket: timed out, is the Tart Guest Agent running?"


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[AgentStage]:
    async with agent_stage(tmp_path, clock) as stage:
        yield stage


@pytest.fixture
def guest(stage: AgentStage) -> Guest:
    return stage.guests.add()


class Running(Protocol):
    """What both clients do."""

    def __call__(
        self, *command: str, action: str = "exec", streams: tuple[str, ...] = ALL
    ) -> AbstractAsyncContextManager[RemoteCommand] | AbstractAsyncContextManager[SpdyCommand]: ...


@pytest.fixture(params=["websocket", "spdy"])
def running(stage: AgentStage, request: pytest.FixtureRequest) -> Running:
    return stage.running if request.param == "websocket" else stage.running_over_spdy


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("protocol", [V5, V4])
async def test_a_command_runs_and_ends_with_success(stage: AgentStage, protocol: str) -> None:
    async with stage.running("echo", "a b", "c&d=e", protocols=(protocol,)) as command:
        assert await command.until_end() == 1000
        assert (command.out, command.exit_code) == (b"a b c&d=e\n", 0)


@pytest.mark.usefixtures("guest")
async def test_a_command_that_fails_tells_its_exit_code_and_its_complaint(running: Running) -> None:
    async with running("sh", "-c", "echo hello; echo oh no >&2; exit 42") as command:
        await command.until_end()
        assert (command.out, command.err, command.exit_code) == (b"hello\n", b"oh no\n", 42)
        assert command.status["reason"] == "NonZeroExitCode"


@pytest.mark.usefixtures("guest")
async def test_what_is_typed_reaches_the_command_and_its_end_too(running: Running) -> None:
    typed = bytes(range(256)) * 2000
    async with running("cat") as command:
        await command.type(b"hello")
        await command.until_heard(STDOUT, b"hello")
        await command.type(typed)
        await command.close_stdin()
        await command.until_end()
        assert (command.out, command.exit_code) == (b"hello" + typed, 0)


@pytest.mark.usefixtures("guest")
async def test_without_stdin_a_command_reads_nothing(running: Running) -> None:
    async with running("cat", streams=("output",)) as command:
        for _ in range(50):
            await command.type(b"nobody asked for this")
            await command.resize(1, 1)
        await command.until_end()
        assert (command.out, command.exit_code) == (b"", 0)


@pytest.mark.usefixtures("guest")
async def test_a_terminal_has_the_size_of_its_window(running: Running) -> None:
    async with running("sh", "-c", "read _; stty size", streams=("input", "output", "tty")) as command:
        await command.resize(120, 40)
        await command.type(b"go\n")
        await command.until_heard(STDOUT, b"40 120")


@pytest.mark.usefixtures("guest")
async def test_a_client_that_goes_takes_its_command_with_it(stage: AgentStage, running: Running) -> None:
    async with running("sh", "-c", "echo hanging; sleep 1000") as command:
        await command.until_heard(STDOUT, b"hanging\n")
    async with asyncio.timeout(60):
        assert await stage.commands.sessions[0].wait() != 0


@pytest.mark.usefixtures("guest")
async def test_a_client_that_goes_while_its_typing_is_not_read_takes_its_command_with_it(
    stage: AgentStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("applecart.kubelet.serve.terminal.STALLED_S", 0.2)
    async with stage.running("sh", "-c", "echo hanging; sleep 1000") as command:
        await command.until_heard(STDOUT, b"hanging\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while True:  # until nobody takes any more
                    await command.type(b"x" * 32_000)
        connection = command._socket._conn
        assert connection is not None
        assert connection.transport is not None
        connection.transport.abort()
    async with asyncio.timeout(60):
        assert await stage.commands.sessions[0].wait() != 0


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("breaks", ["_type", "read", "out"])
async def test_a_remote_command_of_which_one_direction_breaks_is_no_success(
    running: Running, breaks: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client was told nothing, or success after half of the output, or the command waited for what nobody handed over."""

    async def surprised(*_: object) -> bytes:
        raise RuntimeError("a bug")

    for kind in (ChannelTerminal, SpdyTerminal):
        monkeypatch.setattr(kind, breaks, surprised)
    async with running("sh", "-c", "echo hello; read _") if breaks != "out" else running("echo", "hello") as command:
        async with asyncio.timeout(20):
            if breaks == "_type":
                await command.type(b"x")
            await command.until_end()
        assert command.status["status"] == "Failure"
    assert "broke" in caplog.text


@pytest.mark.usefixtures("guest")
async def test_a_command_that_hangs_holds_no_other(running: Running) -> None:
    async with running("sleep", "1000"), running("echo", "quick") as command:
        await command.until_end()
        assert command.out == b"quick\n"


@pytest.mark.usefixtures("guest")
async def test_a_flood_arrives_whole_and_waits_for_its_reader(stage: AgentStage, running: Running) -> None:
    async with running("sh", "-c", f"{FLOOD}; echo done >&2; exit 3") as command:
        await asyncio.wait({asyncio.ensure_future(stage.commands.sessions[0].wait())}, timeout=0.5)
        await command.until_end()
        assert (len(command.out), command.err, command.exit_code) == (200 * 65536, b"done\n", 3)


@pytest.mark.usefixtures("guest")
async def test_a_grandchild_that_keeps_the_output_open_does_not_keep_the_client(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("applecart.kubelet.serve.exec.DRAIN_S", 0.5)
    async with running("sh", "-c", "sleep 100 & echo started") as command, asyncio.timeout(60):
        await command.until_end()
        assert (command.out, command.exit_code) == (b"started\n", 0)


@pytest.mark.usefixtures("guest")
async def test_a_guest_without_an_agent_is_told_in_a_sentence(running: Running) -> None:
    async with running("sh", "-c", f"echo '{LAST_WORDS}' >&2; exit 1") as command:
        await command.until_end()
        status = command.status
        assert (status["reason"], status["code"]) == ("InternalError", 500)
        assert "Tart's guest agent does not run in it" in status["message"]


@pytest.mark.usefixtures("guest")
async def test_a_command_that_only_speaks_of_agents_keeps_its_exit_code(stage: AgentStage) -> None:
    async with stage.running("sh", "-c", f"echo out; echo '{LAST_WORDS}' >&2; exit 7") as command:
        await command.until_end()
        assert command.exit_code == 7


async def refused(stage: AgentStage, *command: str) -> str:
    """kubectl asks again over SPDY and shows only that answer; the text of the first is read from the wire."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as failed:
        async with stage.running(*command):
            raise AssertionError("it was not refused")
    assert failed.value.status == 400
    assert not any(one for one in stage.commands.sessions)
    query = "&".join(f"command={quote(word)}" for word in command)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": V5,
    }
    async with (
        stage.session() as session,
        session.get(f"/exec/default/job/vm?output=1&{query}", headers=headers) as answer,
    ):
        return await answer.text()


@pytest.mark.parametrize(
    ("state", "command", "said"),
    [
        (State.WAITING, ("true",), 'container "vm" in pod "job" is waiting to start: ContainerCreating'),
        (State.ENDED, ("true",), 'container "vm" in pod "job" has ended: its VM runs no more'),
        (State.RUNNING, (), "a command needs at least one word, and no word may hold a NUL"),
        (State.RUNNING, ("a\0b",), "a command needs at least one word, and no word may hold a NUL"),
    ],
)
async def test_a_command_that_cannot_run_is_explained(
    stage: AgentStage, state: State, command: tuple[str, ...], said: str
) -> None:
    stage.guests.add(state=state)
    assert await refused(stage, *command) == said


@pytest.mark.usefixtures("guest")
async def test_a_driver_that_refuses_is_quoted(stage: AgentStage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no(vm: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        raise VmNotRunning(f'VM "{vm}" is not running', 2)

    monkeypatch.setattr(stage.commands, "exec_session", no)
    assert await refused(stage, "true") == 'VM "default-job" is not running'


async def test_attach_shows_what_the_vm_prints_from_now_on(stage: AgentStage, running: Running, guest: Guest) -> None:
    print_to(guest, "before\n")
    async with running(action="attach", streams=("output",)) as command:
        print_to(guest, "after\n")
        await command.until_heard(STDOUT, b"after\n")
        stage.guests.end(guest)
        await command.until_end()
        assert command.out == b"after\n"
        assert json.loads(command.heard[ERROR])["status"] == "Success"
