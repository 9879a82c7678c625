"""The taints that keep foreign Pods off runner hosts.

A Node gets its taint when it is created, and every Pod we build tolerates it by key. Only key, value and effect live here;
the struct that stands in a Node's spec belongs to the Kubernetes kinds.
"""

from typing import Final

from msgspec import Struct

from applecart.api import labels

NO_SCHEDULE: Final = "NoSchedule"
"""Every taint below, by its writer: Pods without the toleration are not placed there; running ones stay."""


class TaintName(Struct, frozen=True):
    """What a Node carries (`key`, `value`, `effect`), who puts it there and why."""

    key: str
    value: str
    effect: str
    on: str
    by: str
    meaning: str


MACOS: Final = TaintName(
    key="tuist.dev/macos",
    value=labels.TRUE_VALUE,
    effect=NO_SCHEDULE,
    on="Node",
    by="kubelet",
    meaning="the node is a Mac whose Pods become VMs; DaemonSets and ordinary workloads stay away",
)

RUNNER_TIER: Final = TaintName(
    key="tuist.dev/runner-tier",
    value="bare-metal",
    effect=NO_SCHEDULE,
    on="Node",
    by="the cluster",
    meaning="the node is a Linux server kept for runner microVMs",
)
