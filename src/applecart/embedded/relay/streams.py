"""exec and attach: a WebSocket of a client, joined to one of the agent.

The agent is asked first, so whatever it refuses is an answer that the client can read, and only then is the client's
connection upgraded. SPDY is not spoken. kubectl 1.30 and newer fall back to it whenever the WebSocket was refused, and then
show only the second refusal; so the same checks run again for it, and the agent is asked again, before SPDY itself is refused.
"""

from dataclasses import dataclass

import aiohttp
import msgspec
from aiohttp import web
from multidict import MultiMapping

from applecart.api.meta import Key
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.refusals import Refusal, bad_request, method_not_allowed, no_such_resource
from applecart.embedded.relay.agents import CLOSE_S, MESSAGE_LIMIT_BYTES, AgentRefused, AgentUnreachable, HttpAgents
from applecart.embedded.relay.location import AgentAddress, agent_of, container_of, find_node, find_pod
from applecart.embedded.relay.pump import PROTOCOLS, offered_protocols, pump
from applecart.embedded.server.core import Core
from applecart.embedded.server.request import attributes_of, is_true

EXEC, ATTACH = "exec", "attach"
# A client's name for a stream and the kubelet's, in the order in which the kubelet's are sent.
STREAMS = (("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty"))


def agent_query(action: str, query: MultiMapping[str]) -> tuple[tuple[str, str], ...]:
    """Nothing here can be wrong: the agent judges what to make of the command and of no streams at all."""
    command = query.getall("command", []) if action == EXEC else []
    streams = [(theirs, "1") for ours, theirs in STREAMS if is_true(query.get(ours))]
    return (*(("command", word) for word in command), *streams)


NO_COMMON_PROTOCOL = "unable to negotiate protocol"  # a kubelet's last word, after everything else is as it should be
STREAM_PATHS = (f"/{EXEC}", f"/{ATTACH}")
ONLY_WEBSOCKET = (
    "exec, attach and cp need WebSocket here: use kubectl 1.30 or newer, or set KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true for 1.29"
)


@dataclass(frozen=True, slots=True)
class _Target:
    """Whom to ask, and for what."""

    at: AgentAddress
    path: str
    query: tuple[tuple[str, str], ...]


class OpenStream:
    """An agent that has agreed; the client's side is still plain HTTP."""

    def __init__(self, agent: aiohttp.ClientWebSocketResponse) -> None:
        self._agent = agent

    async def run(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Upgrades the client and carries frames until the end."""
        protocols = (self._agent.protocol,) if self._agent.protocol else ()
        client = web.WebSocketResponse(protocols=protocols, timeout=CLOSE_S, compress=False, max_msg_size=MESSAGE_LIMIT_BYTES)
        try:
            await client.prepare(raw)
            await pump(client, self._agent)
        except ConnectionError:
            pass  # the client went away before its first frame
        finally:
            await self._agent.close()
        return client


def is_stream_request(raw: web.BaseRequest) -> bool:
    """Whether a client wants its connection upgraded, for exec or attach."""
    if "upgrade" not in raw.headers.get("Connection", "").lower():
        return False
    return raw.path.endswith(STREAM_PATHS)


async def open_stream(core: Core, agents: HttpAgents, user: User, raw: web.BaseRequest) -> OpenStream:
    """Raises the refusal of a request that cannot be streamed."""
    asked = attributes_of(raw.method, raw.path, {})
    core.authorizer.check(user, asked)
    target = _target(core, user, asked, raw.method, raw.query)
    is_websocket = raw.headers.get("Upgrade", "").lower() == "websocket"
    protocols = _protocols(raw) if is_websocket else ()
    try:
        if not is_websocket:
            await agents.offer(target.at, target.path, target.query, "SPDY/3.1")
            raise bad_request(ONLY_WEBSOCKET)
        return OpenStream(await agents.connect(target.at, target.path, target.query, protocols))
    except AgentRefused as refused:
        if not is_websocket and NO_COMMON_PROTOCOL in refused.text:
            raise bad_request(ONLY_WEBSOCKET) from None
        # The agent's own code and text; kubectl shows the text.
        raise Refusal(refused.status, "", refused.text or f"the node agent answered {refused.status}") from None
    except AgentUnreachable as unreachable:
        raise Refusal(500, "", f"error dialing backend: {unreachable}") from None


def refuse_without_upgrade(core: Core, user: User, asked: Attributes, method: str, query: MultiMapping[str]) -> Refusal:
    """The answer to exec and attach as plain HTTP."""
    _target(core, user, asked, method, query)
    return bad_request("Upgrade request required")


def _target(core: Core, user: User, asked: Attributes, method: str, query: MultiMapping[str]) -> _Target:
    if not asked.is_resource or (asked.group, asked.resource) != ("", "pods") or not asked.namespace:
        raise no_such_resource()
    if asked.subresource not in (EXEC, ATTACH) or asked.version != "v1":
        raise no_such_resource()
    if method not in ("GET", "POST"):
        raise method_not_allowed()
    if asked.verb != "create":
        # A WebSocket begins with GET, and who may only read must not run commands.
        core.authorizer.check(user, msgspec.structs.replace(asked, verb="create"))
    key = Key(asked.namespace, asked.name)
    pod = find_pod(core, key)
    container = container_of(pod, query.get("container", ""))
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        raise bad_request(f"pod {key.name} does not have a host assigned")
    path = f"/{asked.subresource}/{key.namespace}/{key.name}/{container}"
    return _Target(agent_of(find_node(core, node_name)), path, agent_query(asked.subresource, query))


def _protocols(raw: web.BaseRequest) -> tuple[str, ...]:
    protocols = offered_protocols(raw.headers.getall("Sec-WebSocket-Protocol", []))
    if not protocols:
        raise bad_request(f"a remote command needs one of the WebSocket protocols {', '.join(PROTOCOLS)}")
    if not web.WebSocketResponse(protocols=protocols).can_prepare(raw).ok:
        raise bad_request("the WebSocket handshake is not one: its version, key or headers are wrong")
    return protocols
