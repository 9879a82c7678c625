"""Asking once, with real processes and real sockets: every way to fail is an answer in time, and no secret is in it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.errors import BadInput, DeadlineExceeded, Transient, Unreachable
from applecart.kubelet.probes.ask import (
    HOST_WAIT_S,
    LONGEST_ANSWER_CHARS,
    LONGEST_SECRET_CHARS,
    LOOKED_AT_CHARS,
    TART_WAIT_S,
    Asker,
    shown,
)
from applecart.kubelet.probes.checks import Check, ExecCheck, HttpCheck, Kind, Plan, TcpCheck
from applecart.kubelet.probes.state import Answer, ProbeResult
from applecart.secrets import Registry, Secret, registering_in
from applecart.tart.failures import TartFailed, TartHung, VmNotRunning
from applecart.tart.mac import Ended, Mac
from applecart.tart.this_mac import ThisMac
from tests.tart.exhausted import no_descriptors

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
    assert await ask(ExecCheck(("/bin/sh", "-c", "echo fine")), clock) == Answer(ProbeResult.PASSED)


@pytest.mark.real_time
async def test_a_command_that_ends_otherwise_fails_with_what_it_said(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "echo no runner; echo at all >&2; exit 3")), clock)
    assert said == Answer(ProbeResult.FAILED, "no runner at all")


@pytest.mark.real_time
async def test_a_command_that_says_nothing_fails_with_its_code(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "exit 3")), clock)
    assert said == Answer(ProbeResult.FAILED, "the command /bin/sh -c exit 3 ended with code 3")


@pytest.mark.real_time
async def test_a_command_that_hangs_is_killed_at_its_timeout_and_has_failed(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "sleep 1000")), clock, timeout_s=1)
    assert said == Answer(ProbeResult.FAILED, "the command /bin/sh -c sleep 1000 did not end within 1 s")


@pytest.mark.parametrize("broken", [VmNotRunning("VM is not running"), TartFailed("no socket"), OSError("no fork")])
@pytest.mark.real_time
async def test_what_tart_or_the_host_could_not_do_is_no_failure_of_the_guest(clock: Clock, broken: Exception) -> None:
    assert await ask(ExecCheck(("true",)), clock, broken=broken) == Answer(ProbeResult.UNKNOWN, str(broken))


class BusyTart:
    """Tart that hands a pull over, which every other command waits for."""

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended:
        await asyncio.sleep(TART_WAIT_S * 10)
        return Ended(0)


async def test_a_command_that_tart_did_not_even_begin_is_no_failure_of_the_guest(clock: Clock) -> None:
    plan = Plan(Kind.LIVENESS, ExecCheck(("true",)), 0, 10, 1, 1, 3, None)
    said = await Asker(ThisMac(), BusyTart()).ask(plan, "ci-runner", HERE)
    assert said.outcome is ProbeResult.UNKNOWN
    assert clock.monotonic() < TART_WAIT_S + 5


@pytest.mark.real_time
async def test_a_port_that_is_open_passes_and_one_that_is_closed_fails(clock: Clock) -> None:
    async with serving(never_answer) as port:
        assert await ask(TcpCheck(port), clock) == Answer(ProbeResult.PASSED)
    said = await ask(TcpCheck(port), clock)
    assert said.outcome is ProbeResult.FAILED
    assert str(port) in said.text


PORT_CHECKS = [TcpCheck(9), HttpCheck(9, "/", ())]


@pytest.mark.parametrize("check", PORT_CHECKS, ids=["tcp", "http"])
@pytest.mark.real_time
async def test_a_host_without_descriptors_is_no_failure_of_the_guest(clock: Clock, check: Check) -> None:
    """I7 and I12: an agent that had run out of files would have ended every guest with a liveness probe."""
    with no_descriptors():
        said = await ask(check, clock)
    assert said.outcome is ProbeResult.UNKNOWN
    assert "Too many open files" in said.text


class OddMac:
    """A Mac whose connections come to something after a while; `then` is an error, or what the guest says."""

    def __init__(self, then: Exception | bytes, *, after_s: float = 0.0, says_after_s: float = 0.0) -> None:
        self.then = then
        self.after_s = after_s
        self.says_after_s = says_after_s

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Self:
        await asyncio.sleep(self.after_s)
        if isinstance(self.then, Exception):
            raise self.then
        return self

    async def write(self, data: bytes) -> None: ...

    async def read(self) -> bytes:
        await asyncio.sleep(self.says_after_s)
        assert isinstance(self.then, bytes)
        return self.then

    async def aclose(self) -> None: ...


async def ask_odd(mac: OddMac, check: Check) -> Answer:
    plan = Plan(Kind.LIVENESS, check, 0, 10, 1, 1, 3, None)
    return await Asker(cast(Mac, mac), BusyTart()).ask(plan, "ci-runner", HERE)


@pytest.mark.parametrize("check", PORT_CHECKS, ids=["tcp", "http"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unreachable("refused"), ProbeResult.FAILED),
        (DeadlineExceeded("silent"), ProbeResult.FAILED),
        (Transient("/sbin/ifconfig cannot be started: Resource temporarily unavailable"), ProbeResult.UNKNOWN),
        (BadInput("/sbin/ifconfig cannot be started: no such program"), ProbeResult.UNKNOWN),
        (OSError("no fork"), ProbeResult.UNKNOWN),
    ],
)
async def test_only_what_the_guest_did_is_its_failure(check: Check, error: Exception, outcome: ProbeResult) -> None:
    """I7 and I12: whatever went wrong on the way to a guest counted against it."""
    assert (await ask_odd(OddMac(error), check)).outcome is outcome


@pytest.mark.parametrize("check", PORT_CHECKS, ids=["tcp", "http"])
async def test_a_host_that_is_slow_to_connect_takes_nothing_of_the_guests_time(check: Check) -> None:
    """I12: the host's own lookup came off the second that a guest has by default."""
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    assert await ask_odd(OddMac(good, after_s=3.0, says_after_s=0.5), check) == Answer(ProbeResult.PASSED)


