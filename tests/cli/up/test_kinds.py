"""Our kinds are installed in an API that may have them already, from an older applecart or a newer one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.meta import Key
from applecart.api.runners import RunnerPool
from applecart.cli.up.kinds import install_kinds
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.patch import Json
from tests.kube.embedded_api import serving

POOLS = Key("", RunnerPool.resource.label)


@pytest.fixture
async def client(clock: Clock) -> AsyncIterator[Client]:
    async with serving(clock) as running:
        yield Client(running.transport(), clock)


async def pools(client: Client) -> CustomResourceDefinition:
    return await client.get(CustomResourceDefinition, POOLS)


async def change(client: Client, *operations: dict[str, Any]) -> CustomResourceDefinition:
    return await client.patch(CustomResourceDefinition, POOLS, Json(operations))


async def test_a_second_start_changes_nothing_and_says_nothing(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    await install_kinds(client)
    before = await pools(client)
    assert "RunnerPool" in await install_kinds(client)
    assert await pools(client) == before
    assert caplog.text == ""


async def test_what_another_applecart_defined_is_replaced_and_that_is_said(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await install_kinds(client)
    await change(client, {"op": "add", "path": "/spec/names/shortNames", "value": ["mine"]})
    await install_kinds(client)
    assert (await pools(client)).spec.names.short_names != ("mine",)
    assert "a definition was another one" in caplog.text


async def test_a_definition_with_versions_that_we_do_not_know_is_left_alone(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Objects in such a version would have been lost; where they were stored in it, nothing started any more."""
    await install_kinds(client)
    newer = await change(
        client,
        {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
        {"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/-"},
        {"op": "replace", "path": "/spec/versions/1/name", "value": "v9"},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
    )
    await install_kinds(client)
    assert await pools(client) == newer
    assert "newer applecart" in caplog.text
