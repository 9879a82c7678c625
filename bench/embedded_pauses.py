"""The longest time our server's event loop does nothing else while 20,000 Pods are listed. Prints one JSON line.

    python -m bench.embedded_pauses PODS

The server runs in this process beside a ticker that asks for the loop every millisecond; the lists, plain and as a Table, are
read by a process of its own. The Pods are written below the API, which is not what is measured.
"""

import asyncio
import ssl
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import yaml

from applecart.api.meta import Key
from applecart.cli.garbage_collection import collect_rarely, pass_over_what_is_there
from applecart.clock import SystemClock
from applecart.embedded.server.objects import with_revision
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.store.record import Op, Record
from applecart.embedded.store.store import Store
from applecart.kube.client import Client
from applecart.kube.transport import Request
from bench.embedded_requests import standing_name, standing_pod

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
TICK_S = 0.001
COPIED_AT_ONCE = 100  # this is no turn to measure
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
ACCEPTED = ("application/json", TABLE)
READ_S = 120.0
SCHEDULING = Path("/proc/thread-self/schedstat")  # nanoseconds on a core, nanoseconds in its queue, turns


class Pauses(msgspec.Struct, frozen=True):
    """What one run tells."""

    longest_ms: float
    listed_bytes: int
    pods: int


async def fill(server: EmbeddedServer, pods: int) -> None:
    """One Pod through the API, and copies of it straight into the store."""
    client = Client(server.running.transport(), SystemClock())
    await client.call(Request("POST", PODS, body=msgspec.json.encode(standing_pod(0))))
    await copy_below_the_api(server.running.store, "pods", Key(NAMESPACE, standing_name(0)), pods - 1)


async def copy_below_the_api(store: Store, label: str, key: Key, copies: int) -> None:
    first = store.table(label).get(key)
    assert first is not None
    written: asyncio.Future[None] | None = None
    for number in range(copies):
        revision = store.next_revision()
        name = f"copy-{number:05}"
        value = first.value.replace(key.name.encode(), name.encode(), 1)
        record = Record(Key(key.namespace, name), revision, with_revision(value, revision), first.traits)
        written = store.write(label, Op.ADDED, record)
        if number % COPIED_AT_ONCE == 0:
            await written
    if written is not None:
        await written


async def tick(longest: list[float]) -> None:
    while True:
        asked, queued_s = time.perf_counter(), waited_for_a_core_s()
        await asyncio.sleep(TICK_S)
        late_s = time.perf_counter() - asked - TICK_S
        # What other processes took is not the loop's doing.
        longest[0] = max(longest[0], late_s - (waited_for_a_core_s() - queued_s))


def waited_for_a_core_s() -> float:
    """How long this thread was ready to run and did not, since it started; 0 where the kernel does not tell."""
    try:
        return int(SCHEDULING.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


async def read_lists(kubeconfig: Path) -> int:
    """In another process: reading 50 MB here would be a pause of its own."""
    command = (sys.executable, "-m", "bench.embedded_pauses", "read", str(kubeconfig))
    reader = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await reader.communicate()
    return int(said)


def read(kubeconfig: Path) -> int:
    config = yaml.safe_load(kubeconfig.read_text())
    context = ssl.create_default_context(cafile=str(kubeconfig.parent / "pki" / "ca.crt"))
    context.load_cert_chain(kubeconfig.parent / "bench.pem")
    url = config["clusters"][0]["cluster"]["server"]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    size = 0
    for accept in ACCEPTED:
        with opener.open(urllib.request.Request(f"{url}{PODS}", headers={"Accept": accept}), timeout=READ_S) as answer:
            size += len(answer.read())
    return size


async def main(pods: int) -> None:
    collect_rarely()
    with TemporaryDirectory(prefix="bench-") as place:
        data = Path(place) / "data"
        clock = SystemClock()
        async with EmbeddedServer(data, clock) as server:
            await fill(server, pods)
            admin = server.authority.issue_client("bench-admin", ("system:masters",), clock.now())
            (data / "bench.pem").touch(0o600)
            (data / "bench.pem").write_bytes(admin.certificate_pem + admin.key_pem.reveal().encode())
            pass_over_what_is_there()
            longest = [0.0]
            ticking = asyncio.create_task(tick(longest))
            size = await read_lists(data / "admin.kubeconfig")
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking
    print(msgspec.json.encode(Pauses(longest[0] * 1000, size, pods)).decode(), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "read":
        print(read(Path(sys.argv[2])))
    else:
        asyncio.run(main(int(sys.argv[1])))
