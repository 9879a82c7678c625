"""The page of one component that machines read: /metrics, /healthz and /readyz.

A check is a name and a function that returns None when all is well, else a sentence that says why not. Checks only look at
what the component already knows; they never call out, so a probe is answered at once. Listens on loopback unless told
otherwise, because nobody is asked who they are. aiohttp's server is imported when the first page is served: start time counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

from applecart import observe
from applecart.errors import BadInput
from applecart.observe.connection_limit import IDLE_S, LimitedListener, server_log
from applecart.observe.log_format import sentence
from applecart.observe.metrics import CONTENT_TYPE, Metrics
from applecart.secrets import redact

if TYPE_CHECKING:
    from aiohttp import web

Check = Callable[[], str | None]
LOOPBACK = "127.0.0.1"
STOP_WITHIN_S = 2.0  # a scrape that is under way may end; nobody waits longer for a page


def judge(checks: Mapping[str, Check]) -> tuple[bool, str]:
    """Whether all is well, and a line per check. A check that fails to run is a check that failed."""
    faults = {name: _fault(check) for name, check in checks.items()}
    lines = [f"not ok: {name}: {fault}" if fault else f"ok: {name}" for name, fault in faults.items()]
    is_well = not any(faults.values())
    return is_well, redact("\n".join([*lines, "ok" if is_well else "not ok"])) + "\n"


def _fault(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        return f"the check itself failed: {sentence(error)}"


class ObserveServer:
    """Serves the three pages; `async with` starts and stops it. Port 0 takes any free one, which `port` then tells."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        live: Mapping[str, Check] | None = None,
        ready: Mapping[str, Check] | None = None,
        host: str = LOOPBACK,
        port: int = 0,
        flag: str = "",
        has_metrics: bool = True,
    ) -> None:
        """`flag` is the one that chose the address, for the sentence when it cannot be had."""
        self.metrics = metrics
        self.live = live or {}
        self.ready = ready or {}
        self.host = host
        self.port = port
        self._runner: web.AppRunner | None = None
        self.addresses: list[tuple[str, int]] = []
        self._has_metrics = has_metrics
        self._what = "metrics" if has_metrics else "health"
        self._flag = f" with {flag}" if flag else ""

    async def start(self) -> None:
        from aiohttp import web

        app = web.Application()
        if self._has_metrics:
            app.router.add_get("/metrics", self._serve_metrics)
        app.router.add_get("/healthz", self._serve_health)
        app.router.add_get("/readyz", self._serve_readiness)
        runner = web.AppRunner(
            app, access_log=None, logger=server_log(__name__), keepalive_timeout=IDLE_S, shutdown_timeout=STOP_WITHIN_S
        )
        await runner.setup()
        try:
            assert runner.server is not None
            self._listener = await LimitedListener.open(runner.server, self.host, self.port)
        except (OSError, OverflowError) as error:
            await runner.cleanup()
            reason = getattr(error, "strerror", None) or error
            raise BadInput(
                f"cannot serve {self._what} on {self.host}:{self.port} ({reason}); choose another address or port{self._flag}"
            ) from None
        self._runner = runner
        self.addresses = self._listener.addresses
        self.port = self.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            self._listener.close()
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        from aiohttp import web

        return web.Response(body=self.metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    async def _serve_health(self, _: web.Request) -> web.Response:
        return _answer(self.live)

    async def _serve_readiness(self, _: web.Request) -> web.Response:
        return _answer(self.ready)


def _answer(checks: Mapping[str, Check]) -> web.Response:
    from aiohttp import web

    is_well, text = judge(checks)
    observe.published("health", text)
    return web.Response(status=200 if is_well else 503, text=text)
