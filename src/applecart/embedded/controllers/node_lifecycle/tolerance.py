"""How long a Pod may stay on a Node with taints that make Pods leave. Pure."""

from collections.abc import Iterable

from applecart.api.nodes import Taint
from applecart.api.scheduling import Toleration
from applecart.embedded.controllers.scheduler.matching import is_tolerated

FOREVER = None


def tolerated_s(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> float | None:
    """Seconds from when the taints were seen; 0 when one is not tolerated at all, FOREVER when nothing limits the stay.

    The first toleration that matches a taint speaks for it, and the shortest of them for the Pod.
    """
    tolerations = tuple(tolerations)
    shortest: float | None = FOREVER
    for taint in taints:
        used = next((toleration for toleration in tolerations if is_tolerated(taint, (toleration,))), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            limit_s = float(max(0, used.toleration_seconds))
            shortest = limit_s if shortest is None else min(shortest, limit_s)
    return shortest
