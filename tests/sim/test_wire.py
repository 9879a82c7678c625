"""Each fault of the chaos proxy does what it says, between a real client and a real server on loopback."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from applecart.embedded.trust.pki import load_or_create_authority, write_pair
from applecart.errors import BadInput
from applecart.sim.wire import ChaosProxy
from applecart.sim.wire_faults import Answer, Cut, Delay, Duplicate, Fault, HalfClose, LoseAnswer, RandomPlan, Stall, in_turn

pytestmark = pytest.mark.real_time

BODY = b"0123456789" * 1000
GIVE_UP_S = 60.0  # of a test that would otherwise hang; it takes milliseconds


class Server:
    """Answers with BODY, echoes what is posted, streams what `say` is told."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.stream_ended = asyncio.Event()
        self._runner = web.AppRunner(self._app(), handler_cancellation=True, shutdown_timeout=0.1)

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_get("/body", self._body)
        app.router.add_post("/echo", self._echo)
        app.router.add_get("/stream", self._stream)
        return app

    async def start(self, context: ssl.SSLContext | None = None) -> str:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = self._runner.addresses[0][1]
        return f"{'https' if context else 'http'}://127.0.0.1:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _body(self, request: web.Request) -> web.Response:
        self.requests.append("GET /body")
        return web.Response(body=BODY)

    async def _echo(self, request: web.Request) -> web.Response:
        self.requests.append("POST /echo")
        return web.Response(body=await request.read(), headers={"x-agent": request.headers["User-Agent"]})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self.requests.append("GET /stream")
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(await self.lines.get())
        finally:
            self.stream_ended.set()
        return response


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    yield server
    await server.stop()


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[ChaosProxy]:
    async with ChaosProxy(await server.start()) as proxy:
        yield proxy


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        session._retry_connection = False  # a repeated request would meet the next fault of the plan
        yield session


async def get_body(session: aiohttp.ClientSession, proxy: ChaosProxy) -> bytes:
    async with session.get(f"{proxy.url}/body") as answer:
        assert answer.status == 200
        return await answer.read()


async def test_without_a_plan_requests_and_answers_pass_unchanged(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession
) -> None:
    assert await get_body(session, proxy) == BODY
    async with session.post(f"{proxy.url}/echo", data=BODY, headers={"User-Agent": "me"}) as answer:
        assert (await answer.read(), answer.headers["x-agent"]) == (BODY, "me")
    assert server.requests == ["GET /body", "POST /echo"]
    assert proxy.counts == {"connections": 2}
    assert proxy.facts == []


async def test_a_server_behind_tls_is_reached_with_the_given_context(
    tmp_path: Path, server: Server, session: aiohttp.ClientSession
) -> None:
    now = datetime.now(UTC)
    authority = load_or_create_authority(tmp_path, "ca", now)
    pair = write_pair(tmp_path, "server", authority.issue_server(["127.0.0.1"], now))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pair.certificate, pair.key)
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    async with ChaosProxy(await server.start(serving), context=trusting) as proxy:
        assert await get_body(session, proxy) == BODY


@pytest.mark.parametrize(("status", "retry_after_s"), [(409, None), (410, None), (429, 3), (500, None), (503, 0)])
async def test_an_answer_in_the_servers_place_does_not_reach_the_server(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession, status: int, retry_after_s: int | None
) -> None:
    proxy.plan = in_turn([Answer(status, retry_after_s)])
    async with session.get(f"{proxy.url}/body") as answer:
        said = await answer.json()
        assert (answer.status, said["kind"], said["code"]) == (status, "Status", status)
        assert answer.headers.get("Retry-After") == (None if retry_after_s is None else str(retry_after_s))
    assert server.requests == []
    assert await get_body(session, proxy) == BODY


@pytest.mark.parametrize("after_bytes", [0, 10, 150, 5000])
async def test_a_cut_resets_the_connection_at_its_place(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession, after_bytes: int
) -> None:
    proxy.plan = in_turn([Cut(after_bytes)])
    with pytest.raises(aiohttp.ClientError):
        await get_body(session, proxy)
    assert server.requests == ["GET /body"]
    assert proxy.facts == [f"#1 GET /body: Cut(after_bytes={after_bytes})"]
    assert proxy.counts["Cut"] == 1


