"""The controllers that an API without kube-controller-manager and kube-scheduler needs, and whether the real ones are at work.

Ours are off where the real ones run: two that do the same work would undo each other's. Imported only where they run, because
they are a third of what a start reads.
"""

import asyncio

from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.embedded.auth.service_account_tokens import Bound, legacy_claims_for
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.disruption_budgets import DisruptionBudgets
from applecart.embedded.controllers.expiry import Expiry
from applecart.embedded.controllers.garbage.collector import Collector
from applecart.embedded.controllers.namespaces.belongings import Belongings
from applecart.embedded.controllers.namespaces.ending import Ending
from applecart.embedded.controllers.node_lifecycle.monitor import add_node_lifecycle
from applecart.embedded.controllers.pod_garbage import PodGarbage
from applecart.embedded.controllers.scheduler.scheduler import Scheduler
from applecart.embedded.controllers.service_accounts import Sign, Tokens
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.manager import Manager

SCHEDULER_LEASE = Key("kube-system", "kube-scheduler")
CONTROLLER_MANAGER_LEASE = Key("kube-system", "kube-controller-manager")
LEASE_S = 15  # what is held unless the Lease says otherwise
LOOK_EVERY_S = 2.0  # a holder renews about so often


async def real_controller_manager_runs(client: Client) -> bool:
    """Whether a kube-controller-manager holds its Lease and renews it."""
    return await is_held(client, CONTROLLER_MANAGER_LEASE)


async def real_scheduler_runs(client: Client) -> bool:
    """Whether a kube-scheduler holds its Lease and renews it."""
    return await is_held(client, SCHEDULER_LEASE)


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


def add_controllers(
    manager: Manager, ca_pem: bytes, keys: TokenKeys | None, *, ends_events: bool = False, with_scheduler: bool = True
) -> list[str]:
    """All of them, and what they are called. Without keys no token can be signed, so that one is left out.

    `ends_events`: Events end by our hand; a real server has them ended by its database. `with_scheduler`: no other one is
    at work.
    """
    Collector(manager)
    DisruptionBudgets(manager)
    Belongings(manager, ca_pem)
    Ending(manager)
    add_node_lifecycle(manager)
    PodGarbage(manager)
    Expiry(manager, with_events=ends_events)
    names = ["garbage collector", "disruption budgets", "namespaces", "node lifecycle", "pod garbage", "expiry"]
    if keys is not None:
        Tokens(manager, ca_pem, signer(keys))
        names.append("service-account tokens")
    if with_scheduler:
        Scheduler(manager)
        names.append("scheduler")
    return names


def signer(keys: TokenKeys) -> Sign:
    """Tokens for the Secrets that ask for one; they are good as long as their Secret holds them."""

    def sign(namespace: str, account: str, account_uid: str, secret: str) -> str:
        return keys.sign(legacy_claims_for(Bound(account, account_uid), namespace, secret))

    return sign
