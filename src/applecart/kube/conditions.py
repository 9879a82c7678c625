"""Conditions set by the rules of their contract: pure functions from a tuple to a new one.

Two contracts move `lastTransitionTime` differently. Cluster API v1beta1 moves it when anything a reader sees changed: status,
severity, reason or message. metav1 (and Pod and Node conditions) moves it when the status changed and not otherwise. In both,
setting what is already there gives back the same tuple, so nothing is sent. Conditions of other types are never touched.

Times have whole seconds, as the API stores them. Texts are redacted and reported before they are handed out (I9).
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from applecart.api.capi.shared import CapiCondition
from applecart.api.conditions import READY
from applecart.api.meta import Condition
from applecart.api.reasons import Severity
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


def set_capi_condition(
    conditions: tuple[CapiCondition, ...], condition: CapiCondition, now: datetime
) -> tuple[CapiCondition, ...]:
    """With this Cluster API v1beta1 condition; its own `last_transition_time` is ignored."""
    _check_status(condition)
    if (condition.status == FALSE) != bool(condition.severity):
        raise ValueError(f"condition {condition.type}: a severity belongs to status False and only to it")
    condition = _public(condition)
    known = find(conditions, condition.type)
    if known is not None and known.last_transition_time is not None:
        same = msgspec.structs.replace(condition, last_transition_time=known.last_transition_time)
        if same == known:
            return conditions
    return _with(conditions, msgspec.structs.replace(condition, last_transition_time=now.replace(microsecond=0)))


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


def drop_condition(conditions: tuple[C, ...], type_: str) -> tuple[C, ...]:
    return tuple(known for known in conditions if known.type != type_) if find(conditions, type_) else conditions


def find(conditions: Iterable[C], type_: str) -> C | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[AnyCondition], type_: str) -> bool:
    condition = find(conditions, type_)
    return condition is not None and condition.status == TRUE


def is_false(conditions: Iterable[AnyCondition], type_: str) -> bool:
    """Said to be False: a condition that is missing or Unknown is neither true nor false."""
    condition = find(conditions, type_)
    return condition is not None and condition.status == FALSE


def reason_of(conditions: Iterable[AnyCondition], type_: str) -> str:
    condition = find(conditions, type_)
    return condition.reason if condition is not None else ""


class Summary(msgspec.Struct, frozen=True):
    """What several conditions say together."""

    status: str
    severity: str = ""
    reason: str = ""
    message: str = ""


def summarise(conditions: Iterable[AnyCondition], types: Iterable[str]) -> Summary:
    """True when all are. Else the worst speaks: a False by severity, then what is missing or Unknown, in the given order.

    Cluster API lets a True outvote an Unknown; here it does not, because unknown is not ready.
    """
    present = {condition.type: condition for condition in conditions}
    worst = Summary(TRUE)
    worst_rank = _rank(worst)
    for type_ in types:
        condition = present.get(type_)
        if condition is None:
            said = Summary(UNKNOWN, reason=f"{type_}Missing", message=f"{type_} is not reported yet")
        else:
            severity = getattr(condition, "severity", "")
            said = Summary(condition.status, severity, condition.reason, condition.message)
        if _rank(said) < worst_rank:
            worst, worst_rank = said, _rank(said)
    return worst


def _rank(said: Summary) -> int:
    """Lower is worse. A False without severity (metav1) counts as an error."""
    if said.status == FALSE:
        return {Severity.WARNING: 1, Severity.INFO: 2}.get(Severity(said.severity or Severity.ERROR), 0)
    return 4 if said.status == TRUE else 3


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
