"""Which API a command is about: that of a data folder, or of a kubeconfig."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from applecart.clock import Clock
from applecart.embedded.server.data_folder import existing_data_folder
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.observe.logs import setup_logging

C = TypeVar("C", bound=Callable[..., Any])


def data_option(required: bool = True) -> Callable[[C], C]:
    return click.option(
        "--data",
        metavar="DIR",
        type=click.Path(path_type=Path),
        required=required,
        envvar="APPLECART_DATA",
        show_envvar=True,
        help="The data folder of the API.",
    )


@asynccontextmanager
async def reached(data: Path | None, kubeconfig: str | None, context: str | None, clock: Clock) -> AsyncIterator[Client]:
    """A folder whose server is stopped is served for this process alone."""
    if (data is None) == (kubeconfig is None):
        raise BadInput("give either --data DIR or --kubeconfig FILE")
    if data is not None:
        folder = existing_data_folder(data)
        if folder.holder() is None:
            from applecart.embedded.server.server import offline_api

            setup_logging("warning", "text")  # what a server would log at its start, with what it is about
            async with offline_api(folder, clock) as running:
                yield Client(running.transport(), clock)
            return
        kubeconfig = str(folder.admin_kubeconfig)
    client = Client(connect(kubeconfig, context, clock), clock)
    try:
        yield client
    finally:
        await client.aclose()
