"""Our kinds in an API that we started. Never in one that somebody else runs: there they are the operator's to install."""

import asyncio
from typing import Any

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.crd import DEFINITIONS, as_document
from applecart.api.meta import Key
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.patch import Apply
from applecart.observe.logs import logger

log = logger(__name__)
ESTABLISHED_POLL_S = 0.1  # a new kind is served within a second


async def install_kinds(client: Client) -> list[str]:
    """Server-side apply, so that a newer applecart updates what an older one installed; done when the API serves them."""
    keys = [Key("", definition.kind.resource.label) for definition in DEFINITIONS]
    for key, definition in zip(keys, DEFINITIONS, strict=True):
        await _install(client, key, as_document(definition))
    for key in keys:
        while not (await client.get(CustomResourceDefinition, key)).is_established:  # noqa: ASYNC110 - the API has no event
            await asyncio.sleep(ESTABLISHED_POLL_S)
    return [definition.kind.__name__ for definition in DEFINITIONS]


async def _install(client: Client, key: Key, ours: dict[str, Any]) -> None:
    """One with versions that we do not know is of a newer applecart: objects in them would be lost with it."""
    try:
        known = await client.get(CustomResourceDefinition, key)
    except NotFound:
        await client.patch(CustomResourceDefinition, key, Apply(ours, force=True))
        return
    newer = {version.name for version in known.spec.versions} - {version["name"] for version in ours["spec"]["versions"]}
    if newer:
        log.warning("a definition of a newer applecart stays as it is", object=known, unknown_versions=sorted(newer))
        return
    after = await client.patch(CustomResourceDefinition, key, Apply(ours, force=True))
    if after.metadata.generation != known.metadata.generation:
        log.warning("a definition was another one, and is that of this applecart now", object=known)
