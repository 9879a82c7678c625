"""100 watchers of one collection while it changes 100 times a second: how long until each has heard. Prints one JSON line.

    python -m bench.embedded_watchers URL CA CERTIFICATE KEY WATCHERS UPDATES_PER_S SECONDS

The time of an update is that of its request, written into the object, so a delivery's age is known from the event alone. The
process that measures also watches, on one selector without parsing anything but that time.
"""

import re
import selectors
import socket
import ssl
import sys
import time
from urllib.parse import urlsplit

import msgspec

from bench.embedded_answers import answer_size, status_of
from bench.embedded_load import at, client_context
from bench.embedded_requests import MERGE, PODS, render, standing_name

SENT = re.compile(rb'"bench/sent":"(\d+)"')
RECEIVE_BYTES = 1 << 18
SETTLE_S = 2.0  # after the last update, for what is still on its way


class Delivery(msgspec.Struct, frozen=True):
    """What one run tells."""

    p50_ms: float
    p99_ms: float
    delivered: int
    wanted: int


class Watcher:
    def __init__(self, opened: ssl.SSLSocket) -> None:
        self.socket = opened
        self._rest = b""

    def ages_ns(self) -> list[int]:
        """The ages of the updates that have just arrived."""
        received = [self._rest]
        while True:
            try:
                chunk = self.socket.recv(RECEIVE_BYTES)
            except ssl.SSLWantReadError:
                break
            if not chunk:
                raise SystemExit("the server closed a watch")
            received.append(chunk)
        now_ns = time.monotonic_ns()
        text = b"".join(received)
        whole, newline, self._rest = text.rpartition(b"\n")
        return [now_ns - int(sent) for sent in SENT.findall(whole)] if newline else []


def open_socket(url: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    parts = urlsplit(url)
    assert parts.hostname
    plain = socket.create_connection((parts.hostname, parts.port or 443))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain, server_hostname=parts.hostname)


def open_watch(url: str, context: ssl.SSLContext, revision: str) -> Watcher:
    opened = open_socket(url, context)
    opened.sendall(render("GET", f"{PODS}?watch=true&resourceVersion={revision}"))
    head = opened.recv(RECEIVE_BYTES)
    assert status_of(head) == 200, head
    opened.setblocking(False)
    return Watcher(opened)


def exchange(opened: ssl.SSLSocket, request: bytes) -> bytes:
    opened.sendall(request)
    received = bytearray()
    while not answer_size(received):
        received += opened.recv(RECEIVE_BYTES)
    assert status_of(received) < 300, bytes(received[:2000])
    return bytes(received)


def update(number: int) -> bytes:
    body = {"metadata": {"annotations": {"bench/sent": str(time.monotonic_ns())}}}
    return render("PATCH", f"{PODS}/{standing_name(number % 32)}", body, MERGE)


def run(url: str, context: ssl.SSLContext, watchers: int, per_s: float, seconds: float) -> Delivery:
    writer = open_socket(url, context)
    found = re.search(rb'"resourceVersion":"(\d+)"', exchange(writer, render("GET", f"{PODS}?limit=1")))
    assert found
    revision = found[1].decode()
    selector = selectors.DefaultSelector()
    for _ in range(watchers):
        watcher = open_watch(url, context, revision)
        selector.register(watcher.socket, selectors.EVENT_READ, watcher)
    writer.setblocking(False)
    selector.register(writer, selectors.EVENT_READ, None)
    ages: list[float] = []
    sent, wanted = 0, int(per_s * seconds)
    start = time.perf_counter()
    end = start + seconds + SETTLE_S
    while (now := time.perf_counter()) < end and len(ages) < wanted * watchers:
        if sent < wanted and now >= start + sent / per_s:
            writer.send(update(sent))  # answers are not waited for, or a slow one would slow the updates down
            sent += 1
        next_at = start + sent / per_s if sent < wanted else end
        for key, _ in selector.select(max(0.0, next_at - time.perf_counter())):
            if key.data is not None:
                ages += [age / 1e6 for age in key.data.ages_ns()]
            else:
                drop(writer)
    ages.sort()
    return Delivery(at(ages, 0.5), at(ages, 0.99), len(ages), wanted * watchers)


def drop(opened: ssl.SSLSocket) -> None:
    """Answers to updates, which only matter by their events."""
    try:
        while opened.recv(RECEIVE_BYTES):
            pass
    except ssl.SSLWantReadError:
        return


def main(arguments: list[str]) -> None:
    url, authority, certificate, key, watchers, per_s, seconds = arguments
    context = client_context(authority, certificate, key)
    print(msgspec.json.encode(run(url, context, int(watchers), float(per_s), float(seconds))).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
