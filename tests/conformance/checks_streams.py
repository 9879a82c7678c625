"""Checks 123 to 126: watches over time: bookmarks, streaming lists, a restart, a reader that does not read."""

import asyncio
import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from tests.conformance.checks import check
from tests.conformance.checks_read import PARTIAL, names
from tests.conformance.checks_watch import current_revision
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, widget
from tests.conformance.servers import ADMIN, RESTART

CLOSING_S = 3  # a bookmark comes two seconds before a watch ends
BIG_BYTES = 350_000  # an object of the slow reader's watch
BIG_COUNT = 48  # more of them than socket buffers and any sensible buffer in a server hold
SMALL_BUFFER_BYTES = 4096


def bookmark(event: Any) -> Any:
    """A bookmark without its revision, which any write raises; the blueprint is decoded by its presence."""
    metadata = {**event["object"]["metadata"]}
    revision = metadata.pop("resourceVersion", "")
    return {**event, "object": {**event["object"], "metadata": metadata}, "has a revision": revision.isdigit()}


ELSEWHERE = "/api/v1/namespaces/default/configmaps"


@check(123, "bookmarks come before a watch ends, if asked for")
async def check_123(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    made = await ctx.make(path, config_map("one"))
    told: dict[str, Any] = {}
    revision = made["metadata"]["resourceVersion"]
    asked = {"allowWatchBookmarks": "true", "timeoutSeconds": str(CLOSING_S), "resourceVersion": revision}

    async def drained(path: str, **query: Any) -> list[Any]:
        async with ctx.admin.watch(path, **query) as watch:
            # A write of the same kind elsewhere, which only a bookmark tells: a real server sends none when nothing has moved.
            await ctx.make_cluster_wide(ELSEWHERE, {**config_map(""), "metadata": {"generateName": f"{ctx.tag}-"}})
            return await watch.drain()

    with_them, without, metadata_only = await asyncio.gather(
        drained(path, **asked),
        drained(path, **{**asked, "allowWatchBookmarks": "false"}),
        drained(path, **asked, accept=PARTIAL),
    )
    for name, events in (("asked", with_them), ("not asked", without), ("metadata", metadata_only)):
        told[name] = [bookmark(event) if event["type"] == "BOOKMARK" else event for event in events[-1:]]
    told["not older"] = [int(event["object"]["metadata"]["resourceVersion"]) >= int(revision) for event in with_them[-1:]]
    return told


@check(124, "sendInitialEvents and its blueprint")
async def check_124(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    await ctx.make(path, config_map("a"))
    await ctx.make(path, config_map("b"))
    await ctx.make(ctx.widgets(), widget("a"))
    asked = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "20",
    }
    told: dict[str, Any] = {}
    for name, where, extra in (
        ("built-in", path, {}),
        ("custom", ctx.widgets(), {}),
        ("metadata", path, {"accept": PARTIAL}),
        ("revision 0", path, {"resourceVersion": "0"}),
    ):
        async with ctx.admin.watch(where, **asked, **extra) as watch:
            if watch.refused:
                told[name] = watch.refused.plain()
                continue
            events = await watch.until(lambda seen: bool(seen) and seen[-1]["type"] == "BOOKMARK")
            told[name] = [
                *sorted(events[:-1], key=lambda event: str(event["object"]["metadata"]["name"])),
                *[bookmark(event) for event in events[-1:]],
            ]
    async with ctx.admin.watch(path, **{**asked, "allowWatchBookmarks": "false", "timeoutSeconds": "1"}) as watch:
        told["no bookmarks"] = watch.refused.plain() if watch.refused else [event["type"] for event in await watch.drain()]
    revision = await current_revision(ctx, path)
    none = {**asked, "sendInitialEvents": "false", "resourceVersion": revision}
    async with ctx.admin.watch(path, **none) as watch:
        if watch.refused:
            told["none"] = watch.refused.plain()
        else:
            await ctx.make(path, config_map("c"))
            told["none"] = [event["object"]["metadata"]["name"] for event in await watch.take(1)]
    return told


@check(125, "resuming after a restart: 410, and a new list converges", needs=(RESTART,), alone=True)
async def check_125(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    made = await ctx.make(path, config_map("a"))
    await ctx.make(path, config_map("b"))
    for number in range(5):  # the place to resume from lies behind what the new server remembers
        must(await ctx.admin.patch(f"{path}/b", {"data": {"n": str(number)}}))
    await ctx.server.restart()
    async with ctx.admin.watch(path, resourceVersion=made["metadata"]["resourceVersion"], timeoutSeconds="5") as watch:
        resumed = await watch.take(1)
    listed = must(await ctx.admin.get(path))
    async with ctx.admin.watch(path, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        later = await ctx.make(path, config_map("c"))
        seen = await watch.take(1)
    return {
        "resumed": resumed,
        "listed": names(listed),
        "data": [item.get("data") for item in listed["items"]],
        "seen": [(event["type"], event["object"]["metadata"]["name"]) for event in seen],
        "rising": int(later["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"]),
    }


@check(126, "a slow reader is cut, nobody else waits")
async def check_126(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    await ctx.make(path, config_map("one"))
    revision = await current_revision(ctx, path)
    slow = await asyncio.to_thread(_open_without_reading, ctx, f"{path}?watch=true&resourceVersion={revision}")
    try:
        async with ctx.admin.watch(path, resourceVersion=revision) as watch:
            taken = asyncio.create_task(watch.take(BIG_COUNT))
            for number in range(BIG_COUNT):
                must(await ctx.admin.patch(f"{path}/one", {"data": {"n": str(number), "big": "x" * BIG_BYTES}}))
            fast = [event["object"]["data"]["n"] for event in await taken]
        got = await asyncio.to_thread(_numbers_until_the_end, slow)
    finally:
        slow.close()
    wanted = [str(number) for number in range(BIG_COUNT)]
    return {
        "the other got everything in order": fast == wanted,
        "the slow one got a beginning": got == wanted[: len(got)],
        "and not everything": len(got) < BIG_COUNT,
    }


def _open_without_reading(ctx: Context, target: str) -> ssl.SSLSocket:
    """A watch whose reader takes the first bytes and then stands still."""
    address = urlsplit(ctx.server.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
    plain.settimeout(30)
    plain.connect((address.hostname, address.port))
    login = ctx.server.login(*ADMIN)
    secured = login.context.wrap_socket(plain, server_hostname=address.hostname)
    secured.sendall(f"GET {target} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: application/json\r\n\r\n".encode())
    secured.recv(1)
    return secured


def _numbers_until_the_end(stream: ssl.SSLSocket) -> list[str]:
    """Which changes reached the slow reader before the server let it go."""
    content = bytearray()
    stream.settimeout(5)  # a stream that stays open and silent has told all that it will
    try:
        while chunk := stream.recv(1 << 20):
            content += chunk
    except OSError:
        pass
    return [event for line in _dechunked(bytes(content)).splitlines() if (event := _number(line)) is not None]


def _dechunked(content: bytes) -> bytes:
    """The body of a chunked answer that may end in the middle of a chunk."""
    body, rest = b"", content.partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        if not size or int(size, 16) == 0:
            break
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body


def _number(line: bytes) -> str | None:
    try:
        return str(json.loads(line)["object"]["data"]["n"])
    except (ValueError, KeyError):
        return None
