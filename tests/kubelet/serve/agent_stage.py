"""The agent's endpoint over real TLS, beside an embedded API that it asks about its callers."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import aiohttp

from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kubelet.serve.endpoint import KubeletEndpoint
from applecart.kubelet.serve.tls import TlsFiles
from applecart.tart.this_mac import ThisMac
from tests.embedded.relay.remote_command import RemoteCommand
from tests.embedded.relay.stage import HOST, NODE, Trust, session_to
from tests.kube.embedded_api import serving
from tests.kubelet.serve.local_guests import CommandsHere, GuestsHere
from tests.kubelet.serve.spdy_client import SpdyCommand
from tests.kubelet.serve.test_callers import Counted

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
ALL = ("input", "output", "error")


class AgentStage:
    def __init__(self, folder: Path, clock: Clock, wire: Counted) -> None:
        self.trust = Trust(folder / "pki", clock)
        self.wire = wire  # from the agent to the API
        self.client = Client(wire, clock)
        self.guests = GuestsHere(folder)
        self.commands = CommandsHere()
        self.tls = TlsFiles(self.trust.agent.certificate, self.trust.agent.key, folder / "ca.pem")
        self.tls.client_authority.write_bytes(self.trust.pem)
        self.endpoint = KubeletEndpoint(NODE, HOST, 0, self.tls, self.client, self.guests, self.commands, ThisMac(), clock)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.endpoint.port}"

    def session(self, user: str = "kube-apiserver-kubelet-client", *groups: str) -> aiohttp.ClientSession:
        """Somebody with a certificate; by default the API server."""
        return session_to(self.url, self.trust.client_context(self.trust.client_pair(user, *groups)))

    def stranger(self) -> aiohttp.ClientSession:
        """Somebody without one."""
        return session_to(self.url, ssl.create_default_context(cadata=self.trust.pem.decode()))

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session() as session, session.get(path) as answer:
            return answer.status, await answer.text()

    def running_over_spdy(self, *command: str, action: str = "exec", streams: tuple[str, ...] = ALL) -> SpdyCommand:
        context = self.trust.client_context(self.trust.client_pair("kube-apiserver-kubelet-client"))
        return SpdyCommand(HOST, self.endpoint.port, context, path_of(action, command, streams), streams)

    @asynccontextmanager
    async def running(
        self, *command: str, action: str = "exec", streams: tuple[str, ...] = ALL, protocols: tuple[str, ...] = (V5,)
    ) -> AsyncIterator[RemoteCommand]:
        path = path_of(action, command, streams)
        closing = aiohttp.ClientWSTimeout(ws_close=0.5)
        async with (
            self.session() as session,
            session.ws_connect(path, protocols=protocols, max_msg_size=0, timeout=closing) as socket,
        ):
            assert socket.protocol == protocols[0]
            yield RemoteCommand(socket)


def path_of(action: str, command: tuple[str, ...], streams: tuple[str, ...]) -> str:
    query = urlencode([*(("command", word) for word in command), *((one, "1") for one in streams)])
    return f"/{action}/default/job/vm?{query}"


@asynccontextmanager
async def agent_stage(folder: Path, clock: Clock) -> AsyncIterator[AgentStage]:
    async with serving(clock) as running:
        stage = AgentStage(folder, clock, Counted(running.transport()))
        async with stage.endpoint:
            yield stage
