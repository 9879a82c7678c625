"""Strangers at a page."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from applecart.clock import Clock
from applecart.observe import connection_limit
from applecart.observe.connection_limit import NO_FILES_TOLD, LimitedListener, server_log
from tests.embedded.relay.stage import Trust
from tests.observe.stranger import HOST, heard
from tests.tart.exhausted import no_descriptors

LOGGER = "tests.observe.connection_limit"
WITHIN_S = 20.0
ASK = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[web.Server]:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text="hello")

    served = web.Server(answer, logger=server_log(LOGGER), access_log=None)
    yield served
    await served.shutdown(0)


@pytest.mark.real_time
async def test_only_so_many_are_let_in_and_there_is_room_again_when_one_goes(server: web.Server) -> None:
    listener = await LimitedListener.open(server, HOST, 0, most=2)
    try:
        staying = [await asyncio.open_connection(HOST, listener.addresses[0][1]) for _ in range(2)]
        for _, writer in staying:
            writer.write(ASK)
        assert [b"200 OK" in await reader.readuntil(b"\r\n\r\n") for reader, _ in staying] == [True, True]
        assert await heard(listener.addresses[0][1], ASK) == b""
        staying[0][1].transport.abort()
        async with asyncio.timeout(60):
            while not (said := await heard(listener.addresses[0][1], ASK)):
                pass
        assert b"200 OK" in said
        staying[1][1].close()
    finally:
        listener.close()


@pytest.mark.real_time
async def test_who_finds_a_door_with_tls_full_is_not_even_shaken_hands_with(
    server: web.Server, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full listener waited seconds for the handshake of each that it was to close, and a flood took every file there was."""
    monkeypatch.setattr(connection_limit, "HANDSHAKE_S", 600.0)
    trust = Trust(tmp_path, clock)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trust.agent.certificate, trust.agent.key)
    listener = await LimitedListener.open(server, HOST, 0, context=context, most=1)
    port = listener.addresses[0][1]
    try:
        known = ssl.create_default_context(cadata=trust.pem.decode())
        reader, writer = await asyncio.open_connection(HOST, port, ssl=known)
        writer.write(ASK)
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(60):
            for _ in range(20):
                assert await heard(port, b"") == b""
        writer.close()
    finally:
        listener.close()


class Arrived(asyncio.Transport):
    """One that came, and may still be shaking hands."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted = False

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def let_in(listener: LimitedListener, arrived: Arrived) -> bool:
    return isinstance(listener.enter(arrived), web.RequestHandler)


async def test_those_who_may_still_shake_hands_count_until_they_are_given_up(server: web.Server) -> None:
    """A connection takes its file before anything was said on it."""
    listener = LimitedListener(server, 3)
    came = [Arrived() for _ in range(5)]
    assert [let_in(listener, one) for one in came] == [True, True, True, False, False]
    came[1].abort()
    assert let_in(listener, later := Arrived())
    assert not let_in(listener, Arrived())
    assert not later.is_aborted


async def test_a_full_listener_lets_the_next_one_in_for_those_that_it_is_told_to_close(server: web.Server) -> None:
    listener = LimitedListener(server, 3, those_to_go=lambda inside: inside[:1])
    came = [Arrived() for _ in range(10)]
    assert all(let_in(listener, one) for one in came)
    assert [one.is_aborted for one in came] == [True] * 7 + [False] * 3


async def test_a_connection_whose_arrival_goes_wrong_is_cut_and_told(
    server: web.Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It stayed open, spoke with nobody and kept its file."""

    def surprised() -> None:
        raise MemoryError

    listener = LimitedListener(server, 3)
    monkeypatch.setattr(listener, "_server", surprised)
    connection_limit._Arrival(listener, None).connection_made(arrived := Arrived())
    assert arrived.is_aborted
    assert [(record.name, record.message) for record in caplog.records] == [
        (connection_limit.__name__, "a connection could not be let in")
    ]


async def test_a_flood_is_told_once_until_it_is_over(server: web.Server, caplog: pytest.LogCaptureFixture) -> None:
    listener = LimitedListener(server, 1)
    for _ in range(2):
        for one in (came := [Arrived() for _ in range(10)]):
            listener.enter(one)
        came[0].abort()
        let_in(listener, only := Arrived())
        only.abort()
    assert [record.name for record in caplog.records if "too many connections" in record.getMessage()] == [
        connection_limit.__name__
    ] * 2


@pytest.mark.real_time
async def test_running_out_of_files_is_one_line_and_not_one_for_each_attempt(
    server: web.Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen once: asyncio wrote 125,951 lines, each with a trace."""
    monkeypatch.setattr(logging.getLogger("asyncio"), "filters", [])
    monkeypatch.setattr(connection_limit._once_a_minute, "told_s", 0.0)
    monkeypatch.setattr(asyncio.constants, "ACCEPT_RETRY_DELAY", 0)
    attempts: list[object] = []
    many = asyncio.Event()

    def noted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        attempts.append(context.get("exception"))
        if len(attempts) == 1000:
            many.set()
        loop.default_exception_handler(context)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(noted)
    listener = await LimitedListener.open(server, HOST, 0)
    with socket.socket() as client:
        with no_descriptors():
            client.connect(listener.addresses[0])  # the kernel takes it, and asyncio has no file for it
            async with asyncio.timeout(WITHIN_S):
                await many.wait()
        client.setblocking(False)
        await loop.sock_sendall(client, ASK)
        async with asyncio.timeout(WITHIN_S):
            assert b"200 OK" in await loop.sock_recv(client, 1000)  # let in as soon as there is one
    listener.close()
    assert {getattr(error, "errno", None) for error in attempts} == {errno.EMFILE}
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [(NO_FILES_TOLD, None)]


@pytest.mark.real_time
@pytest.mark.parametrize(
    "asked",
    [
        b"GET / HTTP/1.1\r\nAuthorization: Bearer hunter2hunter2\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization : Bearer hunter2hunter2\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization: Bearer hunter2" + b"x" * 20_000 + b"\r\n\r\n",
    ],
    ids=["control character", "space", "too long"],
)
async def test_a_request_that_cannot_be_read_is_answered_and_not_repeated_in_the_log(
    server: web.Server, caplog: pytest.LogCaptureFixture, asked: bytes
) -> None:
    """I9: aiohttp logs the line that it does not understand, and the line may hold a token."""
    listener = await LimitedListener.open(server, HOST, 0)
    try:
        assert b" 400 " in await heard(listener.addresses[0][1], asked)
    finally:
        listener.close()
    assert "hunter2" not in caplog.text


def test_what_goes_wrong_on_our_own_side_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("ours")
    except ValueError:
        server_log(LOGGER).exception("Error handling request")
        server_log(LOGGER).warning("no error at all")
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
    assert sum(len(logging.getLogger(LOGGER).filters) for _ in (server_log(LOGGER), server_log(LOGGER))) == 2
