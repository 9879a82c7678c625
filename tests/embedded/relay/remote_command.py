"""A client of exec and attach that keeps what comes on each channel."""

import json
from typing import Any

import aiohttp

from applecart.embedded.relay.pump import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT


class Heard:
    """What a command said, by channel."""

    def __init__(self) -> None:
        self.heard: dict[int, bytearray] = {}

    @property
    def out(self) -> bytes:
        return bytes(self.heard.get(STDOUT, b""))

    @property
    def err(self) -> bytes:
        return bytes(self.heard.get(STDERR, b""))

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.heard[ERROR])
        return found

    @property
    def exit_code(self) -> int:
        if self.status["status"] == "Success":
            return 0
        return int(self.status["details"]["causes"][0]["message"])

    async def _hear(self) -> bool:
        raise NotImplementedError

    async def until_heard(self, channel: int, text: bytes) -> None:
        while text not in self.heard.get(channel, bytearray()):
            if not await self._hear():
                raise AssertionError(f"the command ended; heard {self.heard}")


class RemoteCommand(Heard):
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__()
        self._socket = socket

    async def type(self, data: bytes) -> None:
        await self._socket.send_bytes(bytes((STDIN,)) + data)

    async def close_stdin(self) -> None:
        await self._socket.send_bytes(bytes((CLOSE, STDIN)))

    async def resize(self, width: int, height: int) -> None:
        await self._socket.send_bytes(bytes((RESIZE,)) + json.dumps({"Width": width, "Height": height}).encode())

    async def until_end(self) -> int | None:
        """Everything to the end; the code with which the connection was closed."""
        while await self._hear():
            pass
        return self._socket.close_code

    async def _hear(self) -> bool:
        message = await self._socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            return False
        self.heard.setdefault(message.data[0], bytearray()).extend(message.data[1:])
        return True
