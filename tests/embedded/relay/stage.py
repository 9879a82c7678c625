"""An API in front of one simulated node agent: ours on a socket of its own, or a real one.

Both get the same Node and the same Pods, so a scenario written against a stage runs on either.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from cryptography.hazmat.primitives.asymmetric import ec

from applecart.clock import Clock
from applecart.embedded.auth.authenticate import Authenticator, ClientCertificates
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.auth.user import MASTERS
from applecart.embedded.relay.relay import Relay, running_relay
from applecart.embedded.server.front import Front
from applecart.embedded.server.request_log import RequestLog
from applecart.embedded.server.server import running_api
from applecart.embedded.trust.control_plane_files import KUBELET_CLIENT
from applecart.embedded.trust.pki import Authority, PairFiles, write_kubeconfig, write_pair
from applecart.sim.node_agent import NodeAgent, agent_tls
from tests.embedded.memory_log import MemoryLog

HOST = "127.0.0.1"
NODE = "mac-1"
KUBECTL_S = 60


@dataclass
class Ran:
    """What a kubectl said."""

    code: int
    out: str
    err: str


class Stage:
    def __init__(
        self, url: str, session: aiohttp.ClientSession, agent: NodeAgent, kubeconfig: Path, namespace: str, node: str
    ) -> None:
        self.url = url
        self.session = session
        self.agent = agent
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.node = node

    async def make_node(self, **status: Any) -> None:
        """The agent's Node, which says where the agent is and that it speaks WebSocket."""
        await self._write("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})
        known = {
            "addresses": [{"type": "Hostname", "address": "localhost"}, {"type": "InternalIP", "address": self.agent.host}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.agent.port}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        }
        await self.patch_node(known | status)

    async def patch_node(self, status: dict[str, Any]) -> None:
        await self._write("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": status})

    async def make_pod(self, name: str, *containers: str, node: str | None = None, **metadata: Any) -> None:
        spec: dict[str, Any] = {"containers": [{"name": one, "image": "golden"} for one in containers or ("vm",)]}
        if node is None or node:
            spec["nodeName"] = node or self.node
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}
        await self._write("POST", f"/api/v1/namespaces/{self.namespace}/pods", body)

    async def _write(self, method: str, path: str, body: dict[str, Any]) -> None:
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        async with self.session.request(method, path, json=body, headers={"Content-Type": content_type}) as answer:
            assert answer.status < 300, await answer.text()

    def pod_path(self, below: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{below}"

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        async with self.session.get(path, **options) as answer:
            return answer.status, await answer.text()

    async def refusal(self, path: str, **options: Any) -> dict[str, Any]:
        async with self.session.get(path, **options) as answer:
            found: dict[str, Any] = await answer.json()
            assert found["code"] == answer.status
            return found

    async def kubectl(self, program: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
        process = await self.start_kubectl(program, *arguments, env=env)
        async with asyncio.timeout(KUBECTL_S):
            out, err = await process.communicate(stdin)
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())

    async def start_kubectl(
        self,
        program: Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        stdin: int = asyncio.subprocess.PIPE,
        stdout: int = asyncio.subprocess.PIPE,
    ) -> asyncio.subprocess.Process:
        home = self.kubeconfig.parent
        return await asyncio.create_subprocess_exec(
            str(program),
            *("--kubeconfig", str(self.kubeconfig), "--cache-dir", str(home / "cache"), "-n", self.namespace),
            *arguments,
            stdin=stdin,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(home), "NO_PROXY": "*", **(env or {})},
        )


class Trust:
    """An authority and what it issued, as files."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock
        self.authority = Authority.create("relay-test", clock.now())
        self.server = self.server_pair("server", "localhost", HOST)
        self.agent = self.server_pair("agent", "localhost", HOST)
        self.admin = self.client_pair("admin", MASTERS)
        self.shown_to_agents = self.client_pair(KUBELET_CLIENT, MASTERS)

    @property
    def pem(self) -> bytes:
        return self.authority.certificate_pem

    def server_pair(self, name: str, *hosts: str) -> PairFiles:
        return write_pair(self.folder, name, self.authority.issue_server(hosts, self._clock.now()))

    def client_pair(self, user: str, *groups: str) -> PairFiles:
        return write_pair(self.folder, user, self.authority.issue_client(user, groups, self._clock.now()))

    def agent_context(self) -> ssl.SSLContext:
        return agent_tls(self.agent.certificate, self.agent.key, self.pem)

    def client_context(self, pair: PairFiles) -> ssl.SSLContext:
        return client_context(pair, self.pem)

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server.certificate, self.server.key)
        context.load_verify_locations(cadata=self.pem.decode("ascii"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def client_context(pair: PairFiles, authority_pem: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority_pem.decode("ascii"))
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@asynccontextmanager
async def our_api(trust: Trust, clock: Clock) -> AsyncIterator[tuple[str, Relay]]:
    """An embedded API on a socket, with a relay."""
    keys = TokenKeys(ec.generate_private_key(ec.SECP256R1()))
    async with (
        running_api(MemoryLog(), clock, keys) as running,
        running_relay(running.api.core, trust.shown_to_agents, trust.pem) as relay,
    ):
        running.api.use_agents(relay)
        log = RequestLog(trust.folder / "requests.jsonl", clock)
        front = Front(
            running.api,
            Authenticator(ClientCertificates(clock), running.identity.bearer),
            running.core.authorizer,
            trust.server_context(),
            host=HOST,
            port=0,
            log=log,
            relay=relay,
        )
        try:
            async with front:
                yield f"https://{HOST}:{front.port}", relay
        finally:
            log.close()


@asynccontextmanager
async def our_stage(folder: Path, clock: Clock) -> AsyncIterator["OurStage"]:
    """Our API, one agent behind it, its Node made."""
    trust = Trust(folder / "pki", clock)
    kubeconfig = folder / "kubeconfig"
    async with (
        NodeAgent(NODE, trust.agent_context(), clock, HOST) as agent,
        our_api(trust, clock) as (url, relay),
        session_to(url, trust.client_context(trust.admin)) as session,
    ):
        admin = trust.authority.issue_client("admin", [MASTERS], clock.now())
        write_kubeconfig(kubeconfig, url, trust.pem, admin)
        stage = OurStage(url, session, agent, kubeconfig, "default", NODE)
        stage.trust = trust
        stage.relay = relay
        await stage.make_node()
        yield stage


class OurStage(Stage):
    trust: Trust
    relay: Relay

    async def until_measured(self) -> None:
        """The agent has answered a question that began after this call."""
        for _ in range(2):  # the first may be answered with what was under way
            await self.relay.metrics.scrapes.look()
        assert self.relay.metrics.scrapes.is_any


def session_to(url: str, context: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=context))
