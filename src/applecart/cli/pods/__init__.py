"""`applecart pods`: what a person does about Pods that nobody else takes care of. One file per command."""

import click

from applecart.cli.lazy_group import LazyGroup

COMMANDS = {
    "unstick": "free Pods that are being deleted and wait for an agent that will not come",
}


@click.group(cls=LazyGroup, package=__name__, meanings=COMMANDS)
def command() -> None:
    """Take care of Pods that nobody else takes care of.

    \b
    Example:
      applecart pods unstick --all-namespaces
    """
