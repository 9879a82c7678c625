"""A pool of connections that lets go at once of those that are given up, and sends nothing that may not go any more.

aiohttp ends such a connection politely: it says goodbye in TLS and waits for the answer of a server that may be hung, which is
often why the call was given up. Nobody waits for that, so the socket stays open until the peer or a timeout ends it. Imported
with the first call, because it brings aiohttp along.
"""

from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection

from applecart.kube.transport import FENCE


class AbortingConnector(aiohttp.TCPConnector):
    async def connect(self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if (refuse := FENCE.get()) is not None:
            try:
                refuse()
            except BaseException:
                connection.release()
                raise
        return connection

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if (should_close or protocol.should_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)
