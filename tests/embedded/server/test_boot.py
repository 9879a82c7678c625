"""What every cluster has from its first moment."""

from cryptography.hazmat.primitives.asymmetric import ec

from applecart.api.core import Service
from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.server.server import running_api
from applecart.embedded.store.log import MemoryLog
from applecart.kube.client import Client

KEYS = TokenKeys(ec.generate_private_key(ec.SECP256R1()))


async def test_the_api_has_the_service_that_clients_know_it_by(clock: Clock) -> None:
    """It was missing, and whoever asked for it took the cluster for a broken one."""
    async with running_api(MemoryLog(), clock, KEYS) as running:
        service = await Client(running.transport(), clock).get(Service, Key("default", "kubernetes"))
    assert service.labels == {"component": "apiserver", "provider": "kubernetes"}
