"""The command itself: start an API, follow the fleet in it, serve metrics and health, and say what runs.

It never touches a cluster that was not named: a kubeconfig lying around is not an invitation.
"""

import asyncio
import gc
import os
import shlex
from contextlib import AsyncExitStack
from pathlib import Path

import click

from applecart import __version__
from applecart.cli.background import in_background
from applecart.cli.fleet_watch import MACHINE_NOT_READY, POD_PENDING, FleetWatch
from applecart.cli.kubectl import kubectl_command
from applecart.cli.stop_signal import first_of, stop_signal
from applecart.cli.up.apis import running_api
from applecart.cli.up.kinds import install_kinds
from applecart.cli.up.options import BINARIES, EMBEDDED, EXTERNAL, Options, chosen_api
from applecart.clock import Clock, SystemClock
from applecart.observe.ages import Ages
from applecart.observe.logs import LogFormat, setup_logging
from applecart.observe.metrics import Metrics
from applecart.observe.serve import ObserveServer

MEANS = {
    EMBEDDED: "our own API server, in this process",
    BINARIES: "kube-apiserver and etcd, started here",
    EXTERNAL: "a cluster that was named",
}


@click.command("up")
@click.option(
    "--api",
    type=click.Choice([EMBEDDED, BINARIES, EXTERNAL]),
    help="embedded: our own, in this process (default); binaries: etcd and kube-apiserver from --binaries; "
    "external: the cluster of --kubeconfig.",
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
@click.option("--api-port", type=click.IntRange(0, 65535), default=0, help="Of the embedded API, on loopback; 0 for any.")
@click.option("--controllers/--no-controllers", default=None, help="Run our small controllers. Default: unless external.")
@click.option("--port", default=8321, show_default=True, help="Of the metrics and health pages, on loopback; 0 for any.")
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: text on a terminal, json elsewhere.")
def command(
    api: str | None,
    binaries: str | None,
    kubeconfig: str | None,
    context: str | None,
    data: str,
    api_port: int,
    controllers: bool | None,
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
    os.umask(0o077)  # everything it writes is its owner's alone
    folder = Path(binaries) if binaries else None
    options = Options(Path(data), api, folder, kubeconfig, context, port, api_port, controllers)
    asyncio.run(run(options, SystemClock()))


async def run(options: Options, clock: Clock) -> None:
    """Start everything, say so, and stop in the opposite order when asked to."""
    gc.set_threshold(50_000, 20, 100)  # Python's default collects every 700 objects and spends half of a large list on it
    stopping = stop_signal()
    chosen = chosen_api(options)
    metrics = Metrics()
    metrics.add_process(clock)
    ages = Ages(clock, metrics, waits=(POD_PENDING, MACHINE_NOT_READY))
    async with AsyncExitStack() as running:
        page = ObserveServer(metrics, port=options.port)
        page.ready = {"api": lambda: "it is being started"}
        await running.enter_async_context(page)
        click.echo(f"applecart {__version__}")
        click.echo(f"  pages        http://127.0.0.1:{page.port}/metrics, /healthz, /readyz")
        api = await running.enter_async_context(running_api(chosen, options, clock))
        click.echo(f"  api          {api.url} ({MEANS[chosen]})")
        click.echo(f"  controllers  {api.controllers}")
        fleet = FleetWatch(api.client, metrics, ages)
        page.ready = {"caches": fleet.why_behind}
        if chosen != EXTERNAL:
            click.echo(f"  kinds        {', '.join(await install_kinds(api.client))}")
        await running.enter_async_context(in_background(fleet.run, *api.work))
        await first_of(stopping.wait(), fleet.following())
        if stopping.is_set():
            return
        gc.collect()
        gc.freeze()  # what was listed stays; looking at it again in every collection would pause the loop
        click.echo("  follows      " + ", ".join(f"{count} {kind}" for kind, count in fleet.counts().items()))
        if chosen != EXTERNAL and api.kubeconfig:
            click.echo(f"try\n  export KUBECONFIG={shlex.quote(str(api.kubeconfig))}\n  {kubectl_command()} get crds")
        click.echo("Ctrl-C stops it")
        await stopping.wait()
