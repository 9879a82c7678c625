"""A client of exec and attach over SPDY/3.1, with the same face as the one over WebSocket."""

import asyncio
import json
import ssl
import struct
import zlib
from types import TracebackType
from typing import Any, Self

from applecart.kubelet.serve.spdy_frames import DICTIONARY, SYN_STREAM, Data, control_frame, data, read_frames
from tests.embedded.relay.remote_command import Heard

KINDS = {0: "stdin", 1: "stdout", 2: "stderr", 3: "error", 4: "resize"}  # as WebSocket's channels are numbered


def opening(packer: Any, stream: int, headers: dict[str, str], *, flags: int = 0) -> bytes:
    block = struct.pack(">I", len(headers))
    for word in (word.encode() for pair in headers.items() for word in pair):
        block += struct.pack(">I", len(word)) + word
    packed = packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH)
    frame = control_frame(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + packed)
    return frame[:4] + bytes((flags,)) + frame[5:]


class SpdyCommand(Heard):
    """Use as an async context manager."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, path: str, streams: tuple[str, ...]) -> None:
        super().__init__()
        self._at = (host, port, context)
        self._path = path
        opened = {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "resize"}
        kinds = [opened[name] for name in streams if not (name == "error" and "tty" in streams)]
        self.streams = {kind: 1 + 2 * index for index, kind in enumerate(["error", *kinds])}

    async def __aenter__(self) -> Self:
        host, port, context = self._at
        self.reader, self.writer = await asyncio.open_connection(host, port, ssl=context)
        self.writer.write(
            f"POST {self._path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n"
            "Content-Length: 0\r\n\r\n".encode()
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        assert b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in head
        self.packer = zlib.compressobj(zdict=DICTIONARY)
        for kind, stream in self.streams.items():
            self.writer.write(opening(self.packer, stream, {"streamtype": kind}))
        self.frames = read_frames(self.reader)
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.frames.aclose()
        self.writer.transport.abort()

    async def type(self, typed: bytes) -> None:
        await self._send("stdin", typed)

    async def close_stdin(self) -> None:
        await self._send("stdin", b"", is_last=True)

    async def resize(self, width: int, height: int) -> None:
        await self._send("resize", json.dumps({"Width": width, "Height": height}).encode())

    async def until_end(self) -> None:
        """Until the Status has come and every stream is closed, as a client waits for it; then it goes."""
        while await self._hear():
            pass

    async def _send(self, kind: str, sent: bytes, *, is_last: bool = False) -> None:
        if kind in self.streams:
            for start in range(0, max(len(sent), 1), 32_768):
                self.writer.write(data(self.streams[kind], sent[start : start + 32_768], is_last=is_last))
            await self.writer.drain()

    async def _hear(self) -> bool:
        frame = await anext(self.frames, None)
        if isinstance(frame, Data):
            channel = next(number for number, kind in KINDS.items() if self.streams.get(kind) == frame.stream)
            self.heard.setdefault(channel, bytearray()).extend(frame.data)
            if KINDS[channel] == "error" and frame.is_last:
                return False
        return frame is not None
