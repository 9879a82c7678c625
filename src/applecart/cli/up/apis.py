"""The three APIs that applecart can run on, each ready to be spoken to.

Embedded and binaries are started here and end with the command; when one of them fails, its sentence ends the command. An
external API is only used: nothing is installed in it, and our controllers run there only when somebody asks for them and
Kubernetes' own are not at work.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from applecart.api.meta import Key
from applecart.cli.background import Work, in_background
from applecart.cli.connection import DEADLINE_S
from applecart.cli.up.options import BINARIES, EMBEDDED, Options, refuse_unwritable
from applecart.clock import Clock
from applecart.embedded.auth.user import User
from applecart.embedded.binaries.cluster import API_SERVER, ETCD, RealCluster
from applecart.embedded.trust.pki import Authority
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.manager import Manager
from applecart.kube.transport import Request, Transport
from applecart.observe.logs import logger
from applecart.observe.metrics import Metrics
from applecart.observe.serve import Check

CONTROLLERS_LEASE = Key("kube-system", "applecart-controllers")
SUPERVISE_EVERY_S = 1.0  # a server that died is told within a second; asking costs a system call
ASK_EVERY_S = 5.0  # an API that did not answer yet

log = logger(__name__)


class AgentAccess(msgspec.Struct, frozen=True):
    """How agents get into an API that was started here."""

    client_as: Callable[[str, User], Client]  # a name for the credentials, and who they are
    authority: Authority  # signs what agents serve with, and what the API shows them


class StartedApi(msgspec.Struct, frozen=True):
    """An API that answers."""

    client: Client
    url: str
    kubeconfig: Path | None  # None: the person knows where it is
    add_controllers: Callable[[Manager], list[str]] | None = None  # those of ours that it needs; they tell their names
    why_no_controllers: str = "switched off"
    controllers_lease: Key | None = None  # others may run them on it too: only who holds this works
    work: tuple[Work, ...] = ()  # what must go on as long as it is used
    agents: AgentAccess | None = None  # None: it is somebody else's
    ready: Mapping[str, Check] = {}  # what runs in it, where that is in this process


Start = Callable[[Options, Clock], AbstractAsyncContextManager[StartedApi]]


@asynccontextmanager
async def started_api(chosen: str, options: Options, clock: Clock, metrics: Metrics) -> AsyncIterator[StartedApi]:
    apis: dict[str, Start] = {EMBEDDED: partial(_embedded, metrics=metrics), BINARIES: _binaries}
    async with apis.get(chosen, _external)(options, clock) as running:
        try:
            yield running
        finally:
            await running.client.aclose()


@asynccontextmanager
async def _embedded(options: Options, clock: Clock, metrics: Metrics) -> AsyncIterator[StartedApi]:
    from applecart.cli.api.notices import watch_size
    from applecart.cli.api.port import ANY, port_again
    from applecart.cli.api.start import ends_with_its_disk
    from applecart.embedded.server.core import Settings
    from applecart.embedded.server.server import EmbeddedServer

    has_controllers = options.controllers is not False
    settings = Settings(needs_service_accounts=has_controllers)
    data = options.data / "api"
    port = port_again(data, ANY) if options.api_port is None else options.api_port
    async with EmbeddedServer(data, clock, port=port, settings=settings, metrics=metrics) as server:
        client = Client(server.running.transport(), clock)
        add = None
        if has_controllers:
            from applecart.embedded.controllers.controller_manager import add_controllers

            ca_pem, keys = server.authority.certificate_pem, server.keys
            add = partial(add_controllers, ca_pem=ca_pem, keys=keys, ends_events=True)
        size = partial(watch_size, server.running.store.table("nodes").__len__)
        disk = partial(ends_with_its_disk, server)
        agents = AgentAccess(lambda _, user: Client(server.running.transport(user), clock), server.authority)
        kubeconfig = server.folder.admin_kubeconfig
        ready = {"api": server.running.core.background.down}
        yield StartedApi(client, server.url, kubeconfig, add_controllers=add, work=(disk, size), agents=agents, ready=ready)


@asynccontextmanager
async def _binaries(options: Options, clock: Clock) -> AsyncIterator[StartedApi]:
    assert options.binaries is not None  # chosen_api has looked
    click.echo(f"  starting     {API_SERVER} and {ETCD} from {options.binaries}")
    refuse_unwritable(options.data)
    async with RealCluster(options.binaries, options.data / "cluster") as cluster:
        client = Client(connect(str(cluster.kubeconfig), None, clock), clock)
        add = None
        if options.controllers is not False:
            from applecart.embedded.auth.token_keys import TokenKeys
            from applecart.embedded.controllers.controller_manager import add_controllers

            keys = TokenKeys.load(cluster.files.trust.token_keys)
            add = partial(add_controllers, ca_pem=cluster.ca_pem, keys=keys)

        def client_as(name: str, user: User) -> Client:
            issued = cluster.issue_client(name, user.name, *user.groups)
            return Client(connect(str(issued.kubeconfig), None, clock), clock)

        agents = AgentAccess(client_as, cluster.files.authority)
        work = (partial(_supervise, cluster),)
        yield StartedApi(client, cluster.url, cluster.kubeconfig, add_controllers=add, work=work, agents=agents)


@asynccontextmanager
async def _external(options: Options, clock: Clock) -> AsyncIterator[StartedApi]:
    transport = connect(options.kubeconfig, options.context, clock)
    client = Client(transport, clock)
    add, because = None, "an external API has its own; --controllers runs ours where it has not"
    away = _Away()
    async with in_background(partial(away.until_it_answers, transport)):
        if options.controllers:
            from applecart.embedded.controllers.controller_manager import (
                add_controllers,
                real_controller_manager_runs,
                real_scheduler_runs,
            )

            if await real_controller_manager_runs(client):
                because = "a kube-controller-manager is at work"
            else:
                ca_pem, schedules = transport.endpoint.ca_pem.encode(), not await real_scheduler_runs(client)
                add = partial(add_controllers, ca_pem=ca_pem, keys=None, with_scheduler=schedules)
        kubeconfig = Path(options.kubeconfig) if options.kubeconfig else None
        lease = CONTROLLERS_LEASE if options.controllers else None
        yield StartedApi(client, transport.endpoint.server, kubeconfig, add, because, lease, ready={"api": away.told})


class _Away:
    """Why an API that was named did not answer yet: an informer hears of it when the client has tried for half a minute."""

    because: str | None = None

    def told(self) -> str | None:
        return self.because

    async def until_it_answers(self, transport: Transport) -> None:
        while True:
            try:
                await transport.send(Request("GET", "/version", deadline_s=DEADLINE_S))
                break
            except ApplecartError as error:
                if self.because != (because := str(error)):
                    log.warning("waiting for the API", because=because)
                self.because = because
                await asyncio.sleep(ASK_EVERY_S)
        self.because = None


async def _supervise(cluster: RealCluster) -> NoReturn:
    """Raises the sentence about a program that ended by itself."""
    while True:
        cluster.check()
        await asyncio.sleep(SUPERVISE_EVERY_S)
