"""The embedded API in memory, on virtual time, with a network that a test may break."""

from collections.abc import AsyncIterator

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.server.server import running_api
from tests.embedded.memory_log import MemoryLog
from tests.kube.faults import FaultyTransport

KEYS = TokenKeys(ec.generate_private_key(ec.SECP256R1()))


@pytest.fixture
async def network(clock: Clock) -> AsyncIterator[FaultyTransport]:
    async with running_api(MemoryLog(), clock, KEYS) as running:
        made = FaultyTransport(running.transport())
        yield made
        await made.aclose()