async def raw_answer(proxy: ChaosProxy) -> tuple[bytes, bool]:
    """What one request brings on the wire, and whether the connection was reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    writer.write(b"GET /body HTTP/1.1\r\nHost: x\r\n\r\n")
    received = b""
    try:
        while chunk := await reader.read(1 << 16):
            received += chunk
    except ConnectionResetError:
        return received, True
    finally:
        writer.close()
    return received, False


async def test_a_slow_client_gets_the_whole_answer(server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession) -> None:
    sent = BODY * 300
    async with session.post(f"{proxy.url}/echo", data=io.BytesIO(sent)) as answer:
        received = b""
        while chunk := await answer.content.read(1 << 16):
            received += chunk
            await asyncio.sleep(0)
    assert received == sent


async def test_a_cut_is_a_reset_and_a_half_close_is_an_end(proxy: ChaosProxy) -> None:
    proxy.plan = in_turn([Cut(500), HalfClose(500)])
    _, was_reset = await raw_answer(proxy)
    assert was_reset
    received, was_reset = await raw_answer(proxy)
    assert (len(received), was_reset) == (500, False)


async def test_a_half_close_inside_a_body_is_noticed_by_the_client(proxy: ChaosProxy, session: aiohttp.ClientSession) -> None:
    proxy.plan = in_turn([HalfClose(1000)])
    with pytest.raises(aiohttp.ClientPayloadError):
        await get_body(session, proxy)


async def test_a_duplicate_sends_the_last_bytes_twice(proxy: ChaosProxy) -> None:
    clean, _ = await raw_answer(proxy)
    proxy.plan = in_turn([Duplicate(after_bytes=len(clean) - 5, count_bytes=3)])
    struck, _ = await raw_answer(proxy)
    assert len(struck) == len(clean) + 3
    assert struck[:-8] == clean[:-5]
    assert struck[-8:] == clean[-8:-5] + clean[-5:]


async def test_a_stalled_answer_goes_on_when_released(proxy: ChaosProxy, session: aiohttp.ClientSession) -> None:
    proxy.plan = in_turn([Stall(3000)])
    async with session.get(f"{proxy.url}/body") as answer:
        first = await answer.content.readexactly(1000)
        rest = asyncio.ensure_future(answer.content.readexactly(len(BODY) - 1000))
        await proxy.until_noted(1)
        assert not rest.done()
        proxy.release()
        assert first + await rest == BODY


async def test_a_stalled_connection_ends_when_the_client_gives_up(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession
) -> None:
    proxy.plan = in_turn([Stall()])
    asked = asyncio.ensure_future(session.get(f"{proxy.url}/stream"))
    await proxy.until_noted(1)
    asked.cancel()
    async with asyncio.timeout(GIVE_UP_S):
        await server.stream_ended.wait()


async def test_a_stream_passes_line_by_line(server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{proxy.url}/stream?watch=true") as answer:
        for number in range(5):
            await server.lines.put(b"%d\n" % number)
            assert await answer.content.readline() == b"%d\n" % number


async def test_a_delayed_request_reaches_the_server_only_when_released(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession
) -> None:
    proxy.plan = in_turn([Delay()])
    asked = asyncio.ensure_future(get_body(session, proxy))
    await proxy.until_noted(1)
    assert server.requests == []
    proxy.release()
    assert await asked == BODY


async def test_a_lost_answer_means_that_the_server_did_the_work(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession
) -> None:
    proxy.plan = in_turn([LoseAnswer()])
    with pytest.raises(aiohttp.ClientError):
        await session.post(f"{proxy.url}/echo", data=b"once")
    assert server.requests == ["POST /echo"]


async def test_an_outage_refuses_connections_and_resets_open_ones(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession
) -> None:
    url = proxy.url
    async with session.get(f"{proxy.url}/stream") as answer:
        await server.lines.put(b"hello\n")
        assert await answer.content.readline() == b"hello\n"
        await proxy.begin_outage()
        with pytest.raises(aiohttp.ClientError):
            await answer.content.readline()
    with pytest.raises(aiohttp.ClientConnectorError):
        await get_body(session, proxy)
    proxy.end_outage()
    assert proxy.url == url
    assert await get_body(session, proxy) == BODY


async def test_healing_ends_the_plan_the_outage_and_every_wait(proxy: ChaosProxy, session: aiohttp.ClientSession) -> None:
    faults: list[Fault] = [Delay()] * 2
    proxy.plan = in_turn(faults)
    asked = asyncio.ensure_future(get_body(session, proxy))
    await proxy.until_noted(1)
    proxy.heal()
    assert await asked == BODY
    assert await get_body(session, proxy) == BODY
    await proxy.begin_outage()
    proxy.heal()
    assert await get_body(session, proxy) == BODY
    assert proxy.facts[-3:] == ["outage begins", "healed", "outage ends"]


async def test_healing_forgives_faults_that_did_not_strike_yet(
    server: Server, proxy: ChaosProxy, session: aiohttp.ClientSession
) -> None:
    proxy.plan = in_turn([Stall(1000)])
    async with session.get(f"{proxy.url}/stream") as answer:
        await server.lines.put(b"early\n")
        assert await answer.content.readline() == b"early\n"
        proxy.heal()
        await server.lines.put(b"x" * 2000 + b"\n")
        assert len(await answer.content.readline()) == 2001
    assert proxy.facts == ["healed"]


async def test_the_same_seed_tells_the_same_story(server: Server, session: aiohttp.ClientSession) -> None:
    url = await server.start()
    stories = []
    for _ in range(2):
        async with ChaosProxy(url, plan=RandomPlan(7, kinds=[Answer, Cut, HalfClose, LoseAnswer])) as proxy:
            for _ in range(20):
                try:
                    async with session.get(f"{proxy.url}/body") as answer:
                        await answer.read()
                except aiohttp.ClientError:
                    continue
            stories.append(proxy.facts)
    assert stories[0] == stories[1]
    assert len(stories[0]) > 3


async def test_a_server_that_is_away_looks_like_a_broken_connection(session: aiohttp.ClientSession) -> None:
    async with ChaosProxy("http://127.0.0.1:1") as proxy:
        with pytest.raises(aiohttp.ClientError):
            await get_body(session, proxy)


@pytest.mark.parametrize("upstream", ["", "127.0.0.1:6443", "ftp://127.0.0.1", "https://"])
def test_an_upstream_that_is_no_address_is_refused_with_an_example(upstream: str) -> None:
    with pytest.raises(BadInput, match="write it like https://"):
        ChaosProxy(upstream)
