"""A group of commands of which only the one that is used gets imported, so that `--help` and a start are fast."""

import importlib
import keyword
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """The commands of a package: each lies in the module of its name, as `command`."""

    def __init__(self, *given: Any, package: str, meanings: Mapping[str, str], **more: Any) -> None:
        super().__init__(*given, **more)
        self._package = package
        self._meanings = meanings

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._meanings)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._meanings:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"{self._package}.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._meanings.items()))
