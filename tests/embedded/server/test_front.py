"""Many callers at once: nobody takes what others need, and those who would mend it are always answered."""

import asyncio
import errno
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from aiohttp.http_writer import StreamWriter

from applecart.clock import Clock
from applecart.embedded.auth.user import ANONYMOUS, MASTERS, NODES, Attributes, User
from applecart.embedded.refusals import Refusal, too_many_requests
from applecart.embedded.server import front, listing, representation, watching
from applecart.embedded.server.front import Shares, _waits_for_nobody
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.trust.control_plane_files import LOOPBACK
from applecart.embedded.trust.pki import write_pair
from applecart.kube.transport import Request

PATIENCE_S = 60.0
MAPS = "/api/v1/namespaces/default/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
TENANT, OTHER = User("tenant"), User("other")


def test_one_user_takes_half_and_all_together_no_more_than_there_is() -> None:
    shares = Shares(10)
    shares.take(TENANT, 5)
    with pytest.raises(Refusal, match="too many requests"):
        shares.take(TENANT, 1)
    shares.take(OTHER, 4)
    with pytest.raises(Refusal) as refused:
        shares.take(User("third"), 2)
    assert (refused.value.code, refused.value.headers) == (429, {"Retry-After": "1"})
    shares.take(TENANT, 0)  # what needs nothing is not stopped
    shares.give(TENANT, 5)
    shares.take(User("third"), 2)


NODE, AGENT = User("system:node:mac", (NODES,)), User("system:serviceaccount:kube-system:tart-kubelet-mac")
RENEWAL = Attributes(verb="patch", path=LEASE, resource="leases", namespace="kube-node-lease")
ELECTION = Attributes(verb="patch", resource="leases", namespace="kube-system")


@pytest.mark.parametrize(
    ("user", "asked", "expected"),
    [
        (User("admin", (MASTERS,)), Attributes(verb="list", path=MAPS), True),
        (ANONYMOUS, Attributes(verb="get", path="/readyz"), True),
        (NODE, RENEWAL, True),
        (NODE, Attributes(verb="patch", path="", resource="pods"), False),
        (AGENT, RENEWAL, True),  # as our own agents come
        (AGENT, ELECTION, False),
        (User("system:serviceaccount:default:tart-kubelet-mac"), RENEWAL, False),
        (TENANT, RENEWAL, False),
    ],
)
def test_who_waits_for_nobody(user: User, asked: Attributes, expected: bool) -> None:
    assert _waits_for_nobody(user, asked) == expected


