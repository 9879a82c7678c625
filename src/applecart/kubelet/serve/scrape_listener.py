"""The HTTP server of one forwarded guest: requests become plain values, and answers bytes. Decides nothing."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from applecart.kubelet.serve.scrape import ScrapeAnswer, ScrapeRequest

DRAIN_S = 5.0  # for scrapes under way when the guest goes
IDLE_S = 60.0  # of a kept connection
LONGEST_REQUEST_BYTES = 64 << 10


class HttpListening:
    def __init__(self, runner: web.ServerRunner) -> None:
        self._runner = runner

    @property
    def port(self) -> int:
        port: int = self._runner.addresses[0][1]
        return port

    async def aclose(self) -> None:
        await self._runner.cleanup()


async def listen_http(host: str, port: int, answer: Callable[[ScrapeRequest], Awaitable[ScrapeAnswer]]) -> HttpListening:
    """Raises OSError."""

    async def handle(request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = request.rel_url.raw_query_string
        asked = ScrapeRequest(request.remote or "", request.method, request.rel_url.raw_path, query, headers)
        found = await answer(asked)
        return web.Response(status=found.status, body=found.body, headers=dict(found.headers))

    server = web.Server(handle, access_log=None, keepalive_timeout=IDLE_S)
    runner = web.ServerRunner(server, shutdown_timeout=DRAIN_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except BaseException:
        await runner.cleanup()
        raise
    return HttpListening(runner)
