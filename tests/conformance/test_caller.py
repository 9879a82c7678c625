"""A caller sends what a check says and keeps what came back, on a small server over TLS."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from applecart.clock import SystemClock
from applecart.embedded.trust.pki import Authority, write_pair
from tests.conformance.caller import MERGE, Caller, Login, open_session
from tests.conformance.servers import trusting

pytestmark = pytest.mark.real_time


async def echo(request: web.Request) -> web.Response:
    """What arrived, as JSON."""
    told = {
        "method": request.method,
        "query": dict(request.query),
        "accept": request.headers.get("Accept"),
        "type": request.headers.get("Content-Type"),
        "user": request.headers.get("Impersonate-User"),
        "body": (await request.read()).decode(),
    }
    return web.json_response(told, headers={"Warning": '299 - "careful"', "X-Other": "1", "Cache-Control": "no-cache, private"})


async def events(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={"Content-Type": "application/json"})
    await stream.prepare(request)
    for kind in ("ADDED", "BOOKMARK", "MODIFIED"):
        await stream.write(json.dumps({"type": kind}).encode() + b"\n")
    if request.query.get("hold"):
        await asyncio.Event().wait()
    return stream


async def refuse(_: web.Request) -> web.Response:
    return web.json_response({"kind": "Status", "message": "no"}, status=422)


@asynccontextmanager
async def calling(folder: Path) -> AsyncIterator[Caller]:
    authority = Authority.create("test", SystemClock().now())
    files = write_pair(folder, "server", authority.issue_server(["127.0.0.1"], SystemClock().now()))
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(files.certificate, files.key)
    app = web.Application()
    app.router.add_route("*", "/echo", echo)
    app.router.add_get("/events", events)
    app.router.add_get("/refuse", refuse)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=served)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with open_session() as session:
            login = Login(trusting(authority.certificate_pem.decode()), {"Impersonate-User": "alice"})
            yield Caller(session, f"https://127.0.0.1:{port}", login)
    finally:
        await runner.cleanup()


async def test_parameters_bodies_and_identity_arrive_as_given(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        patched = await caller.patch("/echo", {"a": 1}, continue_="token", force=True, limit=5)
    assert patched.body == {
        "method": "PATCH",
        "query": {"continue": "token", "force": "true", "limit": "5"},
        "accept": "application/json",
        "type": MERGE,
        "user": "alice",
        "body": '{"a": 1}',
    }


async def test_a_header_that_a_check_leaves_out_is_not_invented(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        bare = await caller.call("POST", "/echo", b"{", content_type=None, accept=None)
    assert (bare.body["accept"], bare.body["type"], bare.body["body"]) == (None, None, "{")


async def test_of_the_headers_only_those_that_a_client_may_act_on_are_told(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        plain = (await caller.get("/echo")).plain(body=False)
    assert plain == {"status": 200, "type": "application/json; charset=utf-8", "headers": {"warning": '299 - "careful"'}}


async def test_a_watch_is_read_to_its_end_or_as_far_as_asked_without_bookmarks(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        async with caller.watch("/events") as watch:
            assert [event["type"] for event in await watch.drain()] == ["ADDED", "BOOKMARK", "MODIFIED"]
        async with caller.watch("/events", hold="yes") as watch:
            assert [event["type"] for event in await watch.take(2)] == ["ADDED", "MODIFIED"]


async def test_a_refused_watch_is_an_answer_without_events(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller, caller.watch("/refuse") as watch:
        assert watch.refused is not None
        assert watch.refused.refusal() == {"refused": True, "message": "no"}
        assert await watch.drain() == []
