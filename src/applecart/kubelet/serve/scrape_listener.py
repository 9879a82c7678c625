"""The HTTP server of one forwarded guest: requests become plain values, and answers bytes. Decides nothing."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from applecart.kubelet.serve.scrape import ScrapeAnswer, ScrapeRequest
from applecart.observe.connection_limit import LimitedListener, server_log

DRAIN_S = 5.0  # for scrapes under way when the guest goes
IDLE_S = 60.0  # of a kept connection
MOST_CONNECTIONS = 32  # a scraper keeps one; each costs the agent a file


class HttpListening:
    def __init__(self, runner: web.ServerRunner, listener: LimitedListener) -> None:
        self._runner = runner
        self._listener = listener

    @property
    def port(self) -> int:
        return self._listener.addresses[0][1]

    async def aclose(self) -> None:
        self._listener.close()
        await self._runner.cleanup()


async def listen_http(host: str, port: int, answer: Callable[[ScrapeRequest], Awaitable[ScrapeAnswer]]) -> HttpListening:
    """Raises OSError."""

    async def handle(request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = request.rel_url.raw_query_string
        asked = ScrapeRequest(request.remote or "", request.method, request.rel_url.raw_path, query, headers)
        found = await answer(asked)
        return web.Response(status=found.status, body=found.body, headers=dict(found.headers))

    server = web.Server(handle, access_log=None, logger=server_log(__name__), keepalive_timeout=IDLE_S)
    runner = web.ServerRunner(server, shutdown_timeout=DRAIN_S)
    await runner.setup()
    try:
        listener = await LimitedListener.open(server, host, port, most=MOST_CONNECTIONS)
    except BaseException:
        await runner.cleanup()
        raise
    return HttpListening(runner, listener)
