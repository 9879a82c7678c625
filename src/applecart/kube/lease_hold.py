"""One candidate's hold on a Lease: looking, taking, renewing, giving back.

Carries out what `lease_decision.py` decides. Every write carries the revision it was decided on, so a write that arrives late
changes nothing that another did meanwhile. A hold counts from before the write was sent, and only once its answer has come.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from typing import Any

from applecart.api.coordination import Lease
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.errors import ApplecartError, DeadlineExceeded
from applecart.kube.client import Client
from applecart.kube.errors import AlreadyExists, Conflict, NotFound
from applecart.kube.lease_decision import (
    NEVER_SEEN,
    Step,
    Timing,
    decide,
    expires_s,
    observe,
    observe_missing,
    released,
    renewed,
    taken,
)
from applecart.kube.patch import Merge
from applecart.observe.logs import logger

RELEASE_S = 5.0  # a clean exit must not hang on an API that is away; the lease runs out anyway

log = logger(__name__)


class Standing(StrEnum):
    LEADER = "leader"
    STANDBY = "standby"
    UNSURE = "unsure"  # the API did not answer, or not clearly


class LeaseHold:
    def __init__(self, client: Client, key: Key, identity: str, clock: Clock, timing: Timing) -> None:
        self.key = key
        self.identity = identity
        self.takes = 0  # how often we became the holder
        self._client = client
        self._clock = clock
        self._timing = timing
        self._seen = NEVER_SEEN
        self._is_current = False  # whether `_seen` is our own last write, so that no look is needed before the next
        self._renewed_s = 0.0
        self._renewed_at = clock.now()
        self._complaint = ""

    @property
    def holder(self) -> str:
        """Who held the Lease when we last looked; empty when nobody did."""
        return self._seen.holder

    def left_s(self, span_s: float) -> float:
        """What is left of this span since our last renewal; negative when it is over."""
        return self._renewed_s + span_s - self._clock.monotonic()

    def others_left_s(self) -> float:
        """How long the present holder is safe from us."""
        return expires_s(self._seen, self._timing) - self._clock.monotonic()

    def is_safe(self) -> bool:
        """Whether nobody else can have taken over by now.

        Judged by both clocks: the monotonic one stands still while a machine sleeps, the wall clock can be set back.
        """
        has_slept = self._clock.now() - self._renewed_at > timedelta(seconds=self._timing.safe_s)
        return self.holder == self.identity and not has_slept and self.left_s(self._timing.safe_s) > 0

    async def attempt(self) -> Standing:
        """One try to become or stay the holder. Raises nothing but cancellation."""
        limit_s = self._timing.renew_deadline_s / 2  # one call that hangs leaves room for another
        try:
            async with asyncio.timeout(limit_s):
                standing = await self._take_or_renew()
        except TimeoutError:
            self._complain(DeadlineExceeded(f"the API did not answer about Lease {self.key} within {limit_s:g} s"))
            return Standing.UNSURE
        except Exception as error:  # a bug of ours must not end the election either: it is said, and tried again
            self._complain(error)
            return Standing.UNSURE
        self._complaint = ""
        return standing

    async def release(self) -> None:
        """Empty the record, so that a standby takes over at its next look instead of after the lease time."""
        try:
            async with asyncio.timeout(RELEASE_S):
                for _ in range(2):
                    await self._look()
                    if self.holder != self.identity or not self._seen.revision:
                        return
                    with suppress(Conflict):
                        await self._write(released(self._seen.spec, self._clock.now()))
                        log.info("released the lease", object=self.key)
                        return
        except (ApplecartError, TimeoutError) as error:
            because = str(error) or f"no answer within {RELEASE_S:g} s"
            log.warning("could not release the lease, it runs out by itself", object=self.key, because=because)
        finally:
            self._is_current = False

    async def _take_or_renew(self) -> Standing:
        for _ in range(2):  # a second time after a conflict, on what is there now
            if not self._is_current:
                await self._look()
            step = decide(self._seen, self.identity, self._clock.monotonic(), self._timing)
            if step is Step.WAIT:
                return Standing.STANDBY
            with suppress(Conflict, AlreadyExists):
                await self._carry_out(step)
                return Standing.LEADER
            self._is_current = False
        return Standing.UNSURE

    async def _look(self) -> None:
        try:
            lease = await self._client.get(Lease, self.key)
        except NotFound:
            self._seen = observe_missing(self._seen)
        else:
            self._seen = observe(self._seen, lease.spec, lease.revision, self._clock.monotonic())

    async def _carry_out(self, step: Step) -> None:
        if step is Step.CREATE:
            blank = Lease(metadata=ObjectMeta(name=self.key.name, namespace=self.key.namespace))
            lease = await self._client.create(blank)
            self._seen = observe(self._seen, lease.spec, lease.revision, self._clock.monotonic())
        now = self._clock.now()
        if step is Step.RENEW:
            await self._write(renewed(self._seen.spec, self.identity, now, self._timing))
            return
        await self._write(taken(self._seen.spec, self.identity, now, self._timing))
        self.takes += 1
        log.info("took the lease", object=self.key, identity=self.identity)

    async def _write(self, spec: dict[str, Any]) -> None:
        sent_s, sent_at = self._clock.monotonic(), self._clock.now()
        # Should this fail half-way, the record may or may not be ours: only a look can tell.
        self._is_current = False
        lease = await self._client.patch(Lease, self.key, Merge({"spec": spec}), if_revision=self._seen.revision)
        self._seen = observe(self._seen, lease.spec, lease.revision, self._clock.monotonic())
        self._renewed_s, self._renewed_at = sent_s, sent_at
        self._is_current = True

    def _complain(self, error: Exception) -> None:
        self._is_current = False
        if repr(error) != self._complaint:  # once, not every two seconds of an outage
            self._complaint = repr(error)
            log.warning("leader election cannot use its Lease, trying on", object=self.key, exc_info=error)
