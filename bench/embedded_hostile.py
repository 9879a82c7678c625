"""What requests that mean harm cost everybody else: the loop's longest turn, and the memory that stays. Prints one JSON line.

    python -m bench.embedded_hostile

A user of one namespace sends the largest, deepest and most numerous that is let in; nobody opens connections and begins bodies
that never end. The processor's time of the loop's thread is taken for each of its turns: what other threads do, and what
other processes take from the machine, is not the loop's. Every answer has the status that is expected, so that no figure is
that of a refusal by mistake, and Python looks for cycles as rarely as in the product.
"""

import asyncio
import asyncio.base_events
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from applecart.api.meta import Key
from applecart.cli.garbage_collection import collect_rarely, pass_over_what_is_there
from applecart.clock import SystemClock
from applecart.embedded.auth.user import User
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.trust.control_plane_files import LOOPBACK
from applecart.kube.transport import Request
from bench.embedded_pauses import copy_below_the_api

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
WATCHES = 200
LARGE_MAPS, SMALL_MAPS = 20, 20_000
LARGE_POD = 3_300  # containers: with a hundred more a list in YAML is too long, with a thousand more it has too many values
DEADLINE_S = 60.0


class Harm(msgspec.Struct, frozen=True):
    """What one run tells."""

    longest_turn_ms: float
    longest_turn: str
    kept_mb: float


class Turns:
    """The longest that one turn of the loop kept its thread busy."""

    def __init__(self) -> None:
        self.longest_s, self.doing, self.longest = 0.0, "", ""
        run = asyncio.base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]

        def timed(loop: asyncio.AbstractEventLoop) -> None:
            began_s = time.thread_time()
            run(loop)
            if (took_s := time.thread_time() - began_s) > self.longest_s:
                self.longest_s, self.longest = took_s, self.doing

        asyncio.base_events.BaseEventLoop._run_once = timed  # type: ignore[attr-defined]


def pod(containers: int) -> bytes:
    each = b",".join(b'{"name":"c%d","image":"i"}' % number for number in range(containers))
    return b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[%b]}}' % each


def config_map(keys: int, value: bytes, name: bytes = b"m") -> bytes:
    data = b",".join(b'"k%d":"%b"' % (number, value) for number in range(keys))
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%b"},"data":{%b}}' % (name, data)


def requests() -> Iterator[tuple[str, int, Request]]:
    def ask(method: str, path: str, body: bytes = b"", content_type: str = JSON, accept: str = JSON) -> Request:
        path, _, query = path.partition("?")
        asked = ((query.partition("=")[0], query.partition("=")[2]),) if query else ()
        return Request(method, path, asked, body=body, content_type=content_type, accept=accept, deadline_s=DEADLINE_S)

    doubling = [{"op": "add", "path": "/x", "value": [1] * 100}, *[{"op": "copy", "from": "/x", "path": "/x/-"}] * 30]
    a_million = b"a: &a [" + b"1," * 200 + b"1]\nb: &b [" + b"*a," * 200 + b"1]\nc: [" + b"*b," * 25 + b"1]\n"
    yield f"the deletion of {SMALL_MAPS:,} objects", 200, ask("DELETE", MAPS)
    yield "lists in lists", 413, ask("POST", MAPS, b'{"a":[' + b"[]," * 960_000 + b"[]]}")
    yield "many small objects", 413, ask("POST", MAPS, b'{"a":[' + b'{"a":1},' * 350_000 + b"{}]}")
    yield "2.8 MB of YAML", 413, ask("POST", MAPS, b"a:\n" + b"- b\n" * 700_000, YAML)
    yield "YAML at its limit", 422, ask("POST", MAPS, b"a:\n" + b"- b\n" * 65_000, YAML)
    yield "YAML of 2 kB", 422, ask("POST", MAPS, b"a:\n" + b"- b\n" * 500, YAML)
    yield "values at their limit", 422, ask("POST", MAPS, b'{"a":[' + b"{}," * 49_000 + b"{}]}")
    yield "a Pod of 80,000 containers", 413, ask("POST", PODS, pod(80_000))
    yield "a Pod of 33,000 containers", 413, ask("POST", PODS, pod(33_000))
    yield "a Pod of 580 containers, on the loop", 201, ask("POST", PODS, pod(580))
    yield "its deletion", 200, ask("DELETE", f"{PODS}/p")
    yield f"a Pod of {LARGE_POD:,} containers", 201, ask("POST", PODS, pod(LARGE_POD))
    yield "a label for it", 200, ask("PATCH", f"{PODS}/p", b'{"metadata":{"labels":{"a":"b"}}}', STRATEGIC)
    yield "all its containers again", 200, ask("PATCH", f"{PODS}/p", pod(LARGE_POD).replace(b'"i"', b'"j"'), STRATEGIC)
    yield "it as a table", 200, ask("GET", f"{PODS}/p", accept=TABLE)
    yield "it as YAML", 200, ask("GET", f"{PODS}/p", accept=YAML)
    yield "a table with it", 200, ask("GET", PODS, accept=TABLE)
    yield "a list with it in YAML", 200, ask("GET", PODS, accept=YAML)
    yield "its deletion", 200, ask("DELETE", f"{PODS}/p")
    yield "an apply of 1 MB", 201, ask("PATCH", f"{MAPS}/m?fieldManager=x", config_map(9_000, b"x" * 90), APPLY)
    yield "a label for that", 200, ask("PATCH", f"{MAPS}/m", b'{"metadata":{"labels":{"a":"b"}}}', MERGE)
    yield "a patch that doubles", 422, ask("PATCH", f"{MAPS}/m", msgspec.json.encode(doubling), STEPS)
    yield "options of 2.9 MB", 413, ask("DELETE", f"{MAPS}/m", b'{"a":[' + b"[]," * 960_000 + b"[]]}")
    yield "a question in YAML that repeats itself", 422, ask("POST", REVIEWS, a_million, YAML)
    yield "a question in YAML at its limit", 422, ask("POST", REVIEWS, b"a:\n" + b"- b\n" * 8_000, YAML)
    yield "options in YAML that repeat themselves", 200, ask("DELETE", MAPS, a_million, YAML)
    for number in range(LARGE_MAPS):
        yield "a ConfigMap of 48,000 keys", 201, ask("POST", MAPS, config_map(48_000, b"x" * 16, b"m%d" % number))
    yield "the deletion of all in a dry run", 200, ask("DELETE", f"{MAPS}?dryRun=All")
    yield "the deletion of all", 200, ask("DELETE", MAPS)


