"""What exec and attach ask for, and how the agent is asked for it: the same words under the kubelet's older names."""

import msgspec
from multidict import MultiMapping

from applecart.embedded.server.request import is_true

EXEC, ATTACH = "exec", "attach"
# A client's name for a stream and the kubelet's, in the order in which the kubelet's are sent.
STREAMS = (("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty"))


class StreamOptions(msgspec.Struct, frozen=True):
    container: str
    agent_query: tuple[tuple[str, str], ...]


def read_stream_options(action: str, query: MultiMapping[str]) -> StreamOptions:
    """Nothing here can be wrong: the agent judges what to make of the command and of no streams at all."""
    command = query.getall("command", []) if action == EXEC else []
    streams = [(theirs, "1") for ours, theirs in STREAMS if is_true(query.get(ours))]
    return StreamOptions(query.get("container", ""), (*(("command", word) for word in command), *streams))
