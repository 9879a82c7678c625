"""The heartbeat: a Lease that is renewed as long as this process lives.

In a task of its own that touches neither Tart nor the Node: whatever hangs on the host or fails in the API, the next renewal is
tried in time (once a slow `tart list` cost hosts their Ready). Renewals survive an outage of the API by trying on. The Lease
belongs to the Node, so that it goes with it. Never creates the namespace: the control plane does.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.api.nodes import Node
from applecart.clock import Clock
from applecart.errors import ApplecartError, DeadlineExceeded, Transient
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.owners import is_owned_by, owner_reference
from applecart.kube.patch import Merge
from applecart.observe.logs import logger

NAMESPACE = "kube-node-lease"
LEASE_S = 40  # what the control plane expects of a kubelet
RENEW_EVERY_S = 10.0  # three may be lost
ATTEMPT_S = 7.0  # one call that hangs leaves time for another before the lease runs out
PACE = Backoff(first_s=0.5, longest_s=7.0)

log = logger(__name__)


class LeaseNamespaceMissing(Transient):
    """The control plane has not made the namespace of Leases yet."""


class NodeLease:
    def __init__(self, client: Client, clock: Clock, name: str, *, owner: Callable[[], Node | None]) -> None:
        self._client = client
        self._clock = clock
        self._key = Key(NAMESPACE, name)
        self._owner = owner
        self._lease: Lease | None = None  # as the last answer showed it
        self._renewed_s: float | None = None
        self._complaint = ""

    @property
    def age_s(self) -> float | None:
        """Since the last renewal that arrived; None before the first."""
        return None if self._renewed_s is None else self._clock.monotonic() - self._renewed_s

    async def run(self) -> None:
        """Renew until cancelled."""
        failures = 0
        while True:
            began_s = self._clock.monotonic()
            try:
                await self._attempt()
            except Exception as error:  # also a bug of ours: without a heartbeat the host is lost
                failures += 1
                self._complain(error)
                await asyncio.sleep(PACE.wait_s(failures, self._clock.random))
            else:
                failures, self._complaint = 0, ""
                await asyncio.sleep(max(0.0, began_s + RENEW_EVERY_S - self._clock.monotonic()))

    async def _attempt(self) -> None:
        try:
            async with asyncio.timeout(ATTEMPT_S):
                self._lease = await self._renew()
        except TimeoutError:
            raise DeadlineExceeded(f"the API did not answer about Lease {self._key} within {ATTEMPT_S:g} s") from None
        self._renewed_s = self._clock.monotonic()

    async def _renew(self) -> Lease:
        spec = LeaseSpec(
            holder_identity=self._key.name,
            lease_duration_seconds=LEASE_S,
            renew_time=micro_time(self._clock.now()),
        )
        change: dict[str, Any] = {"spec": msgspec.to_builtins(spec)}
        owner = self._owner()
        if owner is not None and self._lease is not None and not is_owned_by(self._lease, owner):
            change["metadata"] = {"ownerReferences": msgspec.to_builtins([owner_reference(owner, controller=False)])}
        try:
            return await self._client.patch(Lease, self._key, Merge(change))
        except NotFound:
            return await self._create(spec, owner)

    async def _create(self, spec: LeaseSpec, owner: Node | None) -> Lease:
        owners = (owner_reference(owner, controller=False),) if owner is not None else ()
        metadata = ObjectMeta(name=self._key.name, namespace=NAMESPACE, owner_references=owners)
        spec = msgspec.structs.replace(spec, acquire_time=spec.renew_time, lease_transitions=0)
        try:
            return await self._client.create(Lease(metadata=metadata, spec=spec))
        except NotFound as error:
            sentence = f"namespace {NAMESPACE} is missing, so the host's heartbeat cannot be told; the control plane makes it"
            raise LeaseNamespaceMissing(sentence) from error

    def _complain(self, error: Exception) -> None:
        if repr(error) != self._complaint:  # once, not every few seconds of an outage
            self._complaint = repr(error)
            foreseen = isinstance(error, ApplecartError)
            (log.warning if foreseen else log.error)("the heartbeat failed, trying on", object=self._key, exc_info=error)
