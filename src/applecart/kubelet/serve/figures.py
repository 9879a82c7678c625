"""What the host and its guests use, as it was measured, and the document of `/stats/summary` made of it. Pure.

CPU time is counted up from the rates that were measured: the times of processes cannot be summed, because each that ends takes
its own with it, and a collector drops whoever's time goes down. The count begins when the agent first looks, so a restart of
the agent begins it anew, which collectors know of every counter.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from applecart.kubelet.serve.guests import Guest
from applecart.kubelet.serve.usage import LARGEST, Usage

FIRST_NS = 1  # a metrics server takes a time of 0 for one that was not measured, and leaves the guest out


class Measured(msgspec.Struct, frozen=True):
    """One look at the host or at a guest."""

    usage: Usage
    at: datetime
    at_s: float  # of the monotonic clock
    cpu_ns: int = FIRST_NS  # core time since the first look

    def then(self, usage: Usage, at: datetime, at_s: float) -> "Measured":
        """The next look: what is used now counts for the time since this one."""
        spent_ns = round(usage.cpu_nanocores * (at_s - self.at_s))
        return Measured(usage, at, at_s, min(self.cpu_ns + spent_ns, LARGEST))


class GuestFigures(msgspec.Struct, frozen=True):
    guest: Guest
    started_at: datetime | None  # None until the Pod's status says so
    measured: Measured


class Figures(msgspec.Struct, frozen=True):
    """Of the guests those that answered; of the host None when it did not."""

    host: Measured | None
    guests: tuple[GuestFigures, ...] = ()


def summary(node: str, figures: Figures) -> dict[str, Any]:
    own = _stats(figures.host) if figures.host is not None else {}
    return {"node": {"nodeName": node, **own}, "pods": [_pod(one) for one in figures.guests]}


def _pod(figures: GuestFigures) -> dict[str, Any]:
    guest = figures.guest
    stats = _stats(figures.measured)
    started: Mapping[str, str] = {"startTime": _stamp(figures.started_at)} if figures.started_at is not None else {}
    return {
        "podRef": {"name": guest.pod, "namespace": guest.namespace, "uid": guest.uid},
        "containers": [{"name": guest.container, **started, **stats}],
        **started,
        **stats,
    }


def _stats(measured: Measured) -> dict[str, Any]:
    time, usage = _stamp(measured.at), measured.usage
    return {
        "cpu": {"time": time, "usageNanoCores": usage.cpu_nanocores, "usageCoreNanoSeconds": measured.cpu_ns},
        "memory": {"time": time, "workingSetBytes": usage.memory_bytes},
    }


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
