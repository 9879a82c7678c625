"""The agent's HTTPS endpoint: what a kubelet offers to an API server, for VMs. Logs, commands, usage, Pods.

Every request is from somebody known who may do it (`callers.py`, `access.py`), before anything else is looked at. A refusal
has a kubelet's words where it has some. Import this module only where the endpoint is on: aiohttp's server takes a while.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any, Self

import msgspec
from aiohttp import web

from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.codec import encode_object
from applecart.kubelet.serve.access import Access, asked, forbidden
from applecart.kubelet.serve.callers import Caller, CannotAsk, Tokens, bearer_of, caller_of_certificate
from applecart.kubelet.serve.exec import CannotRun, Command, open_command, read_command
from applecart.kubelet.serve.guests import Guest, GuestCommands, Guests
from applecart.kubelet.serve.log_options import BadLogQuery, LogOptions, read_log_options
from applecart.kubelet.serve.logs import GuestLog, NoLog, open_log
from applecart.kubelet.serve.stats import Stats
from applecart.kubelet.serve.terminal import Terminal, run_while_heard
from applecart.kubelet.serve.tls import RotatedTls, TlsFiles
from applecart.kubelet.serve.upgrade import Upgrade
from applecart.observe.connection_limit import IDLE_S, LimitedListener, server_log
from applecart.observe.metrics import CONTENT_TYPE
from applecart.tart.mac import Mac

LONGEST_LINE_BYTES = 1 << 20  # a command stands in the address, and may be a whole script
LONGEST_FIELD_BYTES = 64 << 10  # a token
STOP_S = 0.5  # for requests under way when the agent ends; a followed log would never end by itself
NEW_OUTPUT_ONLY = LogOptions(follow=True, tail_lines=0)  # what somebody who attaches sees

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class KubeletEndpoint:
    """Use as an async context manager. Port 0 takes any free one, which `port` then tells."""

    def __init__(
        self,
        node: str,
        host: str,
        port: int,
        tls: TlsFiles,
        client: Client,
        guests: Guests,
        commands: GuestCommands,
        mac: Mac,
        clock: Clock,
    ) -> None:
        """Raises BadInput for files that are no certificates. An empty host is every address of this machine."""
        self.host = host
        self.port = port
        self._tls = RotatedTls(tls)
        self._tokens = Tokens(client, clock)
        self._access = Access(client, node, clock)
        self._guests = guests
        self._commands = commands
        self._stats = Stats(node, mac, commands, guests, clock)
        self._clock = clock

    async def __aenter__(self) -> Self:
        application = web.Application(middlewares=[self._admit])
        # No HEAD: aiohttp would send the log of a guest without a frame, and on a kept connection it could pose as an answer.
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs, allow_head=False)
        for action, handler in (("exec", self._exec), ("attach", self._attach)):
            application.router.add_route("*", f"/{action}/{{namespace}}/{{pod}}/{{container}}", handler)
        application.router.add_get("/stats/summary", self._summary)
        application.router.add_get("/metrics/resource", self._resource_metrics)
        application.router.add_get("/pods", self._pods)
        application.router.add_get("/healthz", self._healthz)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=server_log(__name__),
            keepalive_timeout=IDLE_S,
            shutdown_timeout=STOP_S,
            handler_cancellation=True,
            max_line_size=LONGEST_LINE_BYTES,
            max_field_size=LONGEST_FIELD_BYTES,
        )
        await self._runner.setup()
        try:
            assert self._runner.server is not None
            self._listener = await LimitedListener.open(
                self._runner.server, self.host or None, self.port, context=self._tls.context
            )
        except (OSError, OverflowError) as error:
            await self._runner.cleanup()
            reason = getattr(error, "strerror", None) or error
            raise BadInput(
                f"--kubelet-bind-address {self.host}:{self.port} cannot be served ({reason}); choose another address or port"
            ) from None
        self.port = self._listener.addresses[0][1]
        self._rotating = asyncio.create_task(self._tls.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self._rotating.cancel()
        await asyncio.gather(self._rotating, return_exceptions=True)
        await self._runner.cleanup()
        await self._stats.aclose()

    @web.middleware
    async def _admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        wanted = asked(request.method, request.path)
        try:
            caller = await self._caller(request)
            if caller is None:
                return web.Response(status=401, text="Unauthorized", headers={"WWW-Authenticate": "Bearer"})
            if not await self._access.allows(caller, wanted):
                return web.Response(status=403, text=forbidden(caller, wanted))
        except CannotAsk as error:
            return web.Response(status=503, text=str(error))
        return await handler(request)

    async def _caller(self, request: web.Request) -> Caller | None:
        certificate = request.get_extra_info("peercert")
        if certificate:
            found = caller_of_certificate(certificate, self._clock.now().timestamp())
            if found is not None:
                return found
        token = bearer_of(request.headers.get("Authorization", ""))
        return await self._tokens.caller(token) if token else None

    def _guest(self, request: web.Request) -> Guest:
        namespace, pod, container = (request.match_info[name] for name in ("namespace", "pod", "container"))
        guest = self._guests.find(namespace, pod)
        if guest is None:
            raise web.HTTPNotFound(text=f'pod "{pod}" does not exist')
        if guest.container != container:
            raise web.HTTPNotFound(text=f'container "{container}" not found in pod "{pod}"')
        return guest

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        guest = self._guest(request)
        try:
            log = open_log(self._guests, guest, read_log_options(request.query, self._clock.now()), self._clock)
        except (BadLogQuery, NoLog) as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            await _write(log, response.write)
            await response.write_eof()
        except ConnectionError:
            pass  # the reader went away
        finally:
            log.close()
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        guest, upgrade = self._guest(request), Upgrade.asked(request)
        try:
            words = read_command(guest, request.query.getall("command", []))
            upgrade.negotiate()
            session = await open_command(self._commands, guest, words, upgrade.streams)
        except CannotRun as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        try:
            terminal = await upgrade.accept()
        except BaseException:
            await session.kill()
            raise
        return await run_while_heard(terminal, Command(session, terminal, guest).run())

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        """A VM has no main process to join: what it prints from now on, and no stdin."""
        guest, upgrade = self._guest(request), Upgrade.asked(request)
        try:
            log = open_log(self._guests, guest, NEW_OUTPUT_ONLY, self._clock)
        except NoLog as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        try:
            upgrade.negotiate()
            terminal = await upgrade.accept()
            return await run_while_heard(terminal, _show(log, terminal))
        finally:
            log.close()

    async def _summary(self, _: web.Request) -> web.Response:
        return web.json_response(await self._stats.summary())

    async def _resource_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=await self._stats.resource_metrics(), headers={"Content-Type": CONTENT_TYPE})

    async def _pods(self, _: web.Request) -> web.Response:
        items = [msgspec.Raw(encode_object(pod)) for pod in self._guests.pods()]
        body: dict[str, Any] = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")


async def _show(log: GuestLog, terminal: Terminal) -> None:
    await _write(log, terminal.out)
    with suppress(ConnectionError):
        await terminal.finish(0)


async def _write(log: GuestLog, write: Callable[[bytes], Awaitable[None]]) -> None:
    async with aclosing(log.pieces()) as pieces:
        async for piece in pieces:
            await write(piece)
