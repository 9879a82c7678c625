"""The server, put together: from a log to an API, in memory or on disk.

`running_api` makes the part without sockets; it is all that a test on virtual time needs. `offline_api` runs it on the data
folder of a server that is stopped. `EmbeddedServer` adds TLS and HTTP, and stops with a sentence when its disk fails.
"""

import asyncio
import socket
import sqlite3
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import msgspec

from applecart.clock import Clock
from applecart.embedded.auth.authenticate import Authenticator, BearerTokens, BootstrapTokens, ClientCertificates
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.service_account_tokens import ServiceAccountTokens
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.kinds.builtin import builtin_kinds
from applecart.embedded.relay.relay import running_relay
from applecart.embedded.server.api import Api
from applecart.embedded.server.boot import Consequences, make_sure, tell_unserved
from applecart.embedded.server.core import Core, Settings
from applecart.embedded.server.crd_lifecycle import Definitions, install
from applecart.embedded.server.data_folder import DATABASE, DataFolder, make_data_folder
from applecart.embedded.server.front import Front
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.maintenance import Maintenance
from applecart.embedded.server.pages import Pages
from applecart.embedded.server.registry import CRD_LABEL, Registry, definition_kind
from applecart.embedded.server.request_log import RequestLog
from applecart.embedded.server.subresources import Identity
from applecart.embedded.server.worker import Worker
from applecart.embedded.store.log import Log, StoreFailed
from applecart.embedded.store.sealing import load_or_make_key
from applecart.embedded.store.sqlite_file import create_database, explain, holds_sealed, is_empty
from applecart.embedded.store.sqlite_log import SqliteLog
from applecart.embedded.store.store import Store, StoreReader
from applecart.embedded.trust.control_plane_files import ADMIN_USER, LOOPBACK, SERVER_NAMES
from applecart.embedded.trust.pki import alternative
from applecart.errors import BadInput
from applecart.kube.background import Background
from applecart.observe.metrics import Metrics

ISSUER = "https://kubernetes.default.svc"  # the issuer kubeadm uses, so tokens look alike everywhere
ADMIN = User(ADMIN_USER, (MASTERS, "system:authenticated"))
# OpenSSL's X509_V_FLAG_NO_CHECK_TIME. TLS would hang up on a client whose certificate has ended, which says nothing to its
# owner; `ClientCertificates` looks at the dates at every request, and the answer is 401 as from a real server.
NO_DATES = 0x200000


@dataclass(frozen=True, slots=True)
class RunningApi:
    """An API that answers, without a socket."""

    api: Api
    store: Store
    identity: Identity
    core: Core
    _transports: list[InProcessTransport] = field(default_factory=list)

    def transport(self, user: User = ADMIN) -> InProcessTransport:
        """A way in for one user; it ends with the API."""
        transport = InProcessTransport(self.api, user)
        self._transports.append(transport)
        return transport

    def refuse(self) -> None:
        """Nobody is answered any more."""
        for transport in self._transports:
            transport.refuse()


@asynccontextmanager
async def running_api(
    log: Log,
    clock: Clock,
    keys: TokenKeys,
    settings: Settings | None = None,
    address: str = f"{LOOPBACK}:443",
    *,
    has_worker: bool = False,  # for what is too large for the loop, where others wait for it
    metrics: Metrics | None = None,
) -> AsyncIterator[RunningApi]:
    """An API over a log, until the block ends."""
    definitions_kind = definition_kind(lambda: registry.names, clock, lambda group: registry.is_builtin_group(group))
    registry = Registry([*builtin_kinds(), definitions_kind])
    for _, (_, _, value) in log.current(CRD_LABEL):
        install(registry, msgspec.json.decode(value))
    store = Store(log, registry.take_in)
    try:
        store.start()
    except BaseException:
        await log.aclose()
        raise
    reader = StoreReader(store)
    authorizer = Authorizer(reader)
    worker = Worker(Authorizer(reader)) if has_worker else None
    background = Background(clock, metrics, is_over=lambda: store.failure is not None)
    core = Core(store, registry, reader, clock, authorizer, settings or Settings(), background, worker)
    accounts = ServiceAccountTokens(keys, ISSUER, reader, clock)
    identity = Identity(BearerTokens(accounts, BootstrapTokens(reader, clock)), accounts)
    definitions = Definitions(core, definitions_kind)
    Consequences(core, authorizer)
    tell_unserved(core)
    await make_sure(core)
    background.add("definitions", definitions.run)
    working = asyncio.create_task(background.run())
    running = RunningApi(Api(core, identity, Pages(core, accounts, address, metrics)), store, identity, core)
    try:
        yield running
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        if worker is not None:
            worker.close()
        await store.aclose()  # ends the watches; then nobody is answered any more
        running.refuse()


@asynccontextmanager
async def offline_api(folder: DataFolder, clock: Clock) -> AsyncIterator[RunningApi]:
    """The API of a data folder for this process only, while no server runs on it; raises BadInput when one does."""
    async with AsyncExitStack() as stack:
        stack.callback(folder.hold().release)
        with _told_in_sentences(folder.folder):  # what is done with it may fail on other files, such as a pipe
            log = open_log(folder)
            running = await stack.enter_async_context(running_api(log, clock, TokenKeys.load(folder.token_keys())))
        yield running


