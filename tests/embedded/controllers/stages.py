"""The APIs that scenarios of the small controllers play on, with our controllers at work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cryptography.hazmat.primitives.asymmetric import ec

from applecart.clock import Clock
from applecart.embedded.auth.service_account_tokens import Bound, legacy_claims_for
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.registry import SmallControllers
from applecart.embedded.controllers.service_accounts import Sign
from applecart.embedded.server.server import running_api
from applecart.embedded.store.log import MemoryLog
from applecart.kube.client import Client

CA_PEM = b"-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n"


def new_keys() -> TokenKeys:
    return TokenKeys(ec.generate_private_key(ec.SECP256R1()))


def signer(keys: TokenKeys) -> Sign:
    def sign(namespace: str, name: str, uid: str, secret_name: str, secret_uid: str) -> str:
        return keys.sign(legacy_claims_for(Bound(name, uid), namespace, secret_name))

    return sign


@asynccontextmanager
async def our_controllers(client: Client, clock: Clock, ca_pem: bytes, sign: Sign) -> AsyncIterator[None]:
    """All but the scheduler, which has scenarios of its own."""
    task = asyncio.create_task(SmallControllers(client, clock, ca_pem, sign, with_scheduler=False).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def api_in_memory(clock: Clock) -> AsyncIterator[tuple[Client, Sign]]:
    """The embedded API on virtual time, and who signs for it."""
    keys = new_keys()
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        try:
            yield client, signer(keys)
        finally:
            await client.aclose()
