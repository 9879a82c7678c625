"""One candidate's hold on a Lease: looking, taking, renewing, giving back.

The decision is made of plain values: a record counts as held for the lease time after we saw it change, by our own monotonic
clock, so the clocks of others do not matter. Every write carries the revision it was decided on, so a write that arrives late
changes nothing that another did meanwhile. A hold counts from before the write was sent, and only once its answer has come.
"""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.clock import Clock
from applecart.errors import ApplecartError, BadInput, DeadlineExceeded
from applecart.kube.client import Client
from applecart.kube.errors import AlreadyExists, Conflict, NotFound
from applecart.kube.patch import Merge
from applecart.observe.logs import logger

JITTER = 0.2  # of the retry time: standbys that started together drift apart
DRIFT = 0.05  # how much faster than ours another machine's clock may run; far beyond any quartz, enough for a throttled VM
LAST_WORDS_S = 0.5  # of a process that ends itself; taken from what the drift leaves between its time and the next holder's

STAMPS_ON_THEIR_WAY = 100  # of writes that the record has not shown: far more than can still arrive
RELEASE_S = 5.0  # a clean exit must not hang on an API that is away; the lease runs out anyway


log = logger(__name__)


class Timing(msgspec.Struct, frozen=True):
    """Client-go's three times, with its defaults."""

    lease_s: int = 15  # others wait so long after the last renewal they saw
    renew_deadline_s: float = 10.0  # the holder stops its work when it could not renew for so long
    retry_s: float = 2.0  # between two renewals, or two looks of a standby

    def __post_init__(self) -> None:
        if self.retry_s <= 0:
            raise BadInput(f"leader election: the retry period must be above 0 s, not {self.retry_s:g} s")
        if self.renew_deadline_s <= self.retry_s * (1 + JITTER):
            raise BadInput(
                f"leader election: the renew deadline ({self.renew_deadline_s:g} s) must be longer than the retry period with"
                f" its jitter ({self.retry_s * (1 + JITTER):g} s), or one late answer ends the leadership"
            )
        if self.stop_margin_s <= 0:
            raise BadInput(
                f"leader election: the lease duration ({self.lease_s} s, less {DRIFT:.0%} for clock drift) must be longer than"
                f" the renew deadline ({self.renew_deadline_s:g} s), so that work can stop before another takes over"
            )
        if self.lease_s * DRIFT < LAST_WORDS_S:
            raise BadInput(
                f"leader election: the lease duration ({self.lease_s} s) must be at least {LAST_WORDS_S / DRIFT:g} s, so that a"
                " process whose work does not stop has ended before another takes over"
            )

    @property
    def safe_s(self) -> float:
        """How long after sending a renewal we may work: nobody else can have waited out the lease by then."""
        return self.lease_s * (1 - DRIFT)

    @property
    def stop_margin_s(self) -> float:
        """What work has for ending once the renew deadline has passed."""
        return self.safe_s - self.renew_deadline_s


class Seen(msgspec.Struct, frozen=True):
    """The record as last read, and since when, on our own monotonic clock, it has looked like this."""

    spec: LeaseSpec
    revision: str  # "" when there is no such Lease (any more)
    since_s: float

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""


NEVER_SEEN = Seen(LeaseSpec(), "", 0.0)


class Step(StrEnum):
    CREATE = "create"  # there is no Lease: make an empty one, then take it
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def observe(known: Seen, spec: LeaseSpec, revision: str, now_s: float) -> Seen:
    """What we know after reading. An edit beside the record, such as a label, does not prolong the holder's time."""
    if not spec.holder_identity and not spec.renew_time:
        spec = known.spec  # made anew and blank: it says nothing about the holder we knew, who may still work
    return Seen(spec, revision, known.since_s if spec == known.spec else now_s)


def observe_missing(known: Seen) -> Seen:
    """A Lease that somebody deleted under its holder: the holder still works, so its time runs on."""
    return Seen(known.spec, "", known.since_s)


def expires_s(seen: Seen, timing: Timing) -> float:
    """When, on our clock, the holder's time is over. The holder's own lease duration counts; it may be configured otherwise."""
    return seen.since_s + (seen.spec.lease_duration_seconds or timing.lease_s)


def decide(seen: Seen, identity: str, now_s: float, timing: Timing, *, is_namesakes: bool = False) -> Step:
    """What a candidate may do. A record with our identity is ours, unless a namesake wrote it."""
    if seen.holder == identity and not is_namesakes:
        return Step.RENEW if seen.revision else Step.CREATE
    if seen.holder and now_s < expires_s(seen, timing):
        return Step.WAIT
    return Step.TAKE if seen.revision else Step.CREATE


