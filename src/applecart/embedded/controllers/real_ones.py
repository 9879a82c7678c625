"""Whether Kubernetes' own controllers are at work, told by the Leases that they hold.

Ours are off where the real ones run: two that do the same work would undo each other's.
"""

import asyncio

from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.kube.client import Client
from applecart.kube.errors import NotFound

CONTROLLER_MANAGER_LEASE = Key("kube-system", "kube-controller-manager")
LEASE_S = 15  # what is held unless the Lease says otherwise
LOOK_EVERY_S = 2.0  # a holder renews about so often


async def real_controller_manager_runs(client: Client) -> bool:
    """Whether a kube-controller-manager holds its Lease and renews it."""
    return await is_held(client, CONTROLLER_MANAGER_LEASE)


async def is_held(client: Client, key: Key) -> bool:
    """Whether somebody holds a Lease and renews it.

    A renewal that our clock calls recent counts at once. Clocks differ, so an old one is watched for a whole term: only a
    holder that does not renew in that time is gone.
    """
    first = await _lease(client, key)
    if first is None or not first.holder or first.renewed_at is None:
        return False
    term_s = first.spec.lease_duration_seconds or LEASE_S
    if 0 <= (client.clock.now() - first.renewed_at).total_seconds() < term_s:
        return True
    waited_s = 0.0
    while waited_s < term_s:
        await asyncio.sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
        now = await _lease(client, key)
        if now is None or not now.holder:
            return False
        if now.revision != first.revision:
            return True
    return False


async def _lease(client: Client, key: Key) -> Lease | None:
    try:
        return await client.get(Lease, key)
    except NotFound:
        return None
