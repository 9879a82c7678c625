"""`applecart api import`: create exported objects in a cluster, with their owners and the status of custom kinds.

What kubectl cannot do with an export: it waits until new kinds are served, creates owners first and turns the noted owners into
references with the uids that they have here, and writes the status of custom kinds. What had ended would run again and stays
out. An object that is there already is left as it is. Stop the controllers of the exported cluster first, and start those of
the new one after.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from applecart.api.meta import Key, Resource
from applecart.cli.api.portable import ENDED, OWNERS, Document, has_ended, is_built_in, owners_first, rank
from applecart.cli.api.reach import reached
from applecart.cli.api.yaml_stream import documents
from applecart.clock import Clock, SystemClock
from applecart.errors import BadInput, Permanent
from applecart.kube.client import Client
from applecart.kube.discovery import Discovery, discover
from applecart.kube.errors import AlreadyExists, MethodNotAllowed, NotFound
from applecart.kube.patch import Merge
from applecart.kube.paths import collection_path, object_path
from applecart.kube.transport import Request

SERVED_WITHIN_S = 30.0  # a new kind is served within a second; a busy server may take longer
POLL_S = 0.1
_encode = msgspec.json.Encoder().encode


class Imported(msgspec.Struct, frozen=True):
    """An object to create, and who owns it by name."""

    api_version: str
    kind: str
    key: Key
    document: Document
    owners: tuple[Document, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@click.command("import")
@click.option("--kubeconfig", metavar="FILE", required=True, help="The cluster to create them in.")
@click.option("--context", metavar="NAME", help="Instead of the current context.")
@click.option("--from", "source", metavar="FILE", type=click.File(encoding="utf-8"), default="-", help="Default: stdin.")
def command(kubeconfig: str, context: str | None, source: Any) -> None:
    """Create exported objects in a cluster, with their owners and the status of custom kinds.

    Pods and Jobs that had ended stay out, because they would run again. Pods that ran begin anew.

    \b
    Example:
      applecart api export --data build/api | applecart api import --kubeconfig ~/.kube/other
    """
    try:
        text = source.read()
    except UnicodeDecodeError:
        raise BadInput(f"{source.name} is no text in UTF-8") from None
    objects = [read(document, source.name) for document in documents(text, source.name)]
    if not objects:
        raise Permanent(f"{source.name} holds no object; look whether the export that made it went well")
    done = asyncio.run(bring_in(objects, kubeconfig, context, SystemClock()))
    for what, count in sorted(done.items()):
        click.echo(f"{count} {what}")


async def bring_in(objects: Sequence[Imported], kubeconfig: str, context: str | None, clock: Clock) -> Counter[str]:
    """Create all, and count what became of them."""
    done: Counter[str] = Counter()
    async with reached(None, kubeconfig, context, clock) as client:
        definitions = [one for one in objects if one.kind == "CustomResourceDefinition"]
        others = [one for one in objects if one.kind != "CustomResourceDefinition"]
        discovery = await discover(client)
        for one in definitions:
            done[await _create(client, _place(discovery, one), one)] += 1
        discovery = await _served(client, others)
        others.sort(key=lambda one: rank(_place(discovery, one)))
        for one in owners_first(others, owner_positions(others)):
            if has_ended(_place(discovery, one), one.document):
                click.echo(f"{one} {ENDED.removeprefix('it ')}: left out", err=True)
                done["had ended and stay out"] += 1
                continue
            done[await _create(client, _place(discovery, one), await _with_owners(client, discovery, one))] += 1
    return done


def read(document: Document, source: str) -> Imported:
    """An object of the stream; raises BadInput when it is none."""
    api_version, kind, metadata = document.get("apiVersion"), document.get("kind"), document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    texts = (api_version, kind, name)
    if not isinstance(metadata, dict) or not all(isinstance(text, str) and text for text in texts):
        raise BadInput(f"{source} holds a document without apiVersion, kind or metadata.name; take it out")
    namespace = metadata.get("namespace") or ""
    annotations = metadata.get("annotations")
    noted = annotations.get(OWNERS) if isinstance(annotations, dict) else None
    document = {**document, "metadata": {**metadata}}
    owners: tuple[Document, ...] = ()
    if noted is not None:
        left = {key: value for key, value in (annotations or {}).items() if key != OWNERS}
        document["metadata"]["annotations"] = left
        try:
            owners = msgspec.json.decode(noted, type=tuple[dict[str, Any], ...])
        except (msgspec.MsgspecError, TypeError, AttributeError):
            raise BadInput(f"{source}: {kind} {name} has an annotation {OWNERS} that cannot be read; take it out") from None
    return Imported(str(api_version), str(kind), Key(str(namespace), str(name)), document, owners)


def owner_positions(objects: Sequence[Imported]) -> dict[int, list[int]]:
    """For each object the positions of its owners. Owners are in the same namespace, or in none."""
    places = {(one.api_version, one.kind, one.key): position for position, one in enumerate(objects)}
    found: dict[int, list[int]] = {}
    for position, one in enumerate(objects):
        for owner in one.owners:
            for key in _possible_keys(one, owner):
                owner_at = places.get((str(owner.get("apiVersion")), str(owner.get("kind")), key))
                if owner_at is not None:
                    found.setdefault(position, []).append(owner_at)
    return found


def _possible_keys(one: Imported, owner: Document) -> Iterable[Key]:
    name = str(owner.get("name"))
    return dict.fromkeys((Key(one.key.namespace, name), Key("", name)))


async def _served(client: Client, objects: Sequence[Imported]) -> Discovery:
    """Wait until every kind is served; raises BadInput for those that never are."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + SERVED_WITHIN_S
    while True:
        discovery = await discover(client)
        missing = {(one.api_version, one.kind) for one in objects if discovery.find(one.api_version, one.kind) is None}
        if not missing:
            return discovery
        if loop.time() > give_up_at:
            kinds = ", ".join(sorted(f"{kind} of {api_version}" for api_version, kind in missing))
            raise BadInput(f"the cluster does not serve {kinds}; install what defines it, or take it out of the stream")
        await asyncio.sleep(POLL_S)


