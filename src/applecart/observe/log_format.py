"""How a log record looks: which object it is about, its fields as JSON or text, its error as a sentence.

Every text that leaves passes `redact` here (I9). An error of ours is one sentence; one that nobody foresaw keeps its
traceback. Knows Kubernetes objects only by their shape, because what `api` defines stands above this layer.
"""

import json
import logging
import math
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.secrets import redact


@runtime_checkable
class Keyed(Protocol):
    """Names one object within its kind: a Key."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


@runtime_checkable
class Identified(Protocol):
    """A Kubernetes object."""

    @property
    def key(self) -> Keyed: ...
    @property
    def resource(self) -> Any: ...


def identity(obj: Keyed | Identified) -> dict[str, str]:
    """The fields that say which object a record is about."""
    key = obj.key if isinstance(obj, Identified) else obj
    fields = {
        "kind": getattr(getattr(obj, "resource", None), "kind", ""),
        "namespace": key.namespace,
        "name": key.name,
        "uid": getattr(obj, "uid", ""),
    }
    return {name: value for name, value in fields.items() if value}


class JsonFormatter(logging.Formatter):
    """One JSON object per line; non-ASCII is escaped, so that no stream's encoding can lose a record."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": timestamp(self._clock.now()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": redact(record.getMessage()),
        }
        for name, value in _fields_of(record).items():
            line[f"{name}_" if name in line else name] = value
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """For a person at a terminal. A record that holds control characters cannot move the cursor or fake a second record."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields_of(record)
        trace = fields.pop("traceback", "")
        time_of_day = timestamp(self._clock.now())[11:-1]
        message = _one_line(redact(record.getMessage()))
        words = [time_of_day, f"{record.levelname:<7}", record.name.removeprefix("applecart."), message]
        words += [f"{name}={_quoted(value)}" for name, value in fields.items()]
        indented = [f"    {_one_line(line)}" for line in trace.splitlines()]
        return "\n".join([" ".join(words), *indented])


def timestamp(instant: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """A field's value as JSON can carry it, free of secrets."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, BaseException):
        return redact(sentence(value))
    if isinstance(value, Mapping):
        return {redact(str(name)): plain(item) for name, item in value.items()}
    if isinstance(value, Identified):
        return redact(str(value.key))
    if isinstance(value, set | frozenset):
        return [plain(item) for item in sorted(value, key=str)]
    if isinstance(value, list | tuple) and not isinstance(value, Keyed):
        return [plain(item) for item in value]
    return redact(str(value))


def sentence(error: BaseException) -> str:
    """An error as one line: ours speak for themselves, others need their class to be understood."""
    if isinstance(error, BaseExceptionGroup) and not is_unforeseen(error):
        return "; ".join(sentence(part) for part in error.exceptions)
    if isinstance(error, ApplecartError):
        return str(error)
    return "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")


def is_unforeseen(error: BaseException) -> bool:
    """Whether a person needs the traceback: something failed that nobody wrote a sentence for."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_unforeseen(part) for part in error.exceptions)
    return not isinstance(error, ApplecartError)


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: plain(value) for name, value in getattr(record, "fields", {}).items()}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields |= {"error": redact(sentence(error)), "error_class": type(error).__name__}
        if is_unforeseen(error):
            fields["traceback"] = redact("".join(traceback.format_exception(error)))
    return fields


def _quoted(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and not set(value) & set(' "='):
        return value or '""'
    return json.dumps(value)


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]
