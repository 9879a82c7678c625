"""Who may take a Lease, and when: the decisions of leader election, without a clock or an API.

Times in a Lease come from the holder's clock and are never compared with ours. A change of the record is all we learn from it:
from the moment we saw the change, on our own clock, the holder has the whole lease time. The holder in turn counts from before
it sent its last renewal, which is earlier than anybody can have seen it. That is why both are never at work at once.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from applecart.api.coordination import LeaseSpec
from applecart.api.meta import micro_time
from applecart.errors import BadInput

JITTER = 0.2  # of the retry time: standbys that started together drift apart
DRIFT = 0.05  # how much faster than ours another machine's clock may run; far beyond any quartz, enough for a throttled VM


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


def decide(seen: Seen, identity: str, now_s: float, timing: Timing) -> Step:
    """What a candidate may do. An identity belongs to one process, so a record with ours is ours."""
    if seen.holder == identity:
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
