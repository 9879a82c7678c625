"""What a reader of logs asks for, by the rules of the real server, and how the agent is asked for it.

Follows the defaults of Kubernetes 1.36, in which one stream out of two cannot be chosen yet.
"""

from collections.abc import Mapping

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.field_errors import FieldError, forbidden, quoted
from applecart.embedded.field_errors import invalid as invalid_value
from applecart.embedded.refusals import bad_request, invalid
from applecart.embedded.server.request import integer, is_true
from applecart.embedded.structure.scalars import BadInstant, whole_seconds

OPTIONS = Resource("", "v1", "PodLogOptions", "podlogoptions")
ZERO_TIME = "0001-01-01T00:00:00Z"  # what the real server makes of an empty `sinceTime`
NO_FIELD = "[]"  # how it names a problem of the options as a whole


class LogOptions(msgspec.Struct, frozen=True):
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: str | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    skips_verification: bool = False  # of the agent's certificate

    def agent_query(self) -> list[tuple[str, str]]:
        asked = {
            "follow": "true" if self.follow else None,
            "limitBytes": self.limit_bytes,
            "previous": "true" if self.previous else None,
            "sinceSeconds": self.since_seconds,
            "sinceTime": self.since_time,
            "tailLines": self.tail_lines,
            "timestamps": "true" if self.timestamps else None,
        }
        return [(name, str(value)) for name, value in asked.items() if value is not None]


def read_log_options(pod: str, query: Mapping[str, str]) -> LogOptions:
    """Raises the refusal of what cannot be asked."""
    options = LogOptions(
        container=query.get("container", ""),
        follow=is_true(query.get("follow")),
        previous=is_true(query.get("previous")),
        timestamps=is_true(query.get("timestamps")),
        since_seconds=_number(query, "sinceSeconds"),
        since_time=_instant(query),
        tail_lines=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes"),
        skips_verification=is_true(query.get("insecureSkipTLSVerifyBackend")),
    )
    if errors := _problems(options, has_stream="stream" in query):
        raise invalid(OPTIONS, pod, errors)
    return options


def _problems(options: LogOptions, *, has_stream: bool) -> list[FieldError]:
    errors = []
    if options.tail_lines is not None and options.tail_lines < 0:
        errors.append(invalid_value("tailLines", options.tail_lines, "must be greater than or equal to 0"))
    if options.limit_bytes is not None and options.limit_bytes < 1:
        errors.append(invalid_value("limitBytes", options.limit_bytes, "must be greater than 0"))
    if options.since_seconds is not None and options.since_time is not None:
        errors.append(forbidden(NO_FIELD, "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif options.since_seconds is not None and options.since_seconds < 1:
        errors.append(invalid_value("sinceSeconds", options.since_seconds, "must be greater than 0"))
    if has_stream:
        errors.append(forbidden("stream", "may not be specified"))
    return errors


def _number(query: Mapping[str, str], name: str) -> int | None:
    if query.get(name) == "":
        raise bad_request(f"strconv.ParseInt: parsing {quoted('')}: invalid syntax")
    return integer(query, name)


def _instant(query: Mapping[str, str]) -> str | None:
    text = query.get("sinceTime")
    if text is None:
        return None
    try:
        return (whole_seconds(text) if text else None) or ZERO_TIME
    except BadInstant as error:
        raise bad_request(str(error)) from None