class EmbeddedServer:
    """A server on a data folder; use as an async context manager."""

    def __init__(
        self,
        data: Path,
        clock: Clock,
        *,
        port: int = 0,
        host: str = LOOPBACK,
        names: Sequence[str] = (),  # under which clients reach it besides the host and the usual ones
        settings: Settings | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._data = data
        self._clock = clock
        self._host = host
        self._names = names
        self._settings = settings
        self._metrics = metrics
        self.port = port
        self._stack = AsyncExitStack()
        self._failed: asyncio.Future[StoreFailed] | None = None

    async def __aenter__(self) -> "EmbeddedServer":
        with _told_in_sentences(self._data):
            try:
                await self._start()
            except BaseException:
                await self._stack.aclose()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        with _told_in_sentences(self._data):
            await self._stack.aclose()

    @property
    def url(self) -> str:
        return f"https://{reachable(self._host)}:{self.port}"

    async def until_failed(self) -> StoreFailed:
        """Returns when the disk has failed; until then it waits."""
        assert self._failed is not None
        return await self._failed

    async def _start(self) -> None:
        now = self._clock.now()
        await refuse_foreign_host(self._host)
        for name in self._names:
            alternative(name)
        self.folder = make_data_folder(self._data)
        self._stack.callback(self.folder.hold().release)
        log = open_log(self.folder)
        self.authority = self.folder.authority(now, is_in_use=log.revision > 0)
        self.keys = TokenKeys.load(self.folder.token_keys(is_in_use=log.revision > 0))
        served = running_api(log, self._clock, self.keys, self._settings, has_worker=True, metrics=self._metrics)
        running = await self._stack.enter_async_context(served)
        self.running = running
        self._failed = asyncio.get_running_loop().create_future()
        running.store.on_failure(self._note_failure)
        shown = self.folder.issue_kubelet_client(self.authority, now)
        relay = await self._stack.enter_async_context(running_relay(running.core, shown, self.authority.certificate_pem))
        running.api.use_agents(relay)
        requests = RequestLog(self.folder.requests, self._clock)
        self._stack.callback(requests.close)
        certificates = ClientCertificates(self._clock)
        self.front = Front(
            running.api,
            Authenticator(certificates, running.identity.bearer),
            running.core.authorizer,
            self._tls(),
            host=self._host,
            port=self.port,
            log=requests,
            relay=relay,
        )
        await self._stack.enter_async_context(self.front)
        self.port = self.front.port
        Maintenance(running.core, log)
        self.folder.write_admin(self.authority, self.url, now)
        self.folder.address.write_text(self.url)
        self._stack.callback(self.folder.address.unlink, missing_ok=True)

    def _tls(self) -> ssl.SSLContext:
        names = tuple(dict.fromkeys((*SERVER_NAMES, self._host, *self._names)))
        pair = self.folder.issue_server(self.authority, names, self._clock.now())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(pair.certificate, pair.key)
        context.load_verify_locations(cadata=self.authority.certificate_pem.decode("ascii"))
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= NO_DATES
        return context

    def _note_failure(self, failure: StoreFailed) -> None:
        assert self._failed is not None
        if not self._failed.done():
            self._failed.set_result(failure)


def open_log(folder: DataFolder) -> SqliteLog:
    """The log of a folder that this process holds.

    A first start makes the database before any key. So one that is empty or missing beside a key was not cut off while it was
    made: it lost what it held, and agents that met an API without their Pods would end them. Whatever is missing here is told
    before anything is written in its place.
    """
    what = "missing" if not folder.database.exists() else "empty" if is_empty(folder.database) else ""
    if what and folder.secrets_key.exists():
        raise BadInput(
            f"{folder.database} is {what}, but {folder.secrets_key} is of a server that ran here; restore a backup "
            "(applecart api restore --force), or remove both to begin anew without any object"
        )
    create_database(folder.database)
    if not folder.secrets_key.exists() and holds_sealed(folder.database):
        raise BadInput(
            f"{folder.secrets_key} is missing, and {folder.database} holds Secrets that only it opens; put it back, or restore "
            "a backup that has it (applecart api restore --force)"
        )
    return SqliteLog(folder.database, load_or_make_key(folder.secrets_key))


async def refuse_foreign_host(host: str) -> None:
    """Raises BadInput for a name or address on which this machine cannot listen, whatever the port."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as tried:
                tried.bind(address)
    except (OSError, UnicodeError) as error:
        because = error.strerror if isinstance(error, OSError) else "it is no host name"
        raise BadInput(
            f"--host {host} is no address of this machine ({because}); give one it has, such as {LOOPBACK} or 0.0.0.0"
        ) from None


def reachable(host: str) -> str:
    """The address as a client on this machine writes it into a URL: every address includes loopback."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return LOOPBACK
    return f"[{address}]" if address.version == 6 else host


@contextmanager
def _told_in_sentences(data: Path) -> Iterator[None]:
    """A disk that fails, or a database that turns out to be damaged only while it is read, is told like any other input."""
    try:
        yield
    except sqlite3.Error as error:
        raise BadInput(explain(data / DATABASE, error)) from None
    except OSError as error:
        raise BadInput(f"{error.filename or data} cannot be used ({error.strerror}); check the disk and its space") from None
