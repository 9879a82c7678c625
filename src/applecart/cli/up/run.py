"""The command itself: start an API, follow the fleet in it, serve metrics and health, and say what runs.

It never touches a cluster that was not named: a kubeconfig lying around is not an invitation.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import click

from applecart import __version__
from applecart.cli.background import in_background
from applecart.cli.binaries import FOLDERS, binaries_folder, kubectl_command
from applecart.cli.fleet_watch import MACHINE_NOT_READY, POD_PENDING, FleetWatch
from applecart.cli.garbage_collection import collect_rarely, pass_over_what_is_there
from applecart.cli.stop_signal import first_of, stop_signal
from applecart.cli.up.apis import started_api
from applecart.cli.up.hello import MANIFEST, export, first_lines, job_manifest
from applecart.cli.up.kinds import install_kinds
from applecart.cli.up.macs import running_macs, until_ready
from applecart.cli.up.options import (
    BINARIES,
    EMBEDDED,
    EXTERNAL,
    MACS,
    MOST_MACS,
    Options,
    chosen_api,
    frees_stuck_pods,
    mac_count,
    refuse_running,
)
from applecart.clock import Clock, SystemClock
from applecart.kube.client import Client
from applecart.kube.election import unique_identity
from applecart.kube.manager import Manager
from applecart.kube.stuck_pods import STUCK, Sweep
from applecart.observe.ages import Ages
from applecart.observe.logs import LogFormat, setup_logging
from applecart.observe.metrics import Metrics
from applecart.observe.serve import ObserveServer
from applecart.sim.fleet import FleetMac

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
    help=f"Folder with etcd, kube-apiserver and kubectl. Default: what make kube-binaries built.  [env: {', '.join(FOLDERS)}]",
)
@click.option("--kubeconfig", metavar="FILE", help="With --api external: instead of KUBECONFIG, the Pod or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="With --api external: instead of the current context.")
@click.option("--data", metavar="DIR", default="build/up", show_default=True, help="Where what is started keeps its data.")
@click.option(
    "--api-port",
    type=click.IntRange(0, 65535),
    help="Of the embedded API, on loopback; 0 for any. Default: that of the last start, if it is free.",
)
@click.option("--controllers/--no-controllers", default=None, help="Run our controllers. Default: unless external.")
@click.option(
    "--macs",
    type=click.IntRange(0, MOST_MACS),
    help=f"Simulated Macs, each with a tart-kubelet. Default: {MACS}; none without controllers or with external.",
)
@click.option("--port", default=8321, show_default=True, help="Of the metrics and health pages, on loopback; 0 for any.")
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: text where people read, json elsewhere.")
def command(
    api: str | None,
    binaries: str | None,
    kubeconfig: str | None,
    context: str | None,
    data: str,
    api_port: int | None,
    controllers: bool | None,
    macs: int | None,
    port: int,
    log_level: str,
    log_format: LogFormat | None,
) -> None:
    """Run applecart on this machine until Ctrl-C.

    \b
    Examples:
      applecart up
      applecart up --macs 10 --data /tmp/ten-macs
      applecart up --api external --kubeconfig ~/.kube/staging --context ci
    """
    setup_logging(log_level, log_format, beside=sys.stdout)
    os.umask(0o077)  # everything it writes is its owner's alone
    folder = Path(binaries) if binaries else binaries_folder()
    options = Options(Path(data), api, folder, kubeconfig, context, port, api_port, controllers, macs)
    asyncio.run(run(options, SystemClock()))


async def run(options: Options, clock: Clock) -> None:
    """Start everything, say so, and stop in the opposite order when asked to."""
    collect_rarely()
    stopping = stop_signal()
    chosen = chosen_api(options)
    count = mac_count(chosen, options)
    if chosen == EMBEDDED:
        refuse_running(options.data)
    metrics = Metrics()
    metrics.add_process(clock)
    ages = Ages(clock, metrics, waits=(POD_PENDING, MACHINE_NOT_READY, STUCK))
    async with AsyncExitStack() as running:
        page = ObserveServer(metrics, port=options.port, flag="--port")
        page.ready = {"api": lambda: "it is being started"}
        await running.enter_async_context(page)
        click.echo(f"applecart {__version__}")
        click.echo(f"  pages        http://127.0.0.1:{page.port}/metrics, /healthz, /readyz")
        api = await running.enter_async_context(started_api(chosen, options, clock, metrics))
        click.echo(f"  api          {api.url} ({MEANS[chosen]})")
        identity = unique_identity(socket.gethostname(), clock.random)
        manager = Manager(api.client, metrics=metrics, ages=ages, lease=api.controllers_lease, identity=identity)
        fleet = FleetWatch(manager)
        names = api.add_controllers(manager) if api.add_controllers else [f"none ({api.why_no_controllers})"]
        click.echo(f"  controllers  {', '.join(names)}")
        if frees_stuck_pods(chosen, options):
            sweep = Sweep(manager.client, clock, metrics=metrics, ages=ages)
            manager.background("stuck Pods", sweep.run)
        page.ready = {**api.ready, "manager": manager.not_ready}
        if chosen != EXTERNAL:
            click.echo(f"  kinds        {', '.join(await install_kinds(api.client))}")
        await running.enter_async_context(in_background(manager.run, *api.work))
        macs: list[FleetMac] = []
        if api.agents:
            macs = await running.enter_async_context(running_macs(count, options.data, api.client, api.agents, clock))
        await first_of(stopping.wait(), _started(fleet, api.client, macs))
        if stopping.is_set():
            return
        pass_over_what_is_there()
        click.echo("  follows      " + ", ".join(f"{counted} {kind}" for kind, counted in fleet.counts().items()))
        if chosen != EXTERNAL and api.kubeconfig:
            _say_what_to_try(api.kubeconfig, options.data, can_run_pods=bool(macs) and options.controllers is not False)
        click.echo("Ctrl-C stops it")
        await stopping.wait()


async def _started(fleet: FleetWatch, client: Client, macs: Sequence[FleetMac]) -> None:
    """Returns when all is there, and says of the Macs what they are."""
    await fleet.following()
    if not macs:
        return
    late = await until_ready(client, macs)
    click.echo(f"  macs         {', '.join(mac.name for mac in macs)} (simulated; each Pod becomes a simulated VM)")
    click.echo("  their pages  " + ", ".join(f"http://127.0.0.1:{mac.page.port}/metrics" for mac in macs))
    if late:
        click.echo(f"  not ready    {', '.join(late)}; kubectl describe node {late[0]} says why")


def _say_what_to_try(kubeconfig: Path, data: Path, *, can_run_pods: bool) -> None:
    kubectl = kubectl_command()
    lines = first_lines(kubectl, kubeconfig) if can_run_pods else [export(kubeconfig), f"{kubectl} get crds"]
    if can_run_pods:
        manifest = data / MANIFEST
        if not manifest.exists():  # a person may have edited it
            manifest.write_text(job_manifest())
        click.echo(f"  example      {manifest} (a job that ends by itself, for kubectl apply -f)")
    click.echo("\n".join(["try", *(f"  {line}" for line in lines)]))
