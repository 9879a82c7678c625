"""`GET pods/NAME/log`: what is asked for, by the rules of the real server, and the agent's answer, passed on as it comes.

Nothing is kept: a reader that does not read stops the agent, and one that goes away closes the agent's connection. Follows the
defaults of Kubernetes 1.36, in which one stream out of two cannot be chosen yet.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

import msgspec

from applecart.api.meta import Key, Resource
from applecart.embedded.field_errors import FieldError, forbidden, quoted
from applecart.embedded.field_errors import invalid as invalid_value
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, invalid
from applecart.embedded.relay.agents import AgentRefused, AgentStream, AgentUnreachable, HttpAgents, refusal_of
from applecart.embedded.relay.location import agent_of, container_of, find_node, find_pod
from applecart.embedded.server.core import Core
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer, integer, is_true
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


TEXT = "text/plain"
LOOK_AT_READER_S = 1.0  # how long a silent log may go unnoticed by its reader, and a reader by the log


async def read_log(core: Core, agents: HttpAgents, request: ApiRequest, key: Key) -> Answer | StreamAnswer:
    options = read_log_options(key.name, request.query)
    pod: Document = find_pod(core, key)
    container = container_of(pod, options.container)
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        return Answer(204, content_type="")
    at = agent_of(find_node(core, node_name))
    path, query = f"/containerLogs/{key.namespace}/{key.name}/{container}", options.agent_query()
    try:
        stream = await agents.get(at, path, query, skips_verification=options.skips_verification)
    except AgentRefused as refused:
        raise refusal_of(refused, key.name) from None
    except AgentUnreachable as unreachable:
        raise Refusal(500, "", f'Get "{at.url(path, query)}": {unreachable}') from None
    return StreamAnswer(_with_pauses(stream), content_type=TEXT)


async def _with_pauses(stream: AgentStream) -> AsyncIterator[bytes]:
    """The chunks, and an empty one where nothing came for a while: then the front looks whether its reader is still there."""
    chunks = stream.chunks()
    coming: asyncio.Task[bytes] | None = None
    try:
        while True:
            coming = coming or asyncio.create_task(anext(chunks, b""))
            done, _ = await asyncio.wait((coming,), timeout=LOOK_AT_READER_S)
            if not done:
                yield b""
                continue
            chunk, coming = coming.result(), None
            if not chunk:
                return
            yield chunk
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await coming
        await chunks.aclose()
