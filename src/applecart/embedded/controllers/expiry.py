"""Removes Events that are old or too many, and Leases of hosts that left.

An Event lives an hour after it was last written, and a namespace keeps only so many, so a component that never stops talking
cannot fill the disk. A Lease goes when nobody owns it, its Node does not exist and nobody renewed it for a long time, as our
own clock saw it: a host that is being set up again must find its Lease. Leases with an owner are the garbage collector's.

Reads by lists, not by informers: Events are many, and nobody needs them in memory between two sweeps. Every deletion names the
revision that was judged, so an Event that is written again and a Lease that is renewed meanwhile stay. On a cluster with etcd
Events expire there, and only Leases are swept here.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from applecart.api.coordination import Lease
from applecart.api.events import Event
from applecart.api.meta import Key, Object, instant
from applecart.api.node_access import NODE_LEASES
from applecart.api.nodes import Node
from applecart.errors import ApplecartError
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.manager import Manager
from applecart.observe.logs import logger

EVENT_LIFE = timedelta(hours=1)  # the API server's default
EVENTS_PER_NAMESPACE = 5_000  # about 5 MB; an hour of a fleet that is well has a few hundred
LEASE_LIFE_S = 3600.0  # longer than setting a host up again takes, shorter than a shift
_UNDATED = datetime.min.replace(tzinfo=UTC)

SWEEP_EVERY_S = 300.0  # an Event may outlive its hour by this much


log = logger(__name__)


class Expire(msgspec.Struct, frozen=True):
    """Delete this object if it is still the revision that was judged."""

    kind: type[Object]
    key: Key
    uid: str
    revision: str
    because: str


class Dated(msgspec.Struct, frozen=True, order=True):
    """Of an Event only what decides: thousands are looked at, and their texts are long."""

    last_written_at: datetime
    key: Key
    uid: str
    revision: str


def dated(event: Event) -> Dated:
    times = (event.metadata.creation_timestamp, event.last_timestamp, event.first_timestamp, _micro(event.event_time))
    last_seen = _micro(event.series.last_observed_time) if event.series is not None else None
    known = [at if at.tzinfo is not None else at.replace(tzinfo=UTC) for at in (*times, last_seen) if at is not None]
    return Dated(max(known, default=_UNDATED), event.key, event.uid, event.revision)


def plan_events(events: Iterable[Dated], now: datetime) -> list[Expire]:
    """A date in the future is one of a clock that was set back, and counts as now."""
    kept: dict[str, list[Dated]] = {}
    plan = []
    for event in events:
        if now - event.last_written_at > EVENT_LIFE:
            plan.append(_expire(event, "it is older than an hour"))
        else:
            kept.setdefault(event.key.namespace, []).append(event)
    for of_namespace in kept.values():
        excess = len(of_namespace) - EVENTS_PER_NAMESPACE
        if excess > 0:
            because = f"its namespace has more than {EVENTS_PER_NAMESPACE} Events"
            plan += [_expire(event, because) for event in sorted(of_namespace)[:excess]]
    return plan


class LeaseWatch:
    """Since when each Lease has not changed, by our own clock."""

    def __init__(self) -> None:
        self._since: dict[Key, tuple[str, float]] = {}  # the revision, and when it was first seen

    def plan(self, leases: Iterable[Lease], node_names: Collection[str], now_s: float) -> list[Expire]:
        known, self._since = self._since, {}
        plan = []
        for lease in leases:
            revision, since_s = known.get(lease.key, ("", now_s))
            if revision != lease.revision:
                since_s = now_s
            self._since[lease.key] = (lease.revision, since_s)
            is_ours_to_expire = not lease.metadata.owner_references and lease.name not in node_names
            if is_ours_to_expire and not lease.is_being_deleted and now_s - since_s > LEASE_LIFE_S:
                because = f"Node {lease.name} is gone and nobody renewed its Lease for {now_s - since_s:.0f} s"
                plan.append(Expire(Lease, lease.key, lease.uid, lease.revision, because))
        return plan


def _expire(event: Dated, because: str) -> Expire:
    return Expire(Event, event.key, event.uid, event.revision, because)


def _micro(text: str | None) -> datetime | None:
    try:
        return instant(text or "")
    except ValueError:
        return None  # no date is not a reason to keep an Event, nor to fail


class Expiry:
    def __init__(self, manager: Manager, *, with_events: bool = True) -> None:
        """`with_events` is False where etcd expires them."""
        self._client = manager.client
        self._clock = manager.clock
        self._with_events = with_events
        self._leases = LeaseWatch()
        manager.background("expiry", self.run)

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            try:
                await self.sweep()
            except ApplecartError as error:
                log.warning("expired objects could not be removed, trying again", because=str(error))
            await asyncio.sleep(SWEEP_EVERY_S)

    async def sweep(self) -> None:
        # Leases first: a Node that appears after them is seen, and its Lease stays.
        leases = await self._client.list(Lease, NODE_LEASES)
        names = {node.name for node in await self._client.list(Node)}
        plan = self._leases.plan(leases, names, self._clock.monotonic())
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

    async def _plan_events(self) -> list[Expire]:
        found: list[Dated] = []

        def begin() -> Callable[[Iterable[Event]], None]:
            found.clear()
            return lambda page: found.extend(map(dated, page))

        await self._client.read_list(Event, begin)
        return plan_events(found, self._clock.now())
