"""Conditions in a Pod's status, set as the server itself sets them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from applecart.embedded.times import stamp


def with_condition(conditions: Sequence[dict[str, Any]], condition: dict[str, Any], now: datetime) -> list[dict[str, Any]]:
    """The conditions with this one in its place; its transition time moves only when its status does."""
    before = next((one for one in conditions if one.get("type") == condition["type"]), None)
    since = before.get("lastTransitionTime") if before and before.get("status") == condition["status"] else stamp(now)
    new = {**condition, "lastProbeTime": None, "lastTransitionTime": since}
    if before is None:
        return [*conditions, new]
    return [new if one is before else one for one in conditions]