def taken(spec: LeaseSpec, identity: str, now: datetime, timing: Timing) -> dict[str, Any]:
    """The change that makes us the holder."""
    first_ever = spec.lease_transitions is None and not spec.renew_time
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": timing.lease_s,
        "acquireTime": micro_time(now),
        "renewTime": _next_stamp(spec, now),
        "leaseTransitions": 0 if first_ever else (spec.lease_transitions or 0) + 1,
    }


def renewed(spec: LeaseSpec, identity: str, now: datetime, timing: Timing) -> dict[str, Any]:
    """The change that keeps us the holder, also on a Lease that was made anew meanwhile."""
    return {"holderIdentity": identity, "leaseDurationSeconds": timing.lease_s, "renewTime": _next_stamp(spec, now)}


def released(spec: LeaseSpec, now: datetime) -> dict[str, Any]:
    return {"holderIdentity": "", "renewTime": _next_stamp(spec, now)}


def _next_stamp(spec: LeaseSpec, now: datetime) -> str:
    """Never the stamp that is there already: others know a renewal only by its difference, and clocks can stand still."""
    stamp = micro_time(now)
    return stamp if stamp != spec.renew_time else micro_time(now + timedelta(microseconds=1))


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
        self._sent_stamps: deque[str] = deque(maxlen=STAMPS_ON_THEIR_WAY)
        self._shown_stamp = ""  # the last of ours that was in the record: it stays there while all writes fail
        self._knows_namesake = False
        self.may_be_ours = False  # also while it is being taken: only the answer tells
        self._is_current = False  # whether `_seen` is our own last write, so that no look is needed before the next
        self._renewed_s = 0.0
        self._renewed_at = clock.now()
        self.complaint = ""

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
        is_held = self.holder == self.identity and not self._is_namesakes()
        return is_held and not has_slept and self.left_s(self._timing.safe_s) > 0

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
        self.complaint = ""
        return standing

    async def release(self) -> None:
        """Empty the record, so that a standby takes over at its next look instead of after the lease time."""
        try:
            async with asyncio.timeout(RELEASE_S):
                for _ in range(2):
                    await self._look()
                    if self.holder != self.identity or self._is_namesakes() or not self._seen.revision:
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
            is_namesakes = self._is_namesakes()
            if is_namesakes and not self._knows_namesake:
                sentence = "the lease is held in our name by a process that is not this one, waiting for the end of its time"
                log.warning(sentence, object=self.key, identity=self.identity)
            self._knows_namesake = is_namesakes
            step = decide(self._seen, self.identity, self._clock.monotonic(), self._timing, is_namesakes=is_namesakes)
            if step is Step.WAIT:
                self.may_be_ours = False
                return Standing.STANDBY
            with suppress(Conflict, AlreadyExists):
                await self._carry_out(step)
                return Standing.LEADER
            self._is_current = False
        return Standing.UNSURE

    def _is_namesakes(self) -> bool:
        """Whether the record has our identity and a stamp that we never wrote: another process has, or had, that name."""
        return self.holder == self.identity and self._seen.spec.renew_time != self._shown_stamp

    async def _look(self) -> None:
        try:
            lease = await self._client.get(Lease, self.key)
        except NotFound:
            self._seen = observe_missing(self._seen)
        else:
            self._saw(lease)

    def _saw(self, lease: Lease) -> None:
        self._seen = observe(self._seen, lease.spec, lease.revision, self._clock.monotonic())
        if (stamp := self._seen.spec.renew_time or "") in self._sent_stamps:
            self._shown_stamp = stamp

    async def _carry_out(self, step: Step) -> None:
        if step is Step.CREATE:
            blank = Lease(metadata=ObjectMeta(name=self.key.name, namespace=self.key.namespace))
            lease = await self._client.create(blank)
            self._saw(lease)
        now = self._clock.now()
        if step is Step.RENEW:
            await self._write(renewed(self._seen.spec, self.identity, now, self._timing))
            return
        await self._write(taken(self._seen.spec, self.identity, now, self._timing))
        self.takes += 1
        log.info("took the lease", object=self.key, identity=self.identity)

    async def _write(self, spec: dict[str, Any]) -> None:
        sent_s, sent_at = self._clock.monotonic(), self._clock.now()
        self.may_be_ours = True
        self._sent_stamps.append(spec["renewTime"])
        # Should this fail half-way, the record may or may not be ours: only a look can tell.
        self._is_current = False
        lease = await self._client.patch(Lease, self.key, Merge({"spec": spec}), if_revision=self._seen.revision)
        self._saw(lease)
        self._renewed_s, self._renewed_at = sent_s, sent_at
        self._is_current = True

    def _complain(self, error: Exception) -> None:
        self._is_current = False
        because = str(error) or repr(error)
        if because != self.complaint:  # once, not every two seconds of an outage
            self.complaint = because
            log.warning("leader election cannot use its Lease, trying on", object=self.key, exc_info=error)
