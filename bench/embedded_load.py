"""Sends one kind of request over many connections as fast as they are answered. Prints one JSON line.

    python -m bench.embedded_load URL CA CERTIFICATE KEY LOAD CONNECTIONS WARM_UP_S SECONDS RUN

Plain non-blocking TLS sockets on one selector and requests rendered beforehand: 30 microseconds a request, so that a server
that answers in 200 is what limits. The same program drives both sides.
"""

import selectors
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from itertools import count
from urllib.parse import urlsplit

import msgspec

from bench.embedded_answers import answer_size, status_of
from bench.embedded_requests import maker

RECEIVE_BYTES = 1 << 18
PREPARED = 400  # requests rendered ahead for each connection; more are rendered on the way when a server is faster
STALLED_S = 20.0


class Load(msgspec.Struct, frozen=True):
    """What one run tells."""

    per_s: float
    p50_ms: float
    p99_ms: float
    answered: int


class Connection:
    """One request after the other."""

    def __init__(self, url: str, context: ssl.SSLContext, requests: Iterator[bytes]) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        plain = socket.create_connection((parts.hostname, parts.port or 443))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=parts.hostname)
        self.socket.setblocking(False)
        self._requests = requests
        self._received = bytearray()
        self.sent_at = 0.0

    def send(self) -> None:
        request = next(self._requests)
        self.sent_at = time.perf_counter()
        sent = self.socket.send(request)  # a request fits the socket's buffer many times
        assert sent == len(request)

    def take(self) -> bool:
        """Whether the answer is complete. One that is no success ends the run: it would be the wrong thing to measure."""
        while True:
            try:
                received = self.socket.recv(RECEIVE_BYTES)
            except ssl.SSLWantReadError:
                break
            if not received:
                raise SystemExit("the server closed a connection")
            self._received += received
        if not answer_size(self._received):
            return False
        if status_of(self._received) >= 300:
            raise SystemExit(f"the server refused: {bytes(self._received[:2000])!r}")
        self._received.clear()
        return True


def client_context(authority: str, certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    return context


def requests_of(load: str, run: str, connection: int) -> Iterator[bytes]:
    make = maker(load, run)
    prepared = [make(connection, number) for number in range(PREPARED)]
    yield from prepared
    for number in count(PREPARED):
        yield make(connection, number)


def drive(connections: list[Connection], warm_up_s: float, seconds: float) -> Load:
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.send()
    took: list[float] = []
    start = time.perf_counter() + warm_up_s
    end = start + seconds
    while (now := time.perf_counter()) < end:
        ready = selector.select(STALLED_S)
        if not ready:
            raise SystemExit(f"the server answered nobody for {STALLED_S:.0f} s")
        for key, _ in ready:
            connection = key.data
            if connection.take():
                now = time.perf_counter()
                if now >= start:
                    took.append(now - connection.sent_at)
                connection.send()
    took.sort()
    return Load(len(took) / (now - start), at(took, 0.5) * 1000, at(took, 0.99) * 1000, len(took))


def at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("inf")


def main(arguments: list[str]) -> None:
    url, authority, certificate, key, load, connections, warm_up_s, seconds, run = arguments
    context = client_context(authority, certificate, key)
    opened = [Connection(url, context, requests_of(load, run, one)) for one in range(int(connections))]
    print(msgspec.json.encode(drive(opened, float(warm_up_s), float(seconds))).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
