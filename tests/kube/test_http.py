"""The HTTP transport against a real server on loopback."""

import asyncio
import base64
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from applecart import __version__
from applecart.clock import Clock, SystemClock
from applecart.errors import DeadlineExceeded, NeverSent, Unreachable
from applecart.kube import http as module
from applecart.kube.auth.credentials import NO_CREDENTIAL, ClientCertificate, Credential, Credentials, FixedCredentials
from applecart.kube.endpoint import Endpoint
from applecart.kube.http import AnswerTooLarge, HttpTransport
from applecart.kube.tls import TlsFailure
from applecart.kube.transport import Request, Response
from applecart.secrets import Secret
from tests.kube.api_stand_in import ApiStandIn, Certificates

pytestmark = pytest.mark.real_time

VERSION = Request("GET", "/version")
SHORT_S = 0.05  # a deadline that surely passes, because the server never answers


class Vault:
    """Credentials that hand out the next one when the current one is refused."""

    def __init__(self, *credentials: Credential) -> None:
        self._credentials = list(credentials)
        self.refusals = 0

    async def get(self, rejected: Credential | None = None) -> Credential:
        if rejected is not None and rejected is self._credentials[0]:
            self.refusals += 1
            if len(self._credentials) > 1:
                self._credentials.pop(0)
        return self._credentials[0]

    async def aclose(self) -> None: ...


def token(value: str) -> Credential:
    return Credential("bearer token (field token)", Secret(value))


@pytest.fixture
async def stand_in() -> AsyncIterator[ApiStandIn]:
    async with ApiStandIn().serving() as serving:
        yield serving


@contextlib.asynccontextmanager
async def reaching(server: str, credentials: Credentials | None = None, **fields: Any) -> AsyncIterator[HttpTransport]:
    endpoint = Endpoint(server=server, server_from="field server", **fields)
    transport = HttpTransport(endpoint, credentials or FixedCredentials(NO_CREDENTIAL), SystemClock(), {})
    try:
        yield transport
    finally:
        await transport.aclose()


async def test_a_call_arrives_as_it_was_meant(stand_in: ApiStandIn) -> None:
    request = Request(
        "PATCH",
        "/api/v1/namespaces/ci/pods/a%20b",
        query=(("fieldManager", "applecart"), ("labelSelector", "a=b,c in (d)")),
        body=b'{"a": 1}',
        content_type="application/merge-patch+json",
        accept="application/json;as=Table",
    )
    async with reaching(f"{stand_in.url}/k8s/c-1") as transport:
        response = await transport.send(request)
    seen = stand_in.seen[0]
    assert (seen.method, seen.path) == ("PATCH", "/k8s/c-1/api/v1/namespaces/ci/pods/a%20b")
    assert seen.query == request.query
    assert seen.body == b'{"a": 1}'
    assert seen.headers["content-type"] == ["application/merge-patch+json"]
    assert seen.headers["accept"] == ["application/json;as=Table"]
    assert seen.headers["user-agent"] == [f"applecart/{__version__}"]
    assert (response.status, response.headers["retry-after"]) == (404, "7")


async def test_a_call_without_a_body_has_no_content_type(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        await transport.send(VERSION)
    assert "content-type" not in stand_in.seen[0].headers


async def test_calls_one_after_another_share_a_connection(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        for _ in range(5):
            await transport.send(VERSION)
    assert {seen.connection for seen in stand_in.seen} == {0}


async def test_impersonation_travels_as_repeated_headers(stand_in: ApiStandIn) -> None:
    headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    async with reaching(stand_in.url, FixedCredentials(Credential("a test", impersonation=headers))) as transport:
        await transport.send(VERSION)
    assert stand_in.seen[0].headers["impersonate-group"] == ["a", "b"]


async def test_a_refused_credential_is_replaced_and_the_call_replayed_once_with_its_body(stand_in: ApiStandIn) -> None:
    stand_in.tokens = {"token-two-of-vault"}
    vault = Vault(token("token-one-of-vault"), token("token-two-of-vault"))
    async with reaching(stand_in.url, vault) as transport:
        response = await transport.send(Request("POST", "/api/v1/namespaces", body=b"{}"))
    assert response.status == 404
    assert [seen.body for seen in stand_in.seen] == [b"{}", b"{}"]


async def test_a_credential_that_cannot_be_replaced_is_not_tried_twice(stand_in: ApiStandIn) -> None:
    stand_in.tokens = set()
    async with reaching(stand_in.url, Vault(token("only-token-of-vault"))) as transport:
        assert (await transport.send(VERSION)).status == 401
    assert len(stand_in.seen) == 1


async def test_a_fresh_credential_that_is_refused_too_ends_the_call(stand_in: ApiStandIn) -> None:
    stand_in.tokens = set()
    vault = Vault(token("token-one-of-vault"), token("token-two-of-vault"), token("token-three-of-vault"))
    async with reaching(stand_in.url, vault) as transport:
        assert (await transport.send(VERSION)).status == 401
    assert len(stand_in.seen) == 2


async def test_a_refusal_names_the_credential_but_not_its_value(stand_in: ApiStandIn) -> None:
    stand_in.tokens = set()
    async with reaching(stand_in.url, FixedCredentials(token("only-token-of-vault"))) as transport:
        body = json.loads((await transport.send(VERSION)).body)
    assert body["message"] == f"{stand_in.url} refuses the bearer token (field token); replace it"
    assert body["reason"] == "Unauthorized"


async def test_a_refused_token_that_expired_is_told_as_expired(stand_in: ApiStandIn, clock: Clock) -> None:
    stand_in.tokens = set()
    ended = clock.now() - timedelta(hours=5, minutes=1)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ended.timestamp()}).encode()).decode()
    async with reaching(stand_in.url, FixedCredentials(token(f"e30.{claims}.c2ln"))) as transport:
        body = json.loads((await transport.send(VERSION)).body)
    assert body["message"] == f"{stand_in.url} refuses the bearer token (field token): it expired 5 h ago; replace it"