@pytest.mark.parametrize("check", PORT_CHECKS, ids=["tcp", "http"])
async def test_a_host_that_never_connects_holds_no_probe_and_is_no_failure(clock: Clock, check: Check) -> None:
    """I13."""
    said = await ask_odd(OddMac(b"", after_s=10_000), check)
    assert said.outcome is ProbeResult.UNKNOWN
    assert clock.monotonic() <= HOST_WAIT_S + 5


@pytest.mark.parametrize(
    ("status", "passes"), [(200, True), (204, True), (302, True), (399, True), (400, False), (404, False), (503, False)]
)
@pytest.mark.real_time
async def test_a_page_passes_by_its_status(clock: Clock, status: int, passes: bool) -> None:
    raw = f"HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving(answering(raw)) as port:
        said = await ask(HttpCheck(port, "/healthz", ()), clock)
    failed = Answer(ProbeResult.FAILED, f"HTTP probe failed with statuscode: {status}")
    assert said == (Answer(ProbeResult.PASSED) if passes else failed)


@pytest.mark.real_time
async def test_a_guest_that_takes_the_connection_and_says_nothing_fails_at_the_timeout(clock: Clock) -> None:
    async with serving(never_answer) as port:
        said = await ask(HttpCheck(port, "/", ()), clock, timeout_s=1)
    assert said == Answer(ProbeResult.FAILED, f"{HERE}:{port} did not answer within 1 s")


@pytest.mark.parametrize("raw", [b"", b"\x00\xff" * 50, b"HTTP/1.1 two hundred\r\n\r\n", b"SSH-2.0-OpenSSH_9.9\r\n"])
@pytest.mark.real_time
async def test_an_answer_that_is_not_http_is_a_failure_and_no_error(clock: Clock, raw: bytes) -> None:
    async with serving(answering(raw)) as port:
        said = await ask(HttpCheck(port, "/", ()), clock)
    assert said.outcome is ProbeResult.FAILED


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
    assert said.outcome is ProbeResult.FAILED
    assert token.reveal()[:10] not in said.text  # not even the part that fits


@given(st.text())
def test_an_answer_is_one_bounded_line(text: str) -> None:
    line = shown(text)
    assert len(line) <= LONGEST_ANSWER_CHARS
    assert line.isprintable()


class CountingRegistry(Registry):
    """Knows how much text it was made to look through, which is what redacting costs."""

    looked_at_chars = 0

    def spans(self, text: str) -> list[tuple[int, int]]:
        self.looked_at_chars += len(text)
        return super().spans(text)


@pytest.mark.parametrize("said", ["x" * (1 << 20), "\n" * (1 << 20), "vnc://" * 100_000], ids=["long", "empty", "odd"])
def test_a_guest_that_says_a_lot_does_not_hold_the_agent(said: str) -> None:
    """A probe whose command printed a mebibyte stopped everything else on the host for a third of a second, each time."""
    registry = CountingRegistry()
    with registering_in(registry):
        shown(said)
    assert registry.looked_at_chars <= 3 * (LOOKED_AT_CHARS + LONGEST_SECRET_CHARS)


@pytest.mark.parametrize("before", [LONGEST_ANSWER_CHARS - 5, LOOKED_AT_CHARS - 5, LOOKED_AT_CHARS + LONGEST_SECRET_CHARS - 5])
def test_no_half_of_a_secret_is_shown_wherever_the_text_is_cut(before: int) -> None:
    """I9: what was cut through would not be recognised."""
    token = Secret("ghs_" + "0123456789abcdef" * 20)
    for filler in ("x" * before, " " * before, "\n" * before):
        assert token.reveal()[:4] not in shown(filler + token.reveal() + "and more " * 10_000)


def test_secrets_that_shrink_to_a_mask_do_not_pull_half_of_another_into_sight() -> None:
    token = Secret("ghs_" + "0123456789abcdef" * 100)
    assert token.reveal()[:4] not in shown(f"{token.reveal()} " * 100)


@pytest.mark.real_time
async def test_what_a_command_says_first_is_shown_although_it_says_more_than_anybody_reads(clock: Clock) -> None:
    said = await ask(ExecCheck(("/bin/sh", "-c", "echo; echo no disk; head -c 500000 /dev/zero; exit 1")), clock)
    assert said == Answer(ProbeResult.FAILED, "no disk")
