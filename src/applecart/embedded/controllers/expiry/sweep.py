"""Removes what `plan.py` says, every few minutes.

Reads by lists, not by informers: Events are many, and nobody needs them in memory between two sweeps. Every deletion names the
revision that was judged, so an Event that is written again and a Lease that is renewed meanwhile stay. On a cluster with etcd
Events expire there, and only Leases are swept here.
"""

import asyncio
from collections.abc import Callable, Iterable

from applecart.api.coordination import Lease
from applecart.api.events import Event
from applecart.api.nodes import Node
from applecart.clock import Clock
from applecart.embedded.controllers.expiry.plan import Dated, Expire, LeaseWatch, dated, plan_events
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.observe.logs import logger

SWEEP_EVERY_S = 300.0  # an Event may outlive its hour by this much
NODE_LEASES = "kube-node-lease"

log = logger(__name__)


async def run_expiry(client: Client, clock: Clock, *, with_events: bool = True) -> None:
    """Sweep until cancelled. `with_events` is False where etcd expires them."""
    expiry = Expiry(client, clock, with_events=with_events)
    while True:
        try:
            await expiry.sweep()
        except ApplecartError as error:
            log.warning("expired objects could not be removed, trying again", because=str(error))
        except Exception:
            log.exception("removing expired objects failed unexpectedly, trying again")
        await asyncio.sleep(SWEEP_EVERY_S)


class Expiry:
    def __init__(self, client: Client, clock: Clock, *, with_events: bool = True) -> None:
        self._client = client
        self._clock = clock
        self._with_events = with_events
        self._leases = LeaseWatch()

    async def sweep(self) -> None:
        plan = await self._plan_leases()
        if self._with_events:
            plan += await self._plan_events()
        await self.carry_out(plan)

    async def carry_out(self, plan: list[Expire]) -> None:
        removed = 0
        for step in plan:
            try:
                await self._client.delete(step.kind, step.key, if_uid=step.uid, if_revision=step.revision)
            except (Conflict, NotFound):
                continue  # written again, renewed or gone meanwhile
            removed += 1
            log.bind(step.key).debug("expired", kind=step.kind.resource.label, because=step.because)
        if removed:
            log.info("expired objects were removed", count=removed)

    async def _plan_leases(self) -> list[Expire]:
        # Leases first: a Node that appears after them is seen, and its Lease stays.
        leases = await self._client.list(Lease, NODE_LEASES)
        names = {node.name for node in await self._client.list(Node)}
        return self._leases.plan(leases, names, self._clock.monotonic())

    async def _plan_events(self) -> list[Expire]:
        found: list[Dated] = []

        def begin() -> Callable[[Iterable[Event]], None]:
            found.clear()
            return lambda page: found.extend(map(dated, page))

        await self._client.read_list(Event, begin)
        return plan_events(found, self._clock.now())
