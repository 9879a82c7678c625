"""`applecart api export`: print the objects of a cluster as YAML for another one.

The stream is in the order in which it can be created. It holds Secrets in clear. What is left out, and why, is told on stderr.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from applecart.api.core import Namespace
from applecart.api.meta import Key, Resource
from applecart.cli.api.database import read_facts
from applecart.cli.api.portable import Document, Left, is_left_kind, portable, rank
from applecart.cli.api.reach import data_option, reached
from applecart.cli.api.yaml_stream import as_yaml
from applecart.clock import SystemClock
from applecart.embedded.server.data_folder import existing_data_folder
from applecart.errors import BadInput, Permanent
from applecart.kube.client import PAGE_SIZE, Client
from applecart.kube.discovery import Discovery, discover
from applecart.kube.errors import NotFound
from applecart.kube.paths import collection_path
from applecart.kube.transport import Request

LEFT_KIND = "of a kind that agents, controllers or the server keep themselves"


@click.command("export")
@data_option(required=False)
@click.option("--kubeconfig", metavar="FILE", help="Export the cluster of this kubeconfig instead.")
@click.option("--context", metavar="NAME", help="With --kubeconfig: instead of the current context.")
@click.option("--namespace", "namespaces", metavar="NAME", multiple=True, help="Only what is in this namespace. Repeatable.")
@click.option("--kind", "kinds", metavar="KIND", multiple=True, help="Only this kind, such as pods or RunnerPool. Repeatable.")
def command(
    data: Path | None, kubeconfig: str | None, context: str | None, namespaces: tuple[str, ...], kinds: tuple[str, ...]
) -> None:
    """Print the objects as YAML for another cluster, Secrets in clear.

    Pods and Jobs that had ended are left out, because they would run again. What is left out is told on stderr.

    \b
    Example:
      umask 077
      applecart api export --data build/api > build/fleet.yaml
      applecart api import --kubeconfig ~/.kube/other < build/fleet.yaml
    """
    if context and not kubeconfig:
        raise BadInput("--context names a context of a kubeconfig; give --kubeconfig FILE with it")
    if kubeconfig and data and click.get_current_context().get_parameter_source("data") is ParameterSource.ENVIRONMENT:
        data = None  # what lies in the environment does not contradict what somebody typed
    if kubeconfig and data:
        raise BadInput(
            "--data and --kubeconfig name two clusters; give --data for the API of a folder, or --kubeconfig for any other"
        )
    exported, left = asyncio.run(export(data, kubeconfig, context, namespaces, kinds))
    for because, count in sorted(left.items()):
        click.echo(f"left out: {count} {because}", err=True)
    if not exported and not left:
        click.echo("nothing to export", err=True)


async def export(
    data: Path | None, kubeconfig: str | None, context: str | None, namespaces: Sequence[str], kinds: Sequence[str]
) -> tuple[int, Counter[str]]:
    """Print; how many, and how many were left out by their reason."""
    exported = 0
    left: Counter[str] = Counter()
    async with reached(data, kubeconfig, context, SystemClock()) as client:
        await refuse_missing(client, namespaces)
        discovery = await discover(client)
        if data is not None and not kinds and not namespaces:
            stored = read_facts(existing_data_folder(data).database).objects
            left.update(unserved(stored, {one.resource.label for one in discovery.preferred()}))
        for resource in chosen_kinds(discovery, kinds):
            async for document in listed(client, resource):
                if not is_chosen(resource, document, namespaces):
                    continue
                moved = Left(LEFT_KIND) if not kinds and is_left_kind(resource) else portable(resource, document)
                if isinstance(moved, Left):
                    left[moved.because] += 1
                else:
                    click.echo(as_yaml(moved), nl=False)
                    exported += 1
    return exported, left


def unserved(stored: Mapping[str, int], served: Set[str]) -> dict[str, int]:
    """How many objects a folder holds that no list shows, because a version before served their kind."""
    return {f"of {label}, which this version does not serve": stored[label] for label in stored.keys() - served}


async def refuse_missing(client: Client, namespaces: Sequence[str]) -> None:
    """Raises Permanent for a namespace that was named and is not there: an empty file would pass for an export."""
    for name in namespaces:
        try:
            await client.get(Namespace, Key("", name))
        except NotFound:
            raise Permanent(f"the cluster has no namespace {name}; look with: kubectl get namespaces") from None


def chosen_kinds(discovery: Discovery, kinds: Sequence[str]) -> list[Resource]:
    """The kinds to list, in the order of creation. A name that fits no kind is refused."""
    served = [one.resource for one in discovery.preferred() if one.allows("list", "create")]
    served = [resource for resource in served if resource.label != "events.events.k8s.io"]  # the same objects as `events`
    wanted = {kind.lower() for kind in kinds}
    chosen = [resource for resource in served if not wanted or wanted & names_of(resource)]
    known = {name for resource in chosen for name in names_of(resource)}
    if unknown := wanted - known:
        raise BadInput(f"--kind {', '.join(sorted(unknown))}: the API serves no such kind that can be created")
    return sorted(chosen, key=rank)


def names_of(resource: Resource) -> set[str]:
    return {resource.plural.lower(), resource.kind.lower(), resource.label.lower()}


def is_chosen(resource: Resource, document: Document, namespaces: Sequence[str]) -> bool:
    """With namespaces named: they themselves and what is in them."""
    if not namespaces:
        return True
    metadata = document.get("metadata") or {}
    return metadata.get("name" if resource.label == "namespaces" else "namespace") in namespaces


async def listed(client: Client, resource: Resource) -> AsyncIterator[Document]:
    """Every object of a kind, whole."""
    token = ""
    while True:
        query = (("limit", str(PAGE_SIZE)), *((("continue", token),) if token else ()))
        answer = await client.call(Request("GET", collection_path(resource), query))
        page: Any = msgspec.json.decode(answer.body)
        for item in page.get("items") or ():
            yield item
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return
