"""The servers that answers are compared between, behind one interface.

`Server` is all that a check knows of a server, so one that is real, one that is embedded and one that somebody started by
hand are interchangeable. A server belongs to no event loop: it is started outside the test's loop and used from many. What a
server cannot do (`powers`) is declared, never guessed from a failure.
"""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import yaml

from applecart.clock import SystemClock
from applecart.embedded.binaries.cluster import API_SERVER
from applecart.embedded.trust.pki import Authority, Pair, write_pair
from applecart.secrets import Secret
from tests.conformance.caller import Caller, Login, open_session
from tests.kube.kubernetes_backend import compact_etcd
from tests.kubernetes.cluster import FullCluster

COMPACT = "compact"  # can forget old revisions on request
RESTART = "restart"  # can be stopped and started with its data kept
CONTROLLERS = "controllers"  # something collects garbage and empties namespaces
ADMIN: tuple[str, tuple[str, ...]] = ("conformance-admin", ("system:masters",))
FORGET_WITHIN_S = 30.0  # a real server's caches look at the compacted revision once a second
LOOK_EVERY_S = 0.1


class Server(Protocol):
    """A running API server and the powers over it that checks need.

    An implementation must: authenticate the client certificates that `login` issues by CN and O, and bearer tokens of service
    accounts; authorize with Node and RBAC (`system:masters` may do everything; bootstrap roles exist) and restrict nodes;
    run no controllers unless `powers` holds CONTROLLERS, and without them set no ServiceAccount on Pods (the real server runs
    without that plugin); track managed fields from the first write on, not from the first apply; keep its data over `restart`
    and answer at the same url afterwards. `compact` returns when older revisions are refused.
    """

    url: str
    powers: frozenset[str]

    def login(self, user: str | None, groups: Sequence[str] = (), token: str = "") -> Login:
        """As a user of these groups by certificate, or as the bearer of a token, or (None, no token) as nobody."""
        ...

    async def compact(self) -> None: ...

    async def restart(self) -> None: ...


class StoppableServer(Server, Protocol):
    """A server that was started for a test: what `start_embedded` of `embedded_server.py` returns."""

    async def stop(self) -> None: ...


def trusting(ca_pem: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=ca_pem)


class RealServer:
    """A kube-apiserver with its etcd, started by `FullCluster`."""

    def __init__(self, cluster: FullCluster, *, has_controllers: bool = False) -> None:
        self._cluster = cluster
        self._logins: dict[tuple[str, tuple[str, ...]], Login] = {}
        self.url = cluster.url
        self.powers = frozenset({COMPACT, RESTART} | ({CONTROLLERS} if has_controllers else set()))

    def login(self, user: str | None, groups: Sequence[str] = (), token: str = "") -> Login:
        ca_pem = self._cluster.ca_pem.decode("ascii")
        if user is None:
            return Login(trusting(ca_pem), {"Authorization": f"Bearer {token}"} if token else {})
        key = (user, tuple(groups))
        if key not in self._logins:
            context = trusting(ca_pem)
            client = self._cluster.issue_client(f"conformance-{len(self._logins)}", user, *groups)
            context.load_cert_chain(client.files.certificate, client.files.key)
            self._logins[key] = Login(context, {})
        return self._logins[key]

    async def compact(self) -> None:
        async with open_session() as session:
            admin = Caller(session, self.url, self.login(*ADMIN))
            path = "/api/v1/namespaces/default/configmaps"
            for _ in range(2):  # a list needs two objects to have a second page
                await admin.post(path, _spare_object())
            token = (await admin.get(path, limit=1)).body["metadata"]["continue"]
            await admin.post(path, _spare_object())
            await compact_etcd(self._cluster)
            async with asyncio.timeout(FORGET_WITHIN_S):
                while (await admin.get(path, limit=1, continue_=token)).status != 410:  # noqa: ASYNC110 (another process)
                    await asyncio.sleep(LOOK_EVERY_S)
            await admin.delete(path)

    async def restart(self) -> None:
        await self._cluster.stop_program(API_SERVER)
        await self._cluster.start_api_server()


class KubeconfigServer:
    """A server that somebody else runs, known by a kubeconfig with a client certificate.

    Other users get certificates of its authority where that is at hand, and are impersonated where it is not.
    """

    def __init__(self, kubeconfig: Path, powers: Sequence[str] = (), authority: Authority | None = None) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self.url = str(cluster["server"]).rstrip("/")
        self.powers = frozenset(powers)
        self._authority = authority
        self._ca_pem = _inline(cluster, "certificate-authority", kubeconfig)
        key = Secret(_inline(user, "client-key", kubeconfig))
        admin = Pair(_inline(user, "client-certificate", kubeconfig).encode(), key)
        self._logins = {ADMIN: Login(self._showing(admin), {})}

    def login(self, user: str | None, groups: Sequence[str] = (), token: str = "") -> Login:
        if user is None:
            return Login(trusting(self._ca_pem), {"Authorization": f"Bearer {token}"} if token else {})
        key = (user, tuple(groups))
        if key not in self._logins:
            if self._authority is not None:
                self._logins[key] = Login(self._showing(self._authority.issue_client(user, groups, SystemClock().now())), {})
            else:
                group = {"Impersonate-Group": groups[0]} if groups else {}
                self._logins[key] = Login(self._logins[ADMIN].context, {"Impersonate-User": user, **group})
        return self._logins[key]

    def _showing(self, pair: Pair) -> ssl.SSLContext:
        context = trusting(self._ca_pem)
        with tempfile.TemporaryDirectory() as folder:  # Python loads a certificate from files only
            files = write_pair(Path(folder), "client", pair)
            context.load_cert_chain(files.certificate, files.key)
        return context

    async def compact(self) -> None:
        raise NotImplementedError("a server known by its kubeconfig alone cannot be compacted")

    async def restart(self) -> None:
        raise NotImplementedError("a server known by its kubeconfig alone cannot be restarted")


def _inline(section: dict[str, str], name: str, kubeconfig: Path) -> str:
    data = section.get(f"{name}-data")
    return base64.b64decode(data).decode() if data else (kubeconfig.parent / section[name]).read_text()


def _spare_object() -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "compact-"}}
