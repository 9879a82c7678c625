"""Conditions set by the rules of their contract: pure functions from a tuple to a new one.

`lastTransitionTime` moves when the status changed and not otherwise. Setting what is already there gives back the same tuple,
so nothing is sent. Conditions of other types are never touched.

Times have whole seconds, as the API stores them. Texts are redacted and reported before they are handed out (I9).
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from applecart.api.conditions import READY
from applecart.api.meta import Condition
from applecart.observe import published
from applecart.secrets import redact

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
LONGEST_MESSAGE_CHARS = 32768  # the API refuses a longer one, and with it the whole status
_METAV1_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class AnyCondition(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def last_transition_time(self) -> datetime | None: ...


C = TypeVar("C", bound=AnyCondition)


def set_condition(conditions: tuple[C, ...], condition: C, now: datetime) -> tuple[C, ...]:
    """With this metav1, Pod or Node condition; its own `last_transition_time` is ignored."""
    _check_status(condition)
    if isinstance(condition, Condition) and not _METAV1_REASON.fullmatch(condition.reason):
        raise ValueError(f"condition {condition.type} needs a reason in CamelCase, not {condition.reason!r}")
    condition = _public(condition)
    known = find(conditions, condition.type)
    since = known.last_transition_time if known is not None and known.status == condition.status else None
    condition = _replace(condition, last_transition_time=since or now.replace(microsecond=0))
    return conditions if condition == known else _with(conditions, condition)


def find(conditions: Iterable[C], type_: str) -> C | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[AnyCondition], type_: str) -> bool:
    condition = find(conditions, type_)
    return condition is not None and condition.status == TRUE


def _check_status(condition: AnyCondition) -> None:
    if condition.status not in (TRUE, FALSE, UNKNOWN):
        raise ValueError(f"condition {condition.type} has status {condition.status!r}; it must be True, False or Unknown")


def _public(condition: C) -> C:
    message = redact(condition.message)[:LONGEST_MESSAGE_CHARS]
    published("condition", f"{condition.type}: {condition.reason}: {message}")
    return _replace(condition, message=message)


def _with(conditions: tuple[C, ...], condition: C) -> tuple[C, ...]:
    """In one order whoever writes: the summary first, where `kubectl get` and people look, then by name."""
    others = [known for known in conditions if known.type != condition.type]
    return tuple(sorted([*others, condition], key=lambda each: (each.type != READY, each.type)))


def _replace(condition: C, **changes: object) -> C:
    return msgspec.structs.replace(condition, **changes)  # type: ignore[type-var]