class Caller:
    """One connection of somebody."""

    def __init__(self, server: EmbeddedServer, name: str = "", *groups: str) -> None:
        self._server = server
        self._context = ssl.create_default_context(cadata=server.authority.certificate_pem.decode())
        if name:
            issued = server.authority.issue_client(name, groups, datetime.now(UTC))
            files = write_pair(server.folder.pki, f"test-{name.rpartition(':')[2]}", issued)
            self._context.load_cert_chain(files.certificate, files.key)

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(LOOPBACK, self._server.port, ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    def begin(self, method: str, path: str, body: bytes = b"", *, of: int | None = None, acts_as: str = "") -> None:
        """Send a request, or the beginning of one whose body is longer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        head += f"Impersonate-User: {acts_as}\r\n" if acts_as else ""
        self.writer.write(f"{head}Content-Length: {len(body) if of is None else of}\r\n\r\n".encode() + body)

    async def answer(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length: "):
                    await self.reader.readexactly(int(line.split()[1]))
        return int(head.split(b" ", 2)[1])

    async def asks(self, method: str, path: str, body: Any = None) -> int:
        self.begin(method, path, b"" if body is None else msgspec.json.encode(body))
        return await self.answer()


@pytest.fixture
async def server(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedServer]:
    monkeypatch.setattr(front, "MOST_CONNECTIONS", 8)
    monkeypatch.setattr(front, "MOST_IN_FLIGHT", 4)
    monkeypatch.setattr(front, "MOST_BODY_BYTES", 400_000)
    async with EmbeddedServer(tmp_path / "data", clock) as running:
        binding = {
            "metadata": {"name": "tenants"},
            "subjects": [
                *({"kind": "User", "name": name, "apiGroup": RBAC} for name in ("tenant", "other")),
                {"kind": "Group", "name": "system:serviceaccounts:default", "apiGroup": RBAC},
            ],
            "roleRef": {"kind": "ClusterRole", "name": "edit", "apiGroup": RBAC},
        }
        path = f"/apis/{RBAC}/v1/clusterrolebindings"
        made = await running.running.transport().send(Request("POST", path, body=msgspec.json.encode(binding)))
        assert made.status == 201
        yield running


RBAC = "rbac.authorization.k8s.io"
real_time = pytest.mark.real_time


async def until_in_flight(server: EmbeddedServer, taken: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while server.front.in_flight.taken < taken:  # noqa: ASYNC110 (what arrives on a socket wakes nobody here)
            await asyncio.sleep(0.01)


@real_time
async def test_while_others_are_told_to_wait_health_admins_and_heartbeats_of_nodes_are_answered(server: EmbeddedServer) -> None:
    """Requests that wait for the rest of their bodies hold their places; a watch or a log holds none, and a POST is never a
    watch."""
    async with Caller(server, "tenant") as one, Caller(server, "tenant") as two, Caller(server, "tenant") as third:
        assert await one.asks("GET", f"{MAPS}?watch=1&timeoutSeconds=1") == 200
        for caller in (two, third):
            caller.begin("POST", MAPS, b"{", of=1000)
        await until_in_flight(server, 2)
        async with Caller(server, "tenant") as fourth, Caller(server, "other") as other:
            assert await fourth.asks("GET", MAPS) == 429
            assert await fourth.asks("POST", f"{MAPS}?watch=1", {"metadata": {"name": "a"}}) == 429
            assert await fourth.asks("GET", "/readyz") == 200
            assert await fourth.asks("GET", "/api/v1/namespaces/default/pods/none/log") == 404
            other.begin("POST", MAPS, b"{", of=1000)
            await until_in_flight(server, 3)
            async with Caller(server, "admin", MASTERS) as admin:
                assert await admin.asks("GET", MAPS) == 200
            async with Caller(server, "system:node:mac", NODES) as node:
                assert await node.asks("GET", f"{LEASE}/mac") == 404
                assert await node.asks("POST", LEASE, {"metadata": {"name": "mac"}}) == 201


@real_time
async def test_unfinished_bodies_hold_only_so_many_bytes(server: EmbeddedServer) -> None:
    """One user's half; an admin's do not count, and what was refused is given back."""
    async with Caller(server, "tenant") as one, Caller(server, "tenant") as two, Caller(server, "admin", MASTERS) as admin:
        one.begin("POST", MAPS, b"{" + b" " * 150_000, of=1_000_000)
        await until_in_flight(server, 1)
        two.begin("POST", MAPS, b"{" + b" " * 150_000, of=1_000_000)
        async with asyncio.timeout(PATIENCE_S):
            done, _ = await asyncio.wait(
                [asyncio.ensure_future(each.answer()) for each in (one, two)], return_when="FIRST_COMPLETED"
            )
        assert [each.result() for each in done] == [429]
        assert server.front.body_bytes.taken <= 200_000
        assert await admin.asks("POST", MAPS, {"metadata": {"name": "a"}, "data": {"a": "b" * 900_000}}) == 201
    async with asyncio.timeout(PATIENCE_S):
        while server.front.in_flight.taken > 0:  # noqa: ASYNC110 (as above)
            await asyncio.sleep(0.01)
    assert (server.front.in_flight.taken, server.front.body_bytes.taken) == (0, 0)


@real_time
async def test_bodies_that_nobody_counts_are_small_but_for_those_of_administrators(server: EmbeddedServer) -> None:
    """Nobody sent bodies to /healthz: a hundred, unfinished, took 300 MB."""
    async with Caller(server) as nobody, Caller(server) as another, Caller(server, "system:node:mac", NODES) as node:
        nobody.begin("GET", "/healthz", b"{", of=1_000_000)
        assert await nobody.answer() == 413
        another.writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        another.writer.write(b"%x\r\n%b\r\n" % (40_000, b" " * 40_000))
        assert await another.answer() == 413
        node.begin("POST", LEASE, b"{", of=1_000_000)
        assert await node.answer() == 413
    async with Caller(server) as nobody:
        assert await nobody.asks("GET", "/healthz", {"a": "b"}) == 200


@real_time
async def test_administrators_lose_no_connection_however_many_they_have(server: EmbeddedServer) -> None:
    admins = [await Caller(server, "admin", MASTERS).__aenter__() for _ in range(5)]
    for admin in admins:
        assert await admin.asks("GET", "/readyz") == 200
    strangers = [await Caller(server).__aenter__() for _ in range(10)]
    for admin in admins:
        assert await admin.asks("GET", "/readyz") == 200
    for caller in (*admins, *strangers):
        caller.writer.transport.abort()


@real_time
async def test_connections_take_half_of_the_files_that_the_server_may_open(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it raises their number first: launchd gives 256."""
    monkeypatch.setattr(front, "raise_limit", lambda: 6)
    async with EmbeddedServer(tmp_path / "data", clock) as server:
        callers = [await Caller(server).__aenter__() for _ in range(4)]
        assert await callers[-1].asks("GET", "/readyz") == 200
        async with asyncio.timeout(PATIENCE_S):
            assert await callers[0].reader.read() == b""
        for caller in callers:
            caller.writer.transport.abort()


@real_time
async def test_a_flood_of_strangers_closes_strangers_and_neither_admins_nor_nodes(server: EmbeddedServer) -> None:
    async with Caller(server, "system:node:mac", NODES) as node:
        assert await node.asks("GET", f"{LEASE}/mac") == 404
        strangers = [await Caller(server).__aenter__() for _ in range(20)]
        async with Caller(server, "admin", MASTERS) as admin:
            assert await admin.asks("GET", MAPS) == 200
            more = [await Caller(server).__aenter__() for _ in range(20)]
            assert await admin.asks("GET", MAPS) == 200
            assert await node.asks("GET", f"{LEASE}/mac") == 404
        async with asyncio.timeout(PATIENCE_S):
            for stranger in strangers:
                assert await stranger.reader.read() == b""
        for stranger in (*strangers, *more):
            stranger.writer.transport.abort()


@real_time
@pytest.mark.parametrize(("acts_as", "status"), [("system:serviceaccount:default:x", 200), ("nobody-may-be", 403)])
async def test_whoever_acts_as_many_closes_their_own_connections_and_not_those_of_a_node(
    server: EmbeddedServer, acts_as: str, status: int
) -> None:
    """Each connection was that of another ServiceAccount; or a stranger's, where the right to act as somebody was missing."""
    async with AsyncExitStack() as callers:
        nodes = [await callers.enter_async_context(Caller(server, "system:node:mac", NODES)) for _ in range(2)]
        for node in nodes:
            assert await node.asks("GET", f"{LEASE}/mac") == 404
        for number in range(12):
            tenant = await callers.enter_async_context(Caller(server, "tenant"))
            tenant.begin("GET", "/api/v1/pods", acts_as=f"{acts_as}{number}")
            assert await tenant.answer() == status
        for node in nodes:
            assert await node.asks("GET", f"{LEASE}/mac") == 404
        assert {user.name for user in server.front._users.values()} == {"system:node:mac", "tenant"}


@real_time
async def test_whoever_acts_as_many_has_requests_under_way_as_one(server: EmbeddedServer) -> None:
    async with AsyncExitStack() as callers:
        several = [await callers.enter_async_context(Caller(server, "tenant")) for _ in range(3)]
        for number, caller in enumerate(several):
            await until_in_flight(server, number)
            caller.begin("POST", MAPS, b"{", of=1000, acts_as=f"system:serviceaccount:default:x{number}")
        assert await several[2].answer() == 429
        async with Caller(server, "admin", MASTERS) as admin:
            admin.begin("GET", MAPS, acts_as="other")
            assert await admin.answer() == 200


@real_time
async def test_a_server_that_stops_ends_its_watches_and_does_not_cut_them_off(tmp_path: Path, clock: Clock) -> None:
    async with AsyncExitStack() as callers, asyncio.timeout(PATIENCE_S):
        async with EmbeddedServer(tmp_path / "data", clock) as server:
            admin = await callers.enter_async_context(Caller(server, "admin", MASTERS))
            admin.begin("GET", "/api/v1/namespaces?watch=1")
            await admin.reader.readuntil(b"\r\n\r\n")
        assert (await admin.reader.read()).endswith(b"\r\n0\r\n\r\n")


@real_time
async def test_a_surprise_before_the_api_is_asked_is_said_and_answered(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """aiohttp answered in its own words, and is told to say nothing: nobody heard of it."""

    def surprised(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(server.front._authenticator, "user", surprised)
    async with Caller(server, "admin", MASTERS) as admin:
        assert await admin.asks("GET", "/api/v1/namespaces") == 500
    assert [one.message for one in caplog.records] == ["a request failed in a way nobody foresaw"]


@real_time
async def test_an_answer_that_is_refused_halfway_is_cut_and_no_defect(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever had eight lists of large objects under way got a 200 for the ninth, and the log a trace."""

    def refused(_: object, __: object) -> bytes:
        raise too_many_requests("too many large requests", 1)

    monkeypatch.setattr(watching, "event_line", refused)
    caplog.set_level(logging.INFO)
    async with Caller(server, "admin", MASTERS) as admin:
        admin.begin("GET", "/api/v1/namespaces?watch=1")
        async with asyncio.timeout(PATIENCE_S):
            assert not (await admin.reader.read()).endswith(b"0\r\n\r\n")
    assert [one.message for one in caplog.records if "broke off" in one.message] == ["an answer broke off"]


@real_time
async def test_an_answer_that_breaks_off_says_so(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def surprised(_: object, __: object) -> bytes:
        raise RuntimeError("a surprise")

    monkeypatch.setattr(watching, "event_line", surprised)
    async with Caller(server, "admin", MASTERS) as admin:
        admin.begin("GET", "/api/v1/namespaces?watch=1")
        async with asyncio.timeout(PATIENCE_S):
            await admin.reader.read()
    assert [one.message for one in caplog.records] == ["an answer broke off in a way nobody foresaw"]


LARGE_BYTES = 900_000
LARGE = {"metadata": {"name": "large"}, "data": {"a": "x" * LARGE_BYTES}}


async def watches(server: EmbeddedServer, callers: AsyncExitStack, number: int) -> list[Caller]:
    watching = [await callers.enter_async_context(Caller(server, "tenant")) for _ in range(number)]
    for each in watching:
        each.begin("GET", f"{MAPS}?watch=1")
        await each.reader.readuntil(b"\r\n\r\n")
    return watching


async def takes_large(caller: Caller) -> None:
    left_bytes = LARGE_BYTES
    async with asyncio.timeout(PATIENCE_S):
        while left_bytes > 0:
            left_bytes -= len(await caller.reader.read(1 << 16))


@real_time
async def test_a_list_is_in_flight_until_its_reader_has_all_of_it(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 lists whose readers stopped in the middle held 2.7 GB, and were counted only until they began."""
    may_end, in_slices = asyncio.Event(), listing.in_slices

    async def begins(*arguments: Any) -> AsyncIterator[bytes]:
        async for piece in in_slices(*arguments):
            yield piece
            await may_end.wait()

    monkeypatch.setattr(representation, "in_slices", begins)
    assert (await server.running.transport().send(Request("POST", MAPS, body=msgspec.json.encode(LARGE)))).status == 201
    async with AsyncExitStack() as callers:
        one, two, third = [await callers.enter_async_context(Caller(server, "tenant")) for _ in range(3)]
        for caller in (one, two):
            caller.begin("GET", MAPS)
            assert await caller.answer() == 200
        assert await third.asks("GET", MAPS) == 429
        two.writer.transport.abort()
        async with asyncio.timeout(PATIENCE_S):
            while server.front.in_flight.taken > 1:  # noqa: ASYNC110 (what arrives on a socket wakes nobody here)
                await asyncio.sleep(0.01)
        may_end.set()
        await takes_large(one)
        await one.reader.readuntil(b"\r\n0\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            while server.front.in_flight.taken > 0:  # noqa: ASYNC110 (as above)
                await asyncio.sleep(0.01)
        assert await third.asks("GET", f"{MAPS}?watch=1") == 200


@real_time
async def test_one_user_is_written_one_large_piece_in_a_turn_of_the_loop(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """900 watches of one object of 0.9 MB were all told of its change in one turn: leases of nodes waited for 2.3 s."""
    loop, turn, write = asyncio.get_running_loop(), 0, StreamWriter.write
    written: Counter[int] = Counter()

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if not loop.is_closed():
            loop.call_soon(next_turn)

    async def noted(writer: StreamWriter, chunk: Any, **options: Any) -> None:
        written[turn] += len(chunk) >= front.PIECE_BYTES
        await write(writer, chunk, **options)

    monkeypatch.setattr(StreamWriter, "write", noted)
    async with AsyncExitStack() as callers:
        watching = await watches(server, callers, 6)
        next_turn()
        made = await server.running.transport().send(Request("POST", MAPS, body=msgspec.json.encode(LARGE)))
        assert made.status == 201
        await asyncio.gather(*map(takes_large, watching))
    assert sum(written.values()) == 6 * (LARGE_BYTES // front.PIECE_BYTES)
    assert max(written.values()) == 1


@real_time
async def test_whoever_does_not_read_a_large_event_delays_nobody_and_has_little_waiting(server: EmbeddedServer) -> None:
    """What waited for each of them was half a megabyte."""
    async with AsyncExitStack() as callers:
        stalled, *reading = await watches(server, callers, 6)
        itself = stalled.writer.get_extra_info("sockname")
        [transport] = [each for each in server.front._users if each.get_extra_info("peername") == itself]
        transport.get_protocol().pause_writing()  # as if its buffer were full
        made = await server.running.transport().send(Request("POST", MAPS, body=msgspec.json.encode(LARGE)))
        assert made.status == 201
        await asyncio.gather(*map(takes_large, reading))
        assert transport.get_write_buffer_limits()[1] <= front.PIECE_BYTES
