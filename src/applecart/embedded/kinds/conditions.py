"""Conditions that the server itself sets in documents, by the rules of their contract.

A condition stands where it stood. Its transition time moves when its status does, and not with its reason or message: alerts
measure how long something has been true.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from applecart.api.meta import stamp


def is_true(document: dict[str, Any], condition: str) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def with_condition(conditions: Sequence[dict[str, Any]], condition: dict[str, Any], now: datetime) -> list[dict[str, Any]]:
    """The conditions with this one in its place."""
    before = next((one for one in conditions if one.get("type") == condition["type"]), None)
    since = before.get("lastTransitionTime") if before and before.get("status") == condition["status"] else None
    new = {**condition, "lastTransitionTime": since or stamp(now)}
    if before is None:
        return [*conditions, new]
    return [new if one is before else one for one in conditions]
