"""A pool of connections that lets go at once of those that are given up.

aiohttp ends such a connection politely: it says goodbye in TLS and waits for the answer of a server that may be hung, which is
often why the call was given up. Nobody waits for that, so the socket stays open until the peer or a timeout ends it. Imported
with the first call, because it brings aiohttp along.
"""

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey


class AbortingConnector(aiohttp.TCPConnector):
    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if (should_close or protocol.should_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)
