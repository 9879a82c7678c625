"""Asking once, with real processes and real sockets: every way to fail is an answer in time, and no secret is in it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.errors import DeadlineExceeded
from applecart.kubelet.probes.ask import LONGEST_ANSWER_CHARS, TART_WAIT_S, Asker, shown
from applecart.kubelet.probes.checks import Check, ExecCheck, HttpCheck, Kind, Plan, TcpCheck
from applecart.kubelet.probes.state import Answer, Outcome
from applecart.secrets import Secret
from applecart.tart.failures import TartFailed, TartHung, VmNotRunning
from applecart.tart.mac import Ended
from applecart.tart.this_mac import ThisMac

HERE = "127.0.0.1"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


class LocalGuest:
    """A guest whose programs are those of this machine; `broken` is what Tart says instead of running one."""

    def __init__(self, mac: ThisMac, broken: Exception | None = None) -> None:
        self.mac = mac
        self.broken = broken

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended:
        if self.broken:
            raise self.broken
        try:
            return await self.mac.run(command, deadline_s=deadline_s)
        except DeadlineExceeded as error:
            raise TartHung(str(error)) from error


async def ask(check: Check, clock: Clock, *, timeout_s: int = 5, broken: Exception | None = None) -> Answer:
    mac = ThisMac()
    plan = Plan(Kind.READINESS, check, 0, 10, timeout_s, 1, 3, None)
    return await Asker(mac, LocalGuest(mac, broken)).ask(plan, "ci-runner", HERE)


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, HERE, 0)  # type: ignore[arg-type]
    async with server:
        yield server.sockets[0].getsockname()[1]


def answering(raw: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()

    return serve


async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the asker hangs up
    writer.close()


@pytest.mark.real_time
async def test_a_command_that_ends_with_zero_passes(clock: Clock) -> None:
    assert await ask(ExecCheck(("/bin/sh", "-c", "echo fine")), clock) == Answer(Outcome.PASSED)


@pytest.mark.real_time
async def test_a_command_that_ends_otherwise_fails_with_what_it_said(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "echo no runner; echo at all >&2; exit 3")), clock)
    assert said == Answer(Outcome.FAILED, "no runner at all")


@pytest.mark.real_time
async def test_a_command_that_says_nothing_fails_with_its_code(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "exit 3")), clock)
    assert said == Answer(Outcome.FAILED, "the command /bin/sh -c exit 3 ended with code 3")


@pytest.mark.real_time
async def test_a_command_that_hangs_is_killed_at_its_timeout_and_has_failed(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "sleep 1000")), clock, timeout_s=1)
    assert said == Answer(Outcome.FAILED, "the command /bin/sh -c sleep 1000 did not end within 1 s")


@pytest.mark.parametrize("broken", [VmNotRunning("VM is not running"), TartFailed("no socket"), OSError("no fork")])
@pytest.mark.real_time
async def test_what_tart_or_the_host_could_not_do_is_no_failure_of_the_guest(clock: Clock, broken: Exception) -> None:
    assert await ask(ExecCheck(("true",)), clock, broken=broken) == Answer(Outcome.UNKNOWN, str(broken))


class BusyTart:
    """Tart that hands a pull over, which every other command waits for."""

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended:
        await asyncio.sleep(TART_WAIT_S * 10)
        return Ended(0)


async def test_a_command_that_tart_did_not_even_begin_is_no_failure_of_the_guest(clock: Clock) -> None:
    plan = Plan(Kind.LIVENESS, ExecCheck(("true",)), 0, 10, 1, 1, 3, None)
    said = await Asker(ThisMac(), BusyTart()).ask(plan, "ci-runner", HERE)
    assert said.outcome is Outcome.UNKNOWN
    assert clock.monotonic() < TART_WAIT_S + 5


@pytest.mark.real_time
async def test_a_port_that_is_open_passes_and_one_that_is_closed_fails(clock: Clock) -> None:
    async with serving(never_answer) as port:
        assert await ask(TcpCheck(port), clock) == Answer(Outcome.PASSED)
    said = await ask(TcpCheck(port), clock)
    assert said.outcome is Outcome.FAILED
    assert str(port) in said.text


@pytest.mark.parametrize(
    ("status", "passes"), [(200, True), (204, True), (302, True), (399, True), (400, False), (404, False), (503, False)]
)
@pytest.mark.real_time
async def test_a_page_passes_by_its_status(clock: Clock, status: int, passes: bool) -> None:
    raw = f"HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving(answering(raw)) as port:
        said = await ask(HttpCheck(port, "/healthz", ()), clock)
    failed = Answer(Outcome.FAILED, f"HTTP probe failed with statuscode: {status}")
    assert said == (Answer(Outcome.PASSED) if passes else failed)


@pytest.mark.real_time
async def test_a_guest_that_takes_the_connection_and_says_nothing_fails_at_the_timeout(clock: Clock) -> None:
    async with serving(never_answer) as port:
        said = await ask(HttpCheck(port, "/", ()), clock, timeout_s=1)
    assert said == Answer(Outcome.FAILED, f"{HERE}:{port} did not answer within 1 s")


@pytest.mark.parametrize("raw", [b"", b"\x00\xff" * 50, b"HTTP/1.1 two hundred\r\n\r\n", b"SSH-2.0-OpenSSH_9.9\r\n"])
@pytest.mark.real_time
async def test_an_answer_that_is_not_http_is_a_failure_and_no_error(clock: Clock, raw: bytes) -> None:
    async with serving(answering(raw)) as port:
        said = await ask(HttpCheck(port, "/", ()), clock)
    assert said.outcome is Outcome.FAILED


@pytest.mark.real_time
async def test_the_page_is_asked_for_with_the_headers_of_the_pod(clock: Clock) -> None:
    heard = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with serving(serve) as port:
        await ask(HttpCheck(port, "/ok?deep=1", (("User-Agent", "kube-probe/x"), ("Host", "ci.local"))), clock)
    assert heard.startswith(b"GET /ok?deep=1 HTTP/1.1\r\n")
    assert b"User-Agent: kube-probe/x\r\n" in heard
    assert b"Host: ci.local\r\n" in heard


@pytest.mark.real_time
async def test_a_secret_that_a_command_prints_is_in_no_answer(clock: Clock, tmp_path: Path) -> None:
    token = Secret("ghs_0123456789abcdef")
    (tmp_path / "out").write_text(f"{'x' * 285} {token.reveal()}")
    said = await ask(ExecCheck(("/bin/sh", "-c", f"cat {tmp_path}/out; exit 1")), clock)
    assert said.outcome is Outcome.FAILED
    assert token.reveal()[:10] not in said.text  # not even the part that fits


@given(st.text())
def test_an_answer_is_one_bounded_line(text: str) -> None:
    line = shown(text)
    assert len(line) <= LONGEST_ANSWER_CHARS
    assert line.isprintable()
