"""`GET pods/NAME/log`: the agent's answer, passed on as it comes.

Nothing is kept: a reader that does not read stops the agent, and one that goes away closes the agent's connection.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from applecart.api.meta import Key
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.agent_failures import AgentUnreachable
from applecart.embedded.relay.agent_refusals import refusal_of
from applecart.embedded.relay.agents import AgentRefused, AgentStream, HttpAgents
from applecart.embedded.relay.location import agent_of, container_of
from applecart.embedded.relay.log_options import read_log_options
from applecart.embedded.relay.lookup import find_node, find_pod
from applecart.embedded.server.core import Core
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer

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
