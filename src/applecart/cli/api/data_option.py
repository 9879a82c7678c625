"""The option that every command of `applecart api` shares: which data folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

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