async def test_a_call_without_a_credential_is_told_to_add_one(stand_in: ApiStandIn) -> None:
    stand_in.tokens = set()
    async with reaching(stand_in.url) as transport:
        assert b"is used without a credential; add a user" in (await transport.send(VERSION)).body


async def test_a_redirect_is_not_followed_because_it_would_carry_the_credential_away(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        assert (await transport.send(Request("GET", "/away"))).status == 302


async def test_a_compressed_answer_is_unpacked(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        assert (await transport.send(Request("GET", "/gzipped"))).body == b"x" * 100_000
    assert "gzip" in stand_in.seen[0].headers["accept-encoding"][0]


async def test_compression_can_be_declined(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url, disable_compression=True) as transport:
        await transport.send(VERSION)
    assert stand_in.seen[0].headers["accept-encoding"] == ["identity"]


async def test_an_answer_over_the_limit_is_dropped(stand_in: ApiStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BODY_BYTES", 1 << 20)
    async with reaching(stand_in.url) as transport:
        at_limit = Request("GET", "/big", query=(("bytes", str(1 << 20)),))
        assert len((await transport.send(at_limit)).body) == 1 << 20
        with pytest.raises(AnswerTooLarge, match="GET /big: the answer is larger than 1 MiB"):
            await transport.send(Request("GET", "/big", query=(("bytes", str((1 << 20) + 1)),)))
        assert (await transport.send(VERSION)).status == 200


async def test_a_server_that_never_answers_is_given_up_at_the_deadline(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        with pytest.raises(DeadlineExceeded, match=rf"^GET /silence: {stand_in.url} did not answer within 0.05 s$"):
            await transport.send(Request("GET", "/silence", deadline_s=SHORT_S))
        with pytest.raises(DeadlineExceeded):
            await transport.open(Request("GET", "/silence", deadline_s=SHORT_S))
        assert (await transport.send(VERSION)).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_a_call_whose_connection_breaks_is_not_repeated(stand_in: ApiStandIn, method: str) -> None:
    """aiohttp would repeat a GET or DELETE on its own; whether that is safe only the caller knows."""
    async with reaching(stand_in.url) as transport:
        await transport.send(VERSION)
        with pytest.raises(Unreachable) as caught:
            await transport.send(Request(method, "/hangup"))
    assert not isinstance(caught.value, NeverSent)
    assert [seen.path for seen in stand_in.seen] == ["/version", "/hangup"]


async def test_a_closed_port_is_told_with_its_field() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with reaching(f"https://127.0.0.1:{port}", FixedCredentials(token("token-for-nobody"))) as transport:
        with pytest.raises(NeverSent) as caught:
            await transport.send(VERSION)
    assert str(caught.value) == (
        f"https://127.0.0.1:{port} is unreachable (connection refused); check field server and that the server runs"
    )


async def test_an_unknown_host_name_is_told_with_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*args: Any, **kwargs: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    async with reaching("https://api.invalid:6443") as transport:
        with pytest.raises(NeverSent, match=r"^https://api.invalid:6443 is unreachable \(its host name is unknown\)"):
            await transport.send(VERSION)


async def test_a_server_that_does_not_take_connections_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_DEADLINE_S", SHORT_S)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes the connection, but never speaks TLS on it
        async with reaching(f"https://127.0.0.1:{mute.getsockname()[1]}") as transport:
            with pytest.raises(NeverSent, match="does not accept a connection in time; check field server"):
                await transport.send(VERSION)


async def test_an_answer_that_is_not_http_is_told() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        writer.close()

    async with (
        await asyncio.start_server(babble, "127.0.0.1", 0) as server,
        reaching(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as transport,
    ):
        with pytest.raises(TlsFailure, match="does not speak plain HTTP"):
            await transport.send(VERSION)


async def test_a_stream_hands_out_what_has_arrived_and_ends_properly(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        stream = await transport.open(Request("GET", "/stream"))
        for chunk in (b'{"type":"ADDED"}\n', b'{"type"'):
            stand_in.chunks.put_nowait(chunk)
            assert await stream.read() == chunk
        stand_in.chunks.put_nowait(b"")
        assert await stream.read() == b""
        await stream.aclose()
    assert stand_in.seen[0].headers["accept-encoding"] == ["identity"]


async def test_a_stream_that_breaks_off_is_lost_and_not_ended(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        stream = await transport.open(Request("GET", "/stream"))
        stand_in.chunks.put_nowait(None)
        with pytest.raises(Unreachable):
            await stream.read()
        await stream.aclose()


async def test_a_stream_that_is_given_up_can_be_closed_twice(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        stream = await transport.open(Request("GET", "/stream"))
        await stream.aclose()
        await stream.aclose()


async def test_a_stream_has_no_deadline_once_its_headers_arrived(stand_in: ApiStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    async with reaching(stand_in.url) as transport:
        stream = await transport.open(Request("GET", "/stream", deadline_s=30))
        now_s = loop.time
        monkeypatch.setattr(loop, "time", lambda: now_s() + 31)  # every timer that is still set is due
        stand_in.chunks.put_nowait(b"late")
        assert await stream.read() == b"late"
        await stream.aclose()


async def test_a_refused_stream_is_opened_again_with_a_fresh_credential(stand_in: ApiStandIn) -> None:
    stand_in.tokens = {"token-two-of-vault"}
    async with reaching(stand_in.url, Vault(token("token-one-of-vault"), token("token-two-of-vault"))) as transport:
        stream = await transport.open(Request("GET", "/stream"))
        assert stream.status == 200
        await stream.aclose()


async def test_a_stream_that_stays_refused_tells_why_in_its_body(stand_in: ApiStandIn) -> None:
    stand_in.tokens = set()
    async with reaching(stand_in.url, FixedCredentials(token("only-token-of-vault"))) as transport:
        stream = await transport.open(Request("GET", "/stream"))
        assert stream.status == 401
        assert b"refuses the bearer token (field token)" in await stream.read()
        assert await stream.read() == b""
        await stream.aclose()


async def test_closing_ends_calls_under_way_as_unreachable(stand_in: ApiStandIn) -> None:
    async with reaching(stand_in.url) as transport:
        waiting = asyncio.create_task(transport.send(Request("GET", "/silence")))
        stream = await transport.open(Request("GET", "/stream"))
        await stand_in.arrived.wait()
        await transport.aclose()
        with pytest.raises(Unreachable, match="was closed"):
            await waiting
        with pytest.raises(Unreachable, match="was closed"):
            await stream.read()
        await stream.aclose()
        with pytest.raises(Unreachable, match="was closed"):
            await transport.send(VERSION)


async def test_a_renewed_client_certificate_is_shown_on_a_new_connection(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)

    def shown(user: str) -> Credential:
        pair = certificates.client(user)
        return Credential("a test", certificate=ClientCertificate(pair.certificate_pem.decode(), pair.key_pem, "c", "k"))

    vault = Vault(shown("old-robot"), shown("new-robot"))
    async with (
        ApiStandIn().serving(certificates.server_context()) as api,
        reaching(api.url, vault, ca_pem=certificates.ca_pem) as transport,
    ):
        await transport.send(VERSION)
        await vault.get(rejected=await vault.get())
        await transport.send(VERSION)
        await transport.send(VERSION)
    assert [(seen.client, seen.connection) for seen in api.seen] == [("old-robot", 0), ("new-robot", 1), ("new-robot", 1)]


class Tunnel:
    """An HTTP proxy that knows CONNECT, and remembers where to."""

    def __init__(self, opens: bool = True) -> None:
        self.targets: list[str] = []
        self._opens = opens

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode()
        self.targets.append(line)
        if not self._opens:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            writer.close()
            return
        host, port = line.split()[1].split(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pump(reader, up_writer), self._pump(up_reader, writer))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(1 << 16):
                sink.write(chunk)
            sink.close()


async def test_a_proxy_is_asked_for_a_tunnel_and_tls_is_spoken_through_it(tmp_path: Path) -> None:
    certificates, tunnel = Certificates(tmp_path), Tunnel()
    async with (
        ApiStandIn().serving(certificates.server_context()) as api,
        await asyncio.start_server(tunnel.handle, "127.0.0.1", 0) as proxy,
    ):
        proxy_url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        async with reaching(api.url, ca_pem=certificates.ca_pem, proxy_url=proxy_url) as transport:
            assert (await transport.send(VERSION)).status == 200
        assert tunnel.targets == [f"CONNECT {api.url.removeprefix('https://')} HTTP/1.1"]


async def test_a_proxy_that_refuses_is_told_with_its_field() -> None:
    async with await asyncio.start_server(Tunnel(opens=False).handle, "127.0.0.1", 0) as proxy:
        proxy_url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        async with reaching("https://api.test:6443", proxy_url=proxy_url, proxy_from="field proxy-url") as transport:
            with pytest.raises(NeverSent, match=r"the proxy on the way to https://api.test:6443 .*; check field proxy-url"):
                await transport.send(VERSION)


def test_importing_the_transport_does_not_import_aiohttp() -> None:
    """aiohttp takes a quarter of a second, which every `--help` would pay."""
    program = "import sys, applecart.kube.client, applecart.kube.connect; sys.exit('aiohttp' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("is_stream", [False, True], ids=["call", "stream"])
async def test_what_is_given_up_leaves_no_connection_behind(is_stream: bool, tmp_path: Path) -> None:
    """A stopped informer left its TLS connection open, waiting for the goodbye of a server that no longer listened."""
    certificates = Certificates(tmp_path)
    asked, stopping = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if is_stream:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        asked.set()
        await stopping.wait()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=certificates.server_context())
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, reaching(url, ca_pem=certificates.ca_pem) as transport:
        if is_stream:
            stream = await transport.open(VERSION)
            assert await stream.read() == b"{}"
            before = open_files()
            await stream.aclose()
        else:
            call = asyncio.create_task(transport.send(VERSION))
            await asked.wait()
            before = open_files()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await transport.aclose()
        assert open_files() == before - 1
        stopping.set()


class Spent:
    """A connection that is over, as a server says with `Connection: close`; its TLS goodbye nobody answers."""

    should_close = True

    def __init__(self) -> None:
        self.transport = self
        self.ended: list[str] = []

    def abort(self) -> None:
        self.ended.append("abort")

    def close(self) -> None:
        self.ended.append("close")


async def test_a_connection_that_is_over_by_its_own_is_let_go_without_a_goodbye() -> None:
    from aiohttp.client_reqrep import ConnectionKey

    from applecart.kube.http_connector import AbortingConnector

    connector, spent = AbortingConnector(), Spent()
    key = ConnectionKey("server", 443, True, True, None, None, None)
    connector._release(key, spent)  # type: ignore[arg-type]
    assert spent.ended == ["abort", "close"]
    await connector.close()


class Refusing(HttpTransport):
    """One whose first exchange is refused, without a network."""

    def __init__(self) -> None:
        super().__init__(Endpoint(server="https://x", server_from="x"), Vault(token("old"), token("new")), SystemClock(), {})
        self.deadlines_s: list[float] = []
        self.took_s = 0.0
        self.closed: list[int] = []

    async def _send_once(self, request: Request, credential: Credential, deadline_s: float) -> Response:
        loop = asyncio.get_running_loop()
        self.deadlines_s.append(deadline_s)
        began_s = loop.time()
        while loop.time() == began_s:  # noqa: ASYNC110 (any time at all, and nothing to wait on)
            await asyncio.sleep(0)
        self.took_s = self.took_s or loop.time() - began_s
        return Response(401 if len(self.deadlines_s) == 1 else 200)

    async def _open_once(self, request: Request, credential: Credential) -> Any:
        self.deadlines_s.append(0.0)
        return Opened(self.closed, len(self.deadlines_s))


class Opened:
    headers: dict[str, str] = {}

    def __init__(self, closed: list[int], number: int) -> None:
        self.status = 401 if number == 1 else 200
        self._closed, self._number = closed, number

    async def aclose(self) -> None:
        self._closed.append(self._number)


async def test_the_second_attempt_after_a_refused_credential_has_what_the_first_left_of_the_time() -> None:
    transport = Refusing()
    assert (await transport.send(VERSION)).status == 200
    first_s, second_s = transport.deadlines_s
    assert second_s <= first_s - transport.took_s


async def test_a_stream_that_was_refused_is_closed_before_the_next_is_opened() -> None:
    transport = Refusing()
    assert (await transport.open(VERSION)).status == 200
    assert transport.closed == [1]


def test_a_large_body_is_sent_in_pieces() -> None:
    """Sent whole, it keeps the loop from everything else."""
    assert isinstance(module._payload(b"x" * (module.WHOLE_BODY_BYTES + 1)), io.BytesIO)
    assert module._payload(b"x") == b"x"
