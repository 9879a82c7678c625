"""An API server that only replays: a list of Pods in pages, then a watch with a burst of changes.

Everything is rendered before the first request, so what is measured is the client. It speaks HTTP/1.1 with chunked answers, as
kube-apiserver does: every watch event is a chunk of its own.

    python -m bench.pod_server PODS EVENTS      prints its port, serves until its standard input ends
"""

import asyncio
import os
import sys
from urllib.parse import parse_qs, urlsplit

from bench.pods import encoded, pod

FIRST_REVISION = 1_000_000
WRITE_BYTES = 1 << 20  # handed to the socket at once, so that the loop serves other requests too


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


class Recording:
    """The bytes of every answer, made once."""

    def __init__(self, pods: int, events: int) -> None:
        self._items = [encoded(pod(number, FIRST_REVISION + number)) for number in range(pods)]
        self.list_revision = FIRST_REVISION + pods
        self.events = b"".join(
            chunk(b'{"type":"MODIFIED","object":%s}\n' % encoded(pod(number % pods, self.list_revision + 1 + number)))
            for number in range(events)
        )

    def page(self, start: int, limit: int) -> bytes:
        stop = start + limit if limit else len(self._items)
        token = str(stop) if stop < len(self._items) else ""
        metadata = b'{"resourceVersion":"%d","continue":"%s"}' % (self.list_revision, token.encode())
        items = b",".join(self._items[start:stop])
        return b'{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[%s]}\n' % (metadata, items)


async def serve(recording: Recording, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            target = head.split(b" ", 2)[1].decode()
            query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            if query.get("watch") in ("true", "1"):
                for start in range(0, len(recording.events), WRITE_BYTES):
                    writer.write(recording.events[start : start + WRITE_BYTES])
                    await writer.drain()
                await reader.read()  # the client closes when it has seen enough
                return
            writer.write(chunk(recording.page(int(query.get("continue", "0")), int(query.get("limit", "0")))))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(pods: int, events: int) -> None:
    recording = Recording(pods, events)
    server = await asyncio.start_server(lambda r, w: serve(recording, r, w), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    # Connections of clients that were killed must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
