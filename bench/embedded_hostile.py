"""What requests that mean harm cost everybody else: the loop's longest turn, and the memory that stays. Prints one JSON line.

    python -m bench.embedded_hostile

A user of one namespace sends the largest, deepest and most numerous that is let in; nobody opens connections and begins bodies
that never end. The processor's time of the loop's thread is taken for each callback: what other threads do beside it, and what
other processes take from the machine, is not the loop's.
"""

import asyncio
import asyncio.events
import gc
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from applecart.clock import SystemClock
from applecart.embedded.auth.user import User
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.trust.control_plane_files import LOOPBACK
from applecart.kube.transport import Request

HOME = "/api/v1/namespaces/default"
PODS, MAPS = f"{HOME}/pods", f"{HOME}/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RBAC = "rbac.authorization.k8s.io"
TENANT = User("tenant", ("system:authenticated",))
JSON, YAML, APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"
MERGE, STRATEGIC, STEPS = (f"application/{kind}-patch+json" for kind in ("merge", "strategic-merge", "json"))
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
STRANGERS, UNFINISHED_BYTES = 200, 2_800_000
PATCHES, PATCHED_BYTES = 300, 900_000
LARGE_MAPS = 20
DEADLINE_S = 60.0


class Harm(msgspec.Struct, frozen=True):
    """What one run tells."""

    longest_turn_ms: float
    longest_turn: str
    kept_mb: float


class Turns:
    """The longest that one callback kept the loop's thread busy."""

    def __init__(self) -> None:
        self.longest_s, self.doing, self.longest = 0.0, "", ""
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            began_s = time.thread_time()
            run(handle)
            if (took_s := time.thread_time() - began_s) > self.longest_s:
                self.longest_s, self.longest = took_s, self.doing

        asyncio.events.Handle._run = timed  # type: ignore[assignment,method-assign]


def pod(containers: int) -> bytes:
    each = b",".join(b'{"name":"c%d","image":"i"}' % number for number in range(containers))
    return b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[%b]}}' % each


def config_map(keys: int, value: bytes, name: bytes = b"m") -> bytes:
    data = b",".join(b'"k%d":"%b"' % (number, value) for number in range(keys))
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%b"},"data":{%b}}' % (name, data)


def requests() -> Iterator[tuple[str, Request]]:
    def ask(method: str, path: str, body: bytes = b"", content_type: str = JSON, accept: str = JSON) -> Request:
        path, _, query = path.partition("?")
        asked = ((query.partition("=")[0], query.partition("=")[2]),) if query else ()
        return Request(method, path, asked, body=body, content_type=content_type, accept=accept, deadline_s=DEADLINE_S)

    doubling = [{"op": "add", "path": "/x", "value": [1] * 100}, *[{"op": "copy", "from": "/x", "path": "/x/-"}] * 30]
    a_million = b"a: &a [" + b"1," * 200 + b"1]\nb: &b [" + b"*a," * 200 + b"1]\nc: [" + b"*b," * 25 + b"1]\n"
    yield "lists in lists", ask("POST", MAPS, b'{"a":[' + b"[]," * 960_000 + b"[]]}")
    yield "many small objects", ask("POST", MAPS, b'{"a":[' + b'{"a":1},' * 350_000 + b"{}]}")
    yield "2.8 MB of YAML", ask("POST", MAPS, b"a:\n" + b"- b\n" * 700_000, YAML)
    yield "YAML at its limit", ask("POST", MAPS, b"a:\n" + b"- b\n" * 65_000, YAML)
    yield "YAML of 2 kB", ask("POST", MAPS, b"a:\n" + b"- b\n" * 500, YAML)
    yield "values at their limit", ask("POST", MAPS, b'{"a":[' + b"{}," * 49_000 + b"{}]}")
    yield "a Pod of 80,000 containers", ask("POST", PODS, pod(80_000))
    yield "a Pod of 33,000 containers", ask("POST", PODS, pod(33_000))
    yield "a Pod of 580 containers, on the loop", ask("POST", PODS, pod(580))
    yield "its deletion", ask("DELETE", f"{PODS}/p")
    yield "a Pod of 4,500 containers", ask("POST", PODS, pod(4_500))
    yield "a label for it", ask("PATCH", f"{PODS}/p", b'{"metadata":{"labels":{"a":"b"}}}', STRATEGIC)
    yield "all its containers again", ask("PATCH", f"{PODS}/p", pod(4_500).replace(b'"i"', b'"j"'), STRATEGIC)
    yield "it as a table", ask("GET", f"{PODS}/p", accept=TABLE)
    yield "it as YAML", ask("GET", f"{PODS}/p", accept=YAML)
    yield "a table with it", ask("GET", PODS, accept=TABLE)
    yield "a list with it in YAML", ask("GET", PODS, accept=YAML)
    yield "its deletion", ask("DELETE", f"{PODS}/p")
    yield "an apply of 1 MB", ask("PATCH", f"{MAPS}/m?fieldManager=x", config_map(9_000, b"x" * 90), APPLY)
    yield "a label for that", ask("PATCH", f"{MAPS}/m", b'{"metadata":{"labels":{"a":"b"}}}', MERGE)
    yield "a patch that doubles", ask("PATCH", f"{MAPS}/m", msgspec.json.encode(doubling), STEPS)
    yield "options of 2.9 MB", ask("DELETE", f"{MAPS}/m", b'{"a":[' + b"[]," * 960_000 + b"[]]}")
    yield "a question in YAML that repeats itself", ask("POST", REVIEWS, a_million, YAML)
    yield "a question in YAML at its limit", ask("POST", REVIEWS, b"a:\n" + b"- b\n" * 8_000, YAML)
    yield "options in YAML that repeat themselves", ask("DELETE", MAPS, a_million, YAML)
    for number in range(LARGE_MAPS):
        yield "a ConfigMap of 48,000 keys", ask("POST", MAPS, config_map(48_000, b"x" * 16, b"m%d" % number))
    yield "the deletion of all in a dry run", ask("DELETE", f"{MAPS}?dryRun=All")
    yield "the deletion of all", ask("DELETE", MAPS)


