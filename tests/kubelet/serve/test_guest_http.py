"""One GET to a guest, on virtual time and over a real socket."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput, DeadlineExceeded, Unreachable
from applecart.kubelet.serve.guest_http import GuestAnswer, NoAnswer, get, request_bytes
from applecart.tart.this_mac import ThisMac
from tests.kubelet.serve.pages import PagesMac, page

AT = ("192.168.64.5", 9091)


@pytest.fixture
def mac() -> PagesMac:
    return PagesMac()


async def fetch(mac: PagesMac, path: str = "/metrics", limit_bytes: int = 1000) -> GuestAnswer:
    return await get(mac.as_mac, *AT, path, {"Accept": "text/plain"}, 10.0, limit_bytes)


async def test_a_page_is_fetched_and_the_connection_closed(mac: PagesMac) -> None:
    mac.pages[AT] = page(b"up 1\n")
    status, headers, body = await fetch(mac)
    assert (status, headers["content-type"], body) == (200, "text/plain", b"up 1\n")
    assert mac.connections[0].is_closed
    assert mac.connections[0].request == (
        b"GET /metrics HTTP/1.1\r\nHost: 192.168.64.5:9091\r\nUser-Agent: tart-kubelet\r\nAccept: text/plain\r\n"
        b"Connection: close\r\n\r\n"
    )


async def test_a_guest_that_keeps_the_connection_open_holds_nobody(mac: PagesMac) -> None:
    """Incident 40: the first forwarder copied bytes until the guest closed, and hung on every kept connection."""
    mac.pages[AT] = page()
    mac.stays_open = True
    assert (await fetch(mac)).status == 200


async def test_a_guest_that_does_not_finish_is_given_up_at_the_deadline(mac: PagesMac) -> None:
    mac.pages[AT] = page()[:-1]
    mac.stays_open = True
    with pytest.raises(DeadlineExceeded, match="within 10 s"):
        await fetch(mac)
    assert mac.connections[0].is_closed


async def test_a_body_is_cut_at_the_limit(mac: PagesMac) -> None:
    mac.pages[AT] = page(b"x" * 5000)
    assert (await fetch(mac, limit_bytes=10)).body == b"x" * 10


async def test_what_is_no_answer_is_a_sentence(mac: PagesMac) -> None:
    mac.pages[AT] = b"SSH-2.0-OpenSSH_9.0\r\n\r\n"
    with pytest.raises(NoAnswer, match="the answer is not HTTP"):
        await fetch(mac)
    mac.pages[AT] = b""
    with pytest.raises(NoAnswer, match="before it had answered"):
        await fetch(mac)


async def test_a_guest_that_is_not_there_is_unreachable(mac: PagesMac) -> None:
    with pytest.raises(Unreachable):
        await fetch(mac)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("metrics", {}),
        ("", {}),
        ("/a b", {}),
        ("/x HTTP/1.1\r\nHost: other", {}),
        ("/", {"X\r\nY": "z"}),
        ("/", {"X": "z\r\nY: z"}),
        ("/", {"": "z"}),
    ],
)
def test_nothing_can_be_smuggled_into_a_request(path: str, headers: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        request_bytes("10.0.0.1", 80, path, headers)


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_a_request_has_one_head_or_is_refused(path: str, headers: dict[str, str]) -> None:
    try:
        request = request_bytes("10.0.0.1", 80, path, headers)
    except BadInput:
        return
    assert request.count(b"\r\n\r\n") == 1
    assert request.count(b"Connection:") == 1


def test_a_header_of_the_caller_replaces_ours_and_never_how_the_body_ends() -> None:
    request = request_bytes("fd00::1", 80, "/", {"host": "guest", "user-agent": "kube-probe/1", "Connection": "keep-alive"})
    assert b"host: guest\r\n" in request
    assert b"tart-kubelet" not in request
    assert b"keep-alive" not in request
    assert b"Host: [fd00::1]:80\r\n" in request_bytes("fd00::1", 80, "/", {})


@pytest.mark.real_time
async def test_over_a_real_socket() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(page(b"y" * 100_000))
        await writer.drain()
        await reader.read()  # as a server that waits for the next request
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await get(ThisMac(), "127.0.0.1", port, "/metrics", {}, 20.0, 1 << 20)
    assert answer.body == b"y" * 100_000
