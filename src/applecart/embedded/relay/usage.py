"""What an agent says of CPU and memory in its summary (`/stats/summary`), read into plain numbers.

The summary already holds rates, so one look is enough. An agent is believed about its own node and the Pods bound to it, and
about nothing else; what it leaves out or writes wrong is left out here.
"""

from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any

import msgspec

from applecart.api.meta import Key
from applecart.embedded.times import read_stamp

LARGEST = (1 << 63) - 1  # of a quantity


class Usage(msgspec.Struct, frozen=True):
    cpu_nanocores: int
    memory_bytes: int
    at: datetime


class NodeUsage(msgspec.Struct, frozen=True):
    """One node and its Pods; of each Pod the containers by name."""

    own: Usage | None
    pods: Mapping[Key, Mapping[str, Usage]]


class _Cpu(msgspec.Struct, rename="camel"):
    time: str = ""
    usage_nano_cores: int | None = None


class _Memory(msgspec.Struct, rename="camel"):
    working_set_bytes: int | None = None


class _Stats(msgspec.Struct):
    name: str = ""
    cpu: _Cpu | None = None
    memory: _Memory | None = None


class _Reference(msgspec.Struct):
    name: str
    namespace: str


class _Pod(msgspec.Struct, rename="camel"):
    pod_ref: _Reference
    containers: list[_Stats] = []


class _Summary(msgspec.Struct):
    node: _Stats
    pods: list[_Pod] = []


class BadSummary(ValueError):
    """An agent's summary that cannot be read."""


def read_summary(body: bytes, bound: Set[Key], now: datetime) -> NodeUsage:
    """`bound` are the Pods of this node; `now` stands in for an agent that tells no time."""
    try:
        summary = msgspec.json.decode(body, type=_Summary)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSummary(str(error)) from None
    pods: dict[Key, Mapping[str, Usage]] = {}
    for pod in summary.pods:
        key = Key(pod.pod_ref.namespace, pod.pod_ref.name)
        containers = {one.name: usage for one in pod.containers if (usage := _usage(one, now)) is not None}
        # A Pod of which one container is unknown would look smaller than it is.
        if key in bound and containers and len(containers) == len(pod.containers):
            pods[key] = containers
    return NodeUsage(_usage(summary.node, now), pods)


def _usage(stats: _Stats, now: datetime) -> Usage | None:
    if stats.cpu is None or stats.memory is None:
        return None
    cpu, memory = stats.cpu.usage_nano_cores, stats.memory.working_set_bytes
    if cpu is None or memory is None or not (0 <= cpu <= LARGEST and 0 <= memory <= LARGEST):
        return None
    return Usage(cpu, memory, _instant(stats.cpu.time, now))


def _instant(text: str, now: datetime) -> datetime:
    try:
        return min(read_stamp(text), now)
    except (ValueError, OverflowError):
        return now


def cpu_quantity(nanocores: int) -> str:
    for factor, suffix in ((10**9, ""), (10**6, "m"), (10**3, "u")):
        if nanocores % factor == 0:
            return f"{nanocores // factor}{suffix}"
    return f"{nanocores}n"


def memory_quantity(size_bytes: int) -> str:
    for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{suffix}"
    return str(size_bytes)


def usage_document(usage: Usage) -> dict[str, Any]:
    return {"cpu": cpu_quantity(usage.cpu_nanocores), "memory": memory_quantity(usage.memory_bytes)}
