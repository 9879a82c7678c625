"""A simulated node agent: the part of a kubelet's HTTPS endpoint that an API server calls.

Logs, exec, attach and usage of simulated guests, with a kubelet's paths, names and refusals. Only a caller with the
certificate of an API server is answered: every user and every node has a certificate of the same authority.
"""

import asyncio
import ssl
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from applecart.clock import Clock
from applecart.kubelet.serve.terminal import Terminal, run_while_heard
from applecart.kubelet.serve.upgrade import Upgrade
from applecart.sim import guest_programs
from applecart.sim.guest import Guest, LogRequest

CALLER = "kube-apiserver-kubelet-client"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def agent_tls(certificate: Path, key: Path, authority_pem: bytes) -> ssl.SSLContext:
    """Serves with this pair, and asks callers for a certificate of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority_pem.decode("ascii"))
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


class NodeAgent:
    """The agent of one node; use as an async context manager."""

    def __init__(self, node: str, context: ssl.SSLContext, clock: Clock, host: str = "127.0.0.1") -> None:
        self.node = node
        self.host = host
        self.port = 0
        self.guests: dict[tuple[str, str, str], Guest] = {}  # by namespace, Pod and container
        self.asked: list[str] = []  # every path that was asked for, with its query
        self.running = 0  # commands and followed logs under way
        self._context = context
        self._clock = clock
        self._connections: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, namespace: str, pod: str, container: str) -> Guest:
        guest = Guest(self._clock)
        self.guests[namespace, pod, container] = guest
        return guest

    async def __aenter__(self) -> Self:
        application = web.Application(middlewares=[self._only_the_api_server])
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        for action in ("exec", "attach"):
            application.router.add_route("*", f"/{action}/{{namespace}}/{{pod}}/{{container}}", self._command)
        application.router.add_get("/stats/summary", self._summary)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=self._context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()  # a caller keeps its connections for the next time, and would be waited for
        await self._runner.cleanup()

    async def until_idle(self) -> None:
        """Returns when nobody reads or runs anything."""
        await self._idle.wait()

    def cut(self) -> None:
        """Lose every connection at once, as a machine that loses power does."""
        for connection in list(self._connections):
            with suppress(AttributeError):  # before Python 3.11.5 a TLS transport that was closed twice cannot be aborted
                connection.abort()

    @web.middleware
    async def _only_the_api_server(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        if not names:
            return web.Response(status=401, text="Unauthorized")
        if names != [CALLER]:
            return web.Response(status=403, text=f"Forbidden (user={names[0]}, verb=get, resource=nodes, subresource=proxy)")
        self.asked.append(request.path_qs)
        assert isinstance(request.transport, asyncio.Transport)
        self._connections.add(request.transport)
        self.running += 1
        self._idle.clear()
        try:
            return await handler(request)
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()

    def _guest(self, request: web.Request) -> Guest:
        namespace, pod, container = (request.match_info[name] for name in ("namespace", "pod", "container"))
        if not any(key[:2] == (namespace, pod) for key in self.guests):
            raise web.HTTPNotFound(text=f'pod "{pod}" does not exist')
        guest = self.guests.get((namespace, pod, container))
        if guest is None:
            raise web.HTTPNotFound(text=f'container "{container}" not found in pod "{pod}"')
        if guest.waiting:
            raise web.HTTPBadRequest(text=f'container "{container}" in pod "{pod}" is waiting to start: {guest.waiting}')
        return guest

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        guest = self._guest(request)
        asked = self._log_request(request)
        is_previous = request.query.get("previous") == "true"
        if is_previous and guest.previous is None:
            pod, container = request.match_info["pod"], request.match_info["container"]
            raise web.HTTPBadRequest(text=f'previous terminated container "{container}" in pod "{pod}" not found')
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with suppress(ConnectionError):
            async for text in guest.read(asked, is_previous=is_previous):
                await response.write(text)
            await response.write_eof()
        return response

    def _log_request(self, request: web.Request) -> LogRequest:
        query = request.query
        try:
            since = None
            if "sinceSeconds" in query:
                since = self._clock.now() - timedelta(seconds=int(query["sinceSeconds"]))
            elif "sinceTime" in query:
                since = datetime.fromisoformat(query["sinceTime"])
            return LogRequest(
                follow=query.get("follow") == "true",
                timestamps=query.get("timestamps") == "true",
                tail_lines=int(query["tailLines"]) if "tailLines" in query else None,
                since=since,
                limit_bytes=int(query["limitBytes"]) if "limitBytes" in query else None,
            )
        except (ValueError, OverflowError):
            raise web.HTTPBadRequest(text='{"message": "Unable to decode query."}') from None

    async def _command(self, request: web.Request) -> web.StreamResponse:
        guest, upgrade = self._guest(request), Upgrade.asked(request)
        upgrade.negotiate()
        terminal = await upgrade.accept()
        if request.path.startswith("/attach/"):
            program = guest_programs.attach(guest, terminal)
        else:
            program = guest_programs.run(guest, request.query.getall("command", []), terminal)
        return await run_while_heard(terminal, _told(terminal, program))

    async def _summary(self, _: web.Request) -> web.Response:
        pods: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for (namespace, pod, container), guest in self.guests.items():
            if guest.is_running and not guest.waiting:
                stats = self._stats(guest.cpu_nanocores, guest.memory_bytes)
                pods.setdefault((namespace, pod), []).append({"name": container, **stats})
        cpu = sum(guest.cpu_nanocores for guest in self.guests.values())
        memory = sum(guest.memory_bytes for guest in self.guests.values())
        return web.json_response(
            {
                "node": {"nodeName": self.node, **self._stats(cpu, memory)},
                "pods": [
                    {"podRef": {"name": pod, "namespace": namespace, "uid": ""}, "containers": containers}
                    for (namespace, pod), containers in pods.items()
                ],
            }
        )

    def _stats(self, cpu_nanocores: int, memory_bytes: int) -> dict[str, Any]:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "cpu": {"time": now, "usageNanoCores": cpu_nanocores},
            "memory": {"time": now, "workingSetBytes": memory_bytes},
        }


async def _told(terminal: Terminal, program: Coroutine[Any, Any, int]) -> None:
    """The program, and then how it ended."""
    await terminal.finish(await program)
