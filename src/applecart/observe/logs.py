"""Structured logs on the standard library's logging.

A record is one line: when, how bad, who says it, a message that never varies, then fields. The object a record is about shows
as `kind`, `namespace`, `name` and `uid`, so that everything that happened to one Pod is one search. On a terminal the same
record is text for people.

Every text passes `redact` on its way out (I9, `log_format.py`); that is the second line of defence, the first is not to log a
secret at all. A logging call never raises into the code that logs.
"""

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, Literal, get_args

from applecart.clock import Clock, SystemClock
from applecart.errors import BadInput
from applecart.observe.log_format import Identified, JsonFormatter, Keyed, TextFormatter, identity

LogFormat = Literal["text", "json"]
LEVELS = ("debug", "info", "warning", "error")
CHATTY = ("aiohttp.access", "asyncio", "asyncssh")  # their info says what our own records say better


class Logger:
    """A standard logger with fields bound to it."""

    __slots__ = ("_fields", "_logger")

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any]) -> None:
        self._logger = logger
        self._fields = fields

    def bind(self, object: Keyed | Identified | None = None, /, **fields: Any) -> "Logger":
        """A logger whose every record carries these fields."""
        about = identity(object) if object is not None else {}
        return Logger(self._logger, {**self._fields, **about, **fields})

    def debug(self, message: str, /, **fields: Any) -> None:
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        self._log(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        """`exc_info=error` adds the error: one sentence for ours, a traceback for one that nobody foresaw."""
        self._log(logging.ERROR, message, fields)

    def exception(self, message: str, /, **fields: Any) -> None:
        """In an except block: `error` with the exception being handled."""
        self._log(logging.ERROR, message, {"exc_info": sys.exception(), **fields})

    def _log(self, level: int, message: str, fields: dict[str, Any]) -> None:
        if not self._logger.isEnabledFor(level):
            return
        exc_info = fields.pop("exc_info", None)
        about = fields.pop("object", None)
        bound = {**self._fields, **identity(about)} if about is not None else self._fields
        self._logger.log(level, message, exc_info=exc_info, extra={"fields": {**bound, **fields}}, stacklevel=3)


def logger(name: str) -> Logger:
    return Logger(logging.getLogger(name), {})


def setup_logging(
    level: str = "info",
    format: LogFormat | None = None,
    stream: IO[str] | None = None,
    clock: Clock | None = None,
    beside: IO[str] | None = None,
) -> None:
    """Send every record of this process to one stream. Without a format: text on a terminal, JSON elsewhere.

    `beside`: where the command tells its story to people. A log that goes to the very same place is text as well.
    """
    if level not in LEVELS:
        raise BadInput(f"--log-level {level!r} is not a level; use one of {', '.join(LEVELS)}")
    if format is not None and format not in get_args(LogFormat):
        raise BadInput(f"--log-format {format!r} is not a format; use text or json")
    stream = sys.stderr if stream is None else stream
    is_read = stream.isatty() or (beside is not None and _are_one(stream, beside))
    chosen = format or ("text" if is_read else "json")
    clock = clock or SystemClock()
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(handler)
    root.addHandler(_Handler(stream, TextFormatter(clock) if chosen == "text" else JsonFormatter(clock)))
    root.setLevel(level.upper())
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _are_one(stream: IO[str], other: IO[str]) -> bool:
    try:
        return os.path.sameopenfile(stream.fileno(), other.fileno())
    except (OSError, ValueError):  # no files, or closed ones
        return False


class _Handler(logging.Handler):
    """Writes to a stream. The standard handler would print a record it cannot format, arguments and all, to stderr."""

    def __init__(self, stream: IO[str], formatter: logging.Formatter) -> None:
        super().__init__()
        self._stream = stream
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:
            line = self._format_refused(record, error)
        self._write(line)

    def _format_refused(self, record: logging.LogRecord, error: Exception) -> str:
        where = f"{record.filename}:{record.lineno}"
        message = f"a record of {record.name} ({where}) cannot be shown: {type(error).__name__}"
        return self.format(logging.LogRecord(__name__, logging.ERROR, record.pathname, record.lineno, message, None, None))

    def _write(self, line: str) -> None:
        with suppress(OSError, ValueError):  # whoever read the stream is gone, and there is nobody left to tell
            try:
                self._stream.write(line + "\n")
            except UnicodeEncodeError:
                self._stream.write(line.encode("ascii", "backslashreplace").decode() + "\n")
            self._stream.flush()
