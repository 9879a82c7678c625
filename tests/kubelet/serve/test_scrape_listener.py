"""The server before a guest's metrics, and the strangers who reach it."""

import asyncio
import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest

from applecart.clock import Clock
from applecart.kubelet.serve.scrape import Scrape, ScrapeAnswer, ScrapeRequest
from applecart.kubelet.serve.scrape_listener import MOST_CONNECTIONS, HttpListening, listen_http
from applecart.kubelet.serve.scrape_sources import DEFAULT_ALLOWED
from tests.kubelet.serve.pages import PagesMac
from tests.observe.stranger import HOST, heard

pytestmark = pytest.mark.real_time

GUEST = ("192.168.64.5", 9091)
ASK = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"
TOKEN = "not-for-a-log"


@pytest.fixture
async def listening() -> AsyncIterator[HttpListening]:
    async def answer(request: ScrapeRequest) -> ScrapeAnswer:
        return ScrapeAnswer(200, request.path.encode())

    listening = await listen_http(HOST, 0, answer)
    yield listening
    await listening.aclose()


@pytest.mark.parametrize(
    "asked",
    [
        f"GET /metrics HTTP/1.1\r\nAuthorization Bearer {TOKEN}\r\n\r\n",
        f"GET /metrics HTTP/1.1\r\nAuthorization: Bearer \x00{TOKEN}\r\n\r\n",
        f"{TOKEN}\r\n\r\n",
    ],
)
async def test_a_request_that_cannot_be_read_leaves_nothing_in_the_log(
    listening: HttpListening, caplog: pytest.LogCaptureFixture, asked: str
) -> None:
    """I9: the text of such a request, with its credential, stood in the agent's log beside a traceback."""
    assert b"400 Bad Request" in await heard(listening.port, asked.encode())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert TOKEN not in caplog.text


async def test_only_so_many_connections_are_held(listening: HttpListening) -> None:
    """Each costs the agent a file, and one without files can start no program."""
    staying = [await asyncio.open_connection(HOST, listening.port) for _ in range(MOST_CONNECTIONS)]
    for reader, writer in staying:
        writer.write(ASK)
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
    assert await heard(listening.port, ASK) == b""
    for _, writer in staying:
        writer.close()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\nX-Evil: 1\r\nContent-Length: 2\r\n\r\nhi", 502),
        (b"HTTP/1.1 200 OK\r\nContent-Type: \x00\x01\r\nContent-Length: 2\r\n\r\nhi", 502),
        (b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nhi", 502),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nhi", 999),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate, \xff\r\nContent-Length: 2\r\n\r\nhi", 200),
        (b"HTTP/1.1 200 OK\r\nContent-Type: ;;;charset=\xe9\r\nContent-Length: 2\r\n\r\nhi", 200),
    ],
)
async def test_no_answer_of_a_guest_ends_in_a_traceback(
    clock: Clock, caplog: pytest.LogCaptureFixture, answer: bytes, status: int
) -> None:
    """A guest's Content-Type with a bare newline ended the connection of whoever scraped it, with a traceback in the log."""
    mac = PagesMac()
    mac.pages[GUEST] = answer

    async def where() -> str | None:
        return GUEST[0]

    scrape = Scrape(mac.as_mac, GUEST[1], DEFAULT_ALLOWED, where, clock)
    listening = await listen_http(HOST, 0, scrape.answer)
    try:
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.get(f"http://{HOST}:{listening.port}/metrics") as heard,
        ):
            assert heard.status == status
            assert "X-Evil" not in heard.headers
    finally:
        await listening.aclose()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
