"""`applecart api start`: run the embedded Kubernetes API until Ctrl-C.

It says that it serves only when it does: the kubeconfig is written, the port answers. A disk that fails ends it with a sentence
and exit code 1 after an orderly stop; nothing that was acknowledged is lost.
"""

import asyncio
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from applecart import __version__
from applecart.cli.api.notices import notice_of_exposure, watch_size
from applecart.cli.api.port import port_again
from applecart.cli.api.reach import data_option
from applecart.cli.background import Work, in_background
from applecart.cli.binaries import kubectl_command
from applecart.cli.garbage_collection import collect_rarely, pass_over_what_is_there
from applecart.cli.stop_signal import stop_signal
from applecart.clock import Clock, SystemClock
from applecart.embedded.server.core import Settings
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.surface.served import GIT_VERSION
from applecart.embedded.trust.control_plane_files import LOOPBACK
from applecart.kube.client import Client
from applecart.observe.logs import LogFormat, setup_logging
from applecart.observe.metrics import Metrics

PORT = 6443  # where kubeadm and most others put an API server


class Options(msgspec.Struct, frozen=True):
    data: Path
    port: int | None  # None: that of the last start
    host: str
    names: tuple[str, ...]
    with_controllers: bool


@click.command("start")
@data_option()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"0 for any that is free. Default: that of the last start, if it is free; {PORT} at the first.",
)
@click.option("--host", metavar="ADDRESS", default=LOOPBACK, show_default=True, help="The address to listen on.")
@click.option("--name", "names", metavar="NAME", multiple=True, help="Another name or address that clients use. Repeatable.")
@click.option(
    "--controllers/--no-controllers",
    "with_controllers",
    default=True,
    show_default=True,
    help="Run a scheduler, garbage collector and the like beside it.",
)
@click.option("--log-level", default="info", show_default=True, help="debug, info, warning or error.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: text where people read, json elsewhere.")
def command(
    data: Path,
    port: int | None,
    host: str,
    names: tuple[str, ...],
    with_controllers: bool,
    log_level: str,
    log_format: LogFormat | None,
) -> None:
    """Run the embedded Kubernetes API until Ctrl-C.

    \b
    Example:
      applecart api start --data build/api --port 6443
    """
    setup_logging(log_level, log_format, beside=sys.stdout)
    os.umask(0o077)  # everything it writes is its owner's alone
    asyncio.run(run(Options(data, port, host, names, with_controllers), SystemClock()))


async def run(options: Options, clock: Clock) -> None:
    collect_rarely()
    stopping = stop_signal()
    metrics = Metrics()
    metrics.add_process(clock)
    # Where a controller gives every namespace its account, Pods get it as they do in any cluster.
    settings = Settings(needs_service_accounts=options.with_controllers)
    port = port_again(options.data, PORT, options.host) if options.port is None else options.port
    server = EmbeddedServer(
        options.data, clock, port=port, host=options.host, names=options.names, settings=settings, metrics=metrics
    )
    async with server:
        pass_over_what_is_there()
        click.echo(told(server))
        if notice := notice_of_exposure(options.host, server.port):
            click.echo(notice, err=True)
        nodes = server.running.store.table("nodes")
        work: list[Work] = [partial(ends_with_its_disk, server), partial(watch_size, nodes.__len__)]
        if options.with_controllers:
            # After it serves: nobody waits for their import.
            from applecart.embedded.controllers.controller_manager import add_controllers
            from applecart.kube.manager import Manager

            manager = Manager(Client(server.running.transport(), clock), metrics=metrics)
            names = add_controllers(manager, server.authority.certificate_pem, server.keys, ends_events=True)
            server.running.api.also_ready("controllers", manager.not_ready)
            click.echo(f"controllers beside it: {', '.join(names)}")
            work.append(manager.run)
        click.echo("Ctrl-C stops it")
        async with in_background(*work):
            await stopping.wait()


async def ends_with_its_disk(server: EmbeddedServer) -> NoReturn:
    """Raises what ended the store."""
    raise await server.until_failed()


def told(server: EmbeddedServer) -> str:
    """What runs, where its files are and what to type."""
    folder = server.folder
    return "\n".join(
        (
            f"applecart {__version__}, Kubernetes API {GIT_VERSION}",
            f"  api      {server.url}",
            f"  data     {folder.folder}",
            f"  requests {folder.requests}",
            "try",
            f"  export KUBECONFIG={shlex.quote(str(folder.admin_kubeconfig))}",
            f"  {kubectl_command()} get namespaces",
        )
    )
