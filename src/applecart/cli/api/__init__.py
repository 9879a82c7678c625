"""`applecart api`: the embedded Kubernetes API and its data folder. One file per command."""

import click

from applecart.cli.lazy_group import LazyGroup

COMMANDS = {
    "start": "run the API until Ctrl-C",
    "kubeconfig": "issue a client certificate and print a kubeconfig for it",
    "status": "say whether it runs, and what its data folder holds",
    "backup": "copy everything into one file, also while it runs",
    "restore": "put a backup in place",
    "export": "print the objects as YAML for another cluster",
    "import": "create exported objects in a cluster, with their owners",
}


@click.group(cls=LazyGroup, package=__name__, meanings=COMMANDS)
def command() -> None:
    """Run the embedded Kubernetes API, hand out access to it, save it and move it.

    \b
    Example:
      applecart api start --data build/api --port 6443
    """
