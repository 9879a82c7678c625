"""`applecart up`: run what there is of applecart on this machine until Ctrl-C, and say what that is.

Today it runs a Kubernetes API from programs on disk (or uses one that is named), installs our kinds, keeps the fleet in memory
and serves metrics and health. It never touches a cluster that was not named: a kubeconfig lying around is not an invitation.
"""

import asyncio
import gc
import signal
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from applecart import __version__
from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.crd import DEFINITIONS, as_document
from applecart.api.meta import Key
from applecart.cli.fleet_watch import MACHINE_NOT_READY, POD_PENDING, FleetWatch
from applecart.clock import Clock, SystemClock
from applecart.embedded.binaries.cluster import API_SERVER, ETCD, KUBECTL, RealCluster
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.patches import Apply
from applecart.observe.ages import Ages
from applecart.observe.logs import LogFormat, setup_logging
from applecart.observe.metrics import Metrics
from applecart.observe.serve import ObserveServer

SUPERVISE_EVERY_S = 1.0  # a server that died is told within a second; asking costs a system call
ESTABLISHED_POLL_S = 0.1  # a new kind is served within a second
NO_API = """\
no Kubernetes API is running here, so there is no fleet to follow yet. To get one, either
  make kube-binaries && make up                      builds kube-apiserver and etcd once (about 11 minutes)
  applecart up --api external --kubeconfig FILE      uses a cluster of yours
until then this process serves its metrics and health only"""


class Options(msgspec.Struct, frozen=True):
    api: str
    binaries: Path | None
    kubeconfig: str | None
    context: str | None
    data: Path
    port: int


@click.command("up")
@click.option(
    "--api",
    type=click.Choice(["auto", "binaries", "external"]),
    default="auto",
    show_default=True,
    help="binaries: start etcd and kube-apiserver from --binaries; external: use --kubeconfig; auto: what is given.",
)
@click.option(
    "--binaries",
    metavar="DIR",
    envvar=["APPLECART_BINARIES", "KUBEBUILDER_ASSETS"],
    help="Folder with etcd, kube-apiserver and kubectl.  [env: APPLECART_BINARIES, KUBEBUILDER_ASSETS]",
)
@click.option("--kubeconfig", metavar="FILE", help="With --api external: instead of KUBECONFIG, the Pod or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="With --api external: instead of the current context.")
@click.option("--data", metavar="DIR", default="build/up", show_default=True, help="Where the started API keeps its data.")
@click.option("--port", default=8321, show_default=True, help="Of the metrics and health pages, on loopback; 0 for any.")
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: text on a terminal, json elsewhere.")
def command(
    api: str,
    binaries: str | None,
    kubeconfig: str | None,
    context: str | None,
    data: str,
    port: int,
    log_level: str,
    log_format: LogFormat | None,
) -> None:
    """Run applecart on this machine until Ctrl-C.

    \b
    Examples:
      applecart up
      applecart up --api external --kubeconfig ~/.kube/staging --context ci
    """
    setup_logging(log_level, log_format)
    folder = Path(binaries) if binaries else None
    asyncio.run(run(Options(api, folder, kubeconfig, context, Path(data), port), SystemClock()))


async def run(options: Options, clock: Clock) -> None:
    """Start everything, say so, and stop in the opposite order when asked to."""
    gc.set_threshold(50_000, 20, 100)  # Python's default collects every 700 objects and spends half of a large list on it
    stopping = _stop_signal()
    metrics = Metrics()
    metrics.add_process(clock)
    ages = Ages(clock, metrics, waits=(POD_PENDING, MACHINE_NOT_READY))
    async with AsyncExitStack() as running:
        page = ObserveServer(metrics, port=options.port)
        await running.enter_async_context(page)
        click.echo(f"applecart {__version__}")
        click.echo(f"  pages    http://127.0.0.1:{page.port}/metrics, /healthz, /readyz")
        mode = chosen_api(options)
        if mode == "none":
            page.ready = {"api": lambda: "no Kubernetes API is configured"}
            click.echo(NO_API)
            await stopping.wait()
            return
        cluster: RealCluster | None = None
        if mode == "binaries":
            assert options.binaries is not None
            click.echo(f"  starting {API_SERVER} and {ETCD} from {options.binaries}")
            make_data_folder(options.data)
            cluster = await running.enter_async_context(RealCluster(options.binaries, options.data / "cluster"))
        kubeconfig = str(cluster.kubeconfig) if cluster else options.kubeconfig
        transport = connect(kubeconfig, options.context if cluster is None else None, clock)
        client = Client(transport, clock)
        running.push_async_callback(client.aclose)
        click.echo(f"  api      {transport.endpoint.server}")
        if cluster:
            await install_kinds(client)
            click.echo(f"  kinds    {', '.join(definition.kind.__name__ for definition in DEFINITIONS)}")
        fleet = FleetWatch(client, metrics, ages)
        page.ready = {"caches": fleet.why_behind}
        await running.enter_async_context(_in_background(fleet, cluster))
        await _first(stopping.wait(), fleet.following())
        if stopping.is_set():
            return
        gc.collect()
        gc.freeze()  # what was listed stays; looking at it again in every collection would pause the loop
        click.echo("  follows  " + ", ".join(f"{count} {kind}" for kind, count in fleet.counts().items()))
        if cluster and options.binaries:
            click.echo(f"try\n  {options.binaries / KUBECTL} --kubeconfig {cluster.kubeconfig} get crds")
        click.echo("Ctrl-C stops it")
        await stopping.wait()


def chosen_api(options: Options) -> str:
    """`binaries`, `external` or `none`. A named thing that is not there is an error, not a reason to do something else."""
    if options.api == "external" or (options.api == "auto" and (options.kubeconfig or options.context)):
        return "external"
    if options.binaries is None:
        if options.api == "binaries":
            raise BadInput(
                "--api binaries needs a folder with kube-apiserver and etcd: give --binaries, or run make kube-binaries"
            )
        return "none"
    missing = [name for name in (ETCD, API_SERVER, KUBECTL) if not (options.binaries / name).is_file()]
    if missing:
        raise BadInput(f"{options.binaries} has no {' and no '.join(missing)}; name another folder or run make kube-binaries")
    return "binaries"


def make_data_folder(data: Path) -> None:
    """A folder that cannot be written is told before anything is started in it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data):
            pass
    except OSError as error:
        raise BadInput(f"--data {data} cannot be written ({error.strerror}); name another folder") from None


async def install_kinds(client: Client) -> None:
    """Server-side apply, so that a newer applecart updates what an older one installed; done when the API serves them."""
    keys = [Key("", definition.kind.resource.label) for definition in DEFINITIONS]
    for key, definition in zip(keys, DEFINITIONS, strict=True):
        await client.patch(CustomResourceDefinition, key, Apply(as_document(definition), force=True))
    for key in keys:
        while not (await client.get(CustomResourceDefinition, key)).is_established:  # noqa: ASYNC110 - the API has no event
            await asyncio.sleep(ESTABLISHED_POLL_S)


@asynccontextmanager
async def _in_background(fleet: FleetWatch, cluster: RealCluster | None) -> AsyncIterator[None]:
    """Follow and supervise; what fails there ends the command with its sentence."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fleet.run())]
        if cluster:
            tasks.append(group.create_task(_supervise(cluster)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _supervise(cluster: RealCluster) -> None:
    while True:
        cluster.check()
        await asyncio.sleep(SUPERVISE_EVERY_S)


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _stop_signal() -> asyncio.Event:
    """Set by Ctrl-C and by a polite kill: both end in an orderly stop and exit code 0."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
