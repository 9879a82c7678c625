"""Our small controllers, put together for an API that has none."""

import asyncio
from pathlib import Path

import pytest

from applecart.api.core import Namespace, ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.all_of_them import TOKENS, signer, small_controllers
from applecart.embedded.server.server import running_api
from applecart.embedded.store.log import MemoryLog
from applecart.embedded.trust.pki import load_or_create_token_keys
from applecart.kube.client import Client


@pytest.fixture
def keys(tmp_path: Path) -> TokenKeys:
    return TokenKeys.load(load_or_create_token_keys(tmp_path, "tokens"))


async def test_all_of_them_run_on_the_embedded_api(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        small = small_controllers(client, clock, b"authority", keys, ends_events=True)
        working = asyncio.create_task(small.run())
        await client.create(Namespace(metadata=ObjectMeta(name="ci")))
        await asyncio.sleep(60)
        assert not working.done()
        assert (await client.get(ServiceAccount, Key("ci", "default"))).name == "default"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_token_that_is_signed_for_a_secret_names_its_account(keys: TokenKeys) -> None:
    token = signer(keys)("ci", "builder", "u-1", "builder-token", "u-2")
    claims = keys.verified(token)
    for part in (b"system:serviceaccount:ci:builder", b"u-1", b"builder-token"):
        assert part in claims


async def test_without_keys_nobody_promises_tokens(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        with_keys = {one.name for one in small_controllers(client, clock, b"", keys).controllers}
        without = {one.name for one in small_controllers(client, clock, b"", None).controllers}
    assert with_keys - without == {TOKENS}