async def let_in(server: EmbeddedServer) -> InProcessTransport:
    subject = {"kind": "User", "name": TENANT.name, "apiGroup": RBAC}
    role = {"kind": "ClusterRole", "name": "admin", "apiGroup": RBAC}
    binding = {"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": role}
    path = f"/apis/{RBAC}/v1/namespaces/default/rolebindings"
    made = await server.running.transport().send(Request("POST", path, body=msgspec.json.encode(binding)))
    assert made.status == 201, made.body
    return server.running.transport(TENANT)


async def begin_bodies(server: EmbeddedServer) -> None:
    """Bodies of nobody that never end."""
    context = ssl.create_default_context(cadata=server.authority.certificate_pem.decode())
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: {2 * UNFINISHED_BYTES}\r\n\r\n".encode()
    writers = []
    for _ in range(STRANGERS):
        _, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=context)
        writers.append(writer)
        writer.write(head)
    for writer in writers:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(0.05):
                for _ in range(UNFINISHED_BYTES // 65_536):
                    writer.write(bytes(65_536))
                    await writer.drain()
    for writer in writers:
        writer.transport.abort()


async def patch_large(tenant: InProcessTransport) -> None:
    """One large object, changed again and again, and somebody who watches."""
    made = await tenant.send(Request("POST", MAPS, body=config_map(1, b"x" * PATCHED_BYTES)))
    assert made.status == 201, made.body
    watch = await tenant.open(Request("GET", MAPS, (("watch", "1"),)))

    async def read() -> None:
        while await watch.read():
            pass

    reading = asyncio.create_task(read())
    for number in range(PATCHES):
        body = msgspec.json.encode({"data": {"number": str(number)}})
        await tenant.send(Request("PATCH", f"{MAPS}/m", body=body, content_type=MERGE))
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await watch.aclose()


def held_bytes() -> int:
    """Resident memory as it is: a server gives back by itself what it needs no longer, or does not."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def main() -> None:
    turns = Turns()
    with TemporaryDirectory(prefix="bench-") as place:
        async with EmbeddedServer(Path(place) / "data", SystemClock()) as server:
            tenant = await let_in(server)
            before = held_bytes()
            for turns.doing, request in requests():
                answer = await tenant.send(request)
                assert answer.status < 500, (turns.doing, answer.body[:200])
            turns.doing = "unfinished bodies"
            harm = turns.longest_s, turns.longest  # what follows is sent by this process itself
            await begin_bodies(server)
            await patch_large(tenant)
            kept_mb = (held_bytes() - before) / 1e6
    print(msgspec.json.encode(Harm(harm[0] * 1000, harm[1], kept_mb)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