async def let_in(server: EmbeddedServer) -> InProcessTransport:
    subject = {"kind": "User", "name": TENANT.name, "apiGroup": RBAC}
    role = {"kind": "ClusterRole", "name": "admin", "apiGroup": RBAC}
    binding = {"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": role}
    path = f"/apis/{RBAC}/v1/namespaces/default/rolebindings"
    made = await server.running.transport().send(Request("POST", path, body=msgspec.json.encode(binding)))
    assert made.status == 201, made.body
    return server.running.transport(TENANT)


async def make_small(server: EmbeddedServer, tenant: InProcessTransport) -> None:
    made = await tenant.send(Request("POST", MAPS, body=config_map(1, b"x", b"small")))
    assert made.status == 201, made.body
    await copy_below_the_api(server.running.store, "configmaps", Key("default", "small"), SMALL_MAPS - 1)


async def tell_watches(server: EmbeddedServer, tenant: InProcessTransport, data: Path) -> None:
    """One large object, told to many, who are another process: what they do is not measured."""
    issued = server.authority.issue_client(TENANT.name, TENANT.groups, SystemClock().now())
    pair = data / "tenant.pem"
    pair.touch(0o600)
    pair.write_bytes(issued.certificate_pem + issued.key_pem.reveal().encode())
    command = (sys.executable, "-m", "bench.embedded_hostile", "watch", str(server.port), str(data / "pki" / "ca.crt"))
    watching = await asyncio.create_subprocess_exec(*command, str(pair), stdout=asyncio.subprocess.PIPE)
    assert watching.stdout is not None
    await watching.stdout.readline()
    made = await tenant.send(Request("POST", MAPS, body=config_map(1, b"x" * PATCHED_BYTES, b"told")))
    assert made.status == 201, made.body
    assert await watching.wait() == 0


def watch(port: int, authority: str, pair: str) -> None:
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(pair)
    watches = []
    for _ in range(WATCHES):
        one = context.wrap_socket(socket.create_connection((LOOPBACK, port), DEADLINE_S), server_hostname=LOOPBACK)
        one.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b" 200 " in one.recv(1 << 16)
        watches.append(one)
    print("they watch", flush=True)
    for one in watches:
        left_bytes = PATCHED_BYTES
        while left_bytes > 0 and (heard := one.recv(1 << 16)):
            left_bytes -= len(heard)


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
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def main() -> None:
    collect_rarely()
    turns = Turns()
    with TemporaryDirectory(prefix="bench-") as place:
        async with EmbeddedServer(Path(place) / "data", SystemClock()) as server:
            pass_over_what_is_there()
            tenant = await let_in(server)
            before = held_bytes()
            await make_small(server, tenant)
            turns.longest_s = 0.0  # neither a start nor what this process itself does is a request
            for turns.doing, expected, request in requests():
                answer = await tenant.send(request)
                assert answer.status == expected, (turns.doing, answer.status, answer.body[:200])
            turns.doing = f"{WATCHES} watches of a large object"
            await tell_watches(server, tenant, Path(place) / "data")
            turns.doing = "unfinished bodies"
            harm = turns.longest_s, turns.longest  # what follows is sent by this process itself
            await begin_bodies(server)
            await patch_large(tenant)
            kept_mb = (held_bytes() - before) / 1e6
    print(msgspec.json.encode(Harm(harm[0] * 1000, harm[1], kept_mb)).decode(), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        watch(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        asyncio.run(main())
