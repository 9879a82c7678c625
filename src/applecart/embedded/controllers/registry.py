"""The controllers that an API without kube-controller-manager and kube-scheduler needs, and whether the real ones are at work.

Ours are off where the real ones run: two that do the same work would undo each other's. One that fails is started again after
a while that grows, and the others never notice. Imported only where they run, because they are a third of what a start reads.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.auth.service_account_tokens import Bound, legacy_claims_for
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.disruption_budgets import run_disruption_budgets
from applecart.embedded.controllers.expiry import run_expiry
from applecart.embedded.controllers.garbage.collector import run_garbage_collector
from applecart.embedded.controllers.namespaces.run import run_namespaces
from applecart.embedded.controllers.node_lifecycle.monitor import run_node_lifecycle
from applecart.embedded.controllers.pod_garbage import run_pod_garbage
from applecart.embedded.controllers.scheduler.scheduler import run_scheduler
from applecart.embedded.controllers.service_accounts import Sign, run_tokens
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.informer import Tuning
from applecart.observe.logs import logger

SCHEDULER_LEASE = Key("kube-system", "kube-scheduler")
CONTROLLER_MANAGER_LEASE = Key("kube-system", "kube-controller-manager")
LEASE_S = 15  # what is held unless the Lease says otherwise
LOOK_EVERY_S = 2.0  # a holder renews about so often

PACE = Backoff(first_s=1.0, longest_s=60.0)  # a controller fails as a whole only by a bug of ours: it must not become load
WELL_AFTER_S = 300.0  # one that ran so long is taken for well again

TOKENS = "service-account tokens"


log = logger(__name__)


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


class Small(msgspec.Struct, frozen=True):
    """A controller: runs until it is cancelled."""

    name: str
    run: Callable[[], Awaitable[None]]


class SmallControllers:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        ca_pem: bytes,
        sign: Sign,
        *,
        more: Sequence[Small] = (),
        with_scheduler: bool = True,
        tuning: Tuning | None = None,
    ) -> None:
        self._clock = clock
        self.controllers: list[Small] = [
            Small("garbage collector", lambda: run_garbage_collector(client, clock, tuning=tuning)),
            Small("disruption budgets", lambda: run_disruption_budgets(client, clock, tuning=tuning)),
            Small("namespaces", lambda: run_namespaces(client, clock, ca_pem, tuning=tuning)),
            Small("service-account tokens", lambda: run_tokens(client, clock, ca_pem, sign, tuning=tuning)),
            *more,
        ]
        if with_scheduler:
            self.controllers.append(Small("scheduler", lambda: run_scheduler(client, clock, tuning=tuning)))

    async def run(self) -> None:
        """Run all of them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for controller in self.controllers:
                group.create_task(keep_running(controller, self._clock), name=controller.name)


async def keep_running(controller: Small, clock: Clock) -> None:
    """Run one, again whenever it fails or ends."""
    failures = 0
    while True:
        began_s = clock.monotonic()
        problem: Exception | None = None
        try:
            await controller.run()
        except Exception as error:
            problem = error
        failures = 1 if clock.monotonic() - began_s > WELL_AFTER_S else failures + 1
        wait_s = PACE.wait_s(failures, clock.random)
        about = log.bind(controller=controller.name, again_in_s=round(wait_s, 1))
        about.error("a controller ended, starting it again", exc_info=problem)
        await asyncio.sleep(wait_s)


def small_controllers(
    client: Client,
    clock: Clock,
    ca_pem: bytes,
    keys: TokenKeys | None,
    *,
    ends_events: bool = False,
    with_scheduler: bool = True,
) -> SmallControllers:
    """All of them, ready to run. Without keys no token can be signed, so that one is left out.

    `ends_events`: Events end by our hand; a real server has them ended by its database. `with_scheduler`: no other one is
    at work.
    """
    more = [
        Small("node lifecycle", lambda: run_node_lifecycle(client, clock)),
        Small("pod garbage", lambda: run_pod_garbage(client, clock)),
        Small("expiry", lambda: run_expiry(client, clock, with_events=ends_events)),
    ]
    small = SmallControllers(client, clock, ca_pem, signer(keys), more=more, with_scheduler=with_scheduler)
    if keys is None:
        small.controllers = [one for one in small.controllers if one.name != TOKENS]
    return small


def signer(keys: TokenKeys | None) -> Sign:
    """Tokens for the Secrets that ask for one; they are good as long as their Secret holds them."""

    def sign(namespace: str, account: str, account_uid: str, secret: str, secret_uid: str) -> str:
        assert keys is not None
        return keys.sign(legacy_claims_for(Bound(account, account_uid), namespace, secret))

    return sign
