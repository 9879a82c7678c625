"""Nothing that arrives on the socket makes the server fail: half requests, bad framing, huge headers, no TLS at all.

Each case is one connection, answered or closed. Nothing is logged as a defect or printed, and the server goes on.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.server import front
from applecart.embedded.server.bodies import BODY_LIMIT_BYTES
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.trust.control_plane_files import LOOPBACK
from applecart.embedded.trust.pki import write_pair
from tests.embedded.server.strategies import traces

pytestmark = pytest.mark.real_time

PATIENCE_S = 60.0  # for a machine under load; no test waits so long for what it expects
SHORT_S = 0.2  # for what a server waits a minute for
HOST = b"Host: x\r\nConnection: close\r\n"
POST = b"POST /api/v1/namespaces HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def get(path: bytes, *headers: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"".join(header + b"\r\n" for header in headers) + b"\r\n"


def content(body: bytes, *headers: bytes) -> bytes:
    return POST + b"".join(header + b"\r\n" for header in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.fixture
async def server(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[EmbeddedServer]:
    monkeypatch.setattr(front, "BODY_S", SHORT_S)
    monkeypatch.setattr(front, "KEEPALIVE_S", SHORT_S)
    monkeypatch.setattr(front, "LINGERING_S", SHORT_S)
    with traces() as defects:
        async with EmbeddedServer(tmp_path / "data", clock) as running:
            yield running
            assert (await spoken(running, get(b"/version")))[:15] == b"HTTP/1.1 200 OK"
    assert defects == []
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err


async def spoken(
    server: EmbeddedServer, data: bytes, *, is_tls: bool = True, hangs_up: bool = False, is_admin: bool = False
) -> bytes:
    """All that a server says to these bytes until it closes the connection."""
    context = ssl.create_default_context(cadata=server.authority.certificate_pem.decode()) if is_tls else None
    if is_admin and context is not None:
        pair = server.authority.issue_client("admin", ("system:masters",), datetime.now(UTC))
        files = write_pair(server.folder.pki, "test-admin", pair)
        context.load_cert_chain(files.certificate, files.key)
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=context)
    try:
        writer.write(data)
        if hangs_up:
            return b""
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_bytes_that_are_no_http_are_answered_with_400(server: EmbeddedServer) -> None:
    for data in (
        b"\x00\x01\x02\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET x HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /version HTTP/1.1\r\n: a\r\n\r\n",
        get(b"http://[::1/api"),
        get(b"http://a:99999999/api"),
        get(b"/\xff\xfe"),
        get(b"/api/v1/namespaces?labelSelector=\xff"),
        get(b"/version", b"X: \x00"),
        get(b"/version", *(b"X%d: a" % number for number in range(20_000))),
        CHUNKED + b"zz\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"ffffffffffffffffff\r\n",
        POST + b"Content-Length: -5\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ):
        answer = await spoken(server, data)
        assert status_of(answer) == 400, (data[:80], answer[:200])


async def test_strange_but_correct_http_is_answered_as_the_request_it_is(server: EmbeddedServer) -> None:
    for data, status in (
        (get(b"/version", b"Cookie: =;;=\xc3\xa9"), 200),
        (get(b"/api/v1/namespaces/%ff%fe"), 403),
        (get(b"/api/v1/namespaces/%ed%a0%80?watch=%ff"), 403),
        (get(b"/api/v1/namespaces/%2e%2e/%2F/%00"), 403),
        (get(b"//evil/../api"), 403),
        (get(b"/" + b"a" * 8000), 403),
        (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 403),
        (b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n", 403),
        (content(b"{}", b"Expect: nothing"), 403),
        (content(b"{}", b"Content-Type: application/json; charset=bogus"), 403),
        (content(b"x" * (BODY_LIMIT_BYTES + 1)), 403),
    ):
        assert status_of(await spoken(server, data)) == status, data[:80]


async def test_a_token_that_is_none_is_401(server: EmbeddedServer) -> None:
    for token in (b"a.b.c", b"eyJhbGciOiJub25lIn0.e30.", b"eyJhbGciOjF9.W10.AA", b"abcdef.0123456789abcdef"):
        assert status_of(await spoken(server, get(b"/api", b"Authorization: Bearer " + token))) == 401


async def test_a_header_that_is_no_utf8_is_refused_with_a_status(server: EmbeddedServer) -> None:
    """A refusal that repeats what it refuses could not be written, and the answer was a 500."""
    for header in (
        b"Authorization: Bearer \x80",
        b"Impersonate-User: \xff",
        b"Impersonate-Group: \xff",
        b"Impersonate-Extra-%ff: \xff",
        b"User-Agent: \xff",
        b"Accept: \xff",
        b"Content-Type: \xff",
        b"If-None-Match: \xed\xa0\x80",
    ):
        answer = await spoken(server, get(b"/api/v1/pods", header))
        assert status_of(answer) == 400, header
        assert _document(answer) == ("Status", "a header of the request is not valid UTF-8")


async def test_a_body_that_is_not_compressed_as_it_says_is_refused_with_a_status(server: EmbeddedServer) -> None:
    for encoding in (b"gzip", b"deflate"):
        answer = await spoken(server, content(b"nothing of it", b"Content-Encoding: " + encoding), is_admin=True)
        assert (status_of(answer), _document(answer)[0]) == (400, "Status")


def _document(answer: bytes) -> tuple[str, str]:
    document = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
    return document["kind"], document["message"]


async def test_a_request_that_never_gets_past_its_headers_is_cut_off(server: EmbeddedServer) -> None:
    for data in (b"", b"GET /vers", b"GET /version HTTP/1.1\r\nHost: x\r\nX: "):
        assert await spoken(server, data) == b""


async def test_a_body_that_never_ends_is_refused_with_a_status(server: EmbeddedServer) -> None:
    for data in (POST + b"Content-Length: 1000000\r\n\r\n{", CHUNKED + b"5\r\nab"):
        answer = await spoken(server, data, is_admin=True)
        assert (status_of(answer), _document(answer)[0]) == (408, "Status")


async def test_a_body_that_is_too_large_is_refused_with_a_status(server: EmbeddedServer) -> None:
    large = b"x" * (BODY_LIMIT_BYTES + 1)
    for data in (content(large), CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(large), large)):
        answer = await spoken(server, data, is_admin=True)
        assert (status_of(answer), _document(answer)[0]) == (413, "Status")


async def test_a_body_is_not_read_before_it_is_known_who_may_send_it(server: EmbeddedServer) -> None:
    """Seen once: 200 unfinished bodies of nobody took 530 MB, because they were read before anybody asked whose they were."""
    for data in (POST + b"Content-Length: 1000000\r\n\r\n{", CHUNKED + b"5\r\nab"):
        answer = await spoken(server, data)
        assert (status_of(answer), _document(answer)[0]) == (403, "Status")


async def test_what_is_too_long_for_http_is_refused_with_a_status(server: EmbeddedServer) -> None:
    for data, status in (
        (get(b"/" + b"a" * 100_000), 414),
        (get(b"/api/v1/pods?labelSelector=" + b"a" * 100_000), 414),
        (get(b"/version", b"X: " + b"a" * 100_000), 431),
    ):
        answer = await spoken(server, data)
        assert (status_of(answer), _document(answer)[0]) == (status, "Status")


async def test_who_hangs_up_in_the_middle_disturbs_nobody(server: EmbeddedServer) -> None:
    for data in (b"", b"GET", get(b"/version"), content(b"{}")[:-1], CHUNKED + b"5\r\na", get(b"/api/v1/pods?watch=1")):
        await spoken(server, data, hangs_up=True)


async def test_what_is_no_tls_is_hung_up_on(server: EmbeddedServer) -> None:
    for data in (get(b"/version"), b"\x16\x03\x01\x02\x00\x01\x00" + b"garbage" * 100, b"\x00" * 1000):
        assert not (await spoken(server, data, is_tls=False)).startswith(b"HTTP/")