def _place(discovery: Discovery, one: Imported) -> Resource:
    resource = discovery.find(one.api_version, one.kind)
    if resource is None:
        raise BadInput(f"the cluster does not serve {one.kind} of {one.api_version}")
    if resource.namespaced and not one.key.namespace:
        raise BadInput(f"{one} is in no namespace; write one into its metadata")
    return resource


async def _with_owners(client: Client, discovery: Discovery, one: Imported) -> Imported:
    """The same with references to its owners in this cluster. One that is not here is told and left out."""
    references = []
    for owner in one.owners:
        uid = await _uid_of(client, discovery, one, owner)
        if uid is None:
            click.echo(f"{one}: its owner {owner.get('kind')} {owner.get('name')} is not in this cluster", err=True)
        else:
            references.append({**owner, "uid": uid})
    if references:
        one.document["metadata"]["ownerReferences"] = references
    return one


async def _uid_of(client: Client, discovery: Discovery, one: Imported, owner: Document) -> str | None:
    resource = discovery.find(str(owner.get("apiVersion")), str(owner.get("kind")))
    if resource is None:
        return None
    key = Key(one.key.namespace if resource.namespaced else "", str(owner.get("name")))
    try:
        answer = await client.call(Request("GET", object_path(resource, key)))
    except NotFound:
        return None
    uid: str = msgspec.json.decode(answer.body)["metadata"]["uid"]
    return uid


async def _create(client: Client, resource: Resource, one: Imported) -> str:
    try:
        request = Request("POST", collection_path(resource, one.key.namespace), body=_encode(one.document))
        await client.call(request, repeatable=False)
    except AlreadyExists:
        click.echo(f"{one} is there already and stays as it is", err=True)
        return "were there already"
    status = one.document.get("status")
    if status and not is_built_in(resource):
        patch = Merge({"status": status})
        path = object_path(resource, one.key, "status")
        # A kind without that subresource got its status with the object.
        with suppress(NotFound, MethodNotAllowed):
            await client.call(Request("PATCH", path, body=patch.encoded(), content_type=patch.content_type))
    return "created"
