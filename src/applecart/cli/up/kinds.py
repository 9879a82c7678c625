"""Our kinds in an API that we started. Never in one that somebody else runs: there they are the operator's to install."""

import asyncio

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.crd import DEFINITIONS, as_document
from applecart.api.meta import Key
from applecart.kube.client import Client
from applecart.kube.patch import Apply

ESTABLISHED_POLL_S = 0.1  # a new kind is served within a second


async def install_kinds(client: Client) -> list[str]:
    """Server-side apply, so that a newer applecart updates what an older one installed; done when the API serves them."""
    keys = [Key("", definition.kind.resource.label) for definition in DEFINITIONS]
    for key, definition in zip(keys, DEFINITIONS, strict=True):
        await client.patch(CustomResourceDefinition, key, Apply(as_document(definition), force=True))
    for key in keys:
        while not (await client.get(CustomResourceDefinition, key)).is_established:  # noqa: ASYNC110 - the API has no event
            await asyncio.sleep(ESTABLISHED_POLL_S)
    return [definition.kind.__name__ for definition in DEFINITIONS]
