"""Which container of which agent a request about a Pod means.

Reads committed objects and nothing else. The refusals are the real server's, down to the odd one: a Pod whose Node is gone is
told that there is no such *pod*, under the Node's name.
"""

from dataclasses import dataclass
from typing import Any

from yarl import URL

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, not_found
from applecart.embedded.server.core import Core

PREFERRED_ADDRESSES = ("InternalIP", "Hostname")  # as `--api binaries` tells the real server
DEFAULT_PORT = 10250  # of every kubelet that does not say otherwise


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """Where the agent of a node answers."""

    host: str
    port: int

    def url(self, path: str, query: list[tuple[str, str]] | None = None) -> URL:
        return URL.build(scheme="https", host=self.host, port=self.port, path=path, query=query or [])

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def container_of(pod: Document, wanted: str) -> str:
    """The container that is asked for, or the only one."""
    name = pod["metadata"]["name"]
    spec = pod["spec"]
    groups = ("initContainers", "containers", "ephemeralContainers")
    initial, containers, ephemeral = ([one["name"] for one in spec.get(group) or ()] for group in groups)
    if wanted:
        if wanted in (*initial, *containers, *ephemeral):
            return wanted
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    if len(containers) == 1:
        return str(containers[0])
    if not containers:
        raise bad_request(f"a container name must be specified for pod {name}")
    choice = " ".join([*initial, *containers, *ephemeral])
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{choice}]")


def agent_of(node: Document) -> AgentAddress:
    """Where the node says that its agent is."""
    status: dict[str, Any] = node.get("status") or {}
    addresses = [one for one in status.get("addresses") or () if one.get("address")]
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    port = endpoint.get("Port") or 0
    for preferred in PREFERRED_ADDRESSES:
        for one in addresses:
            if one.get("type") == preferred:
                return AgentAddress(one["address"], port if 0 < port < 1 << 16 else DEFAULT_PORT)
    known = " ".join(f"{{{one.get('type', '')} {one['address']}}}" for one in addresses)
    raise Refusal(500, "", f"no preferred addresses found; known addresses: [{known}]")


def find_pod(core: Core, key: Key) -> Document:
    pod = core.reader.get("pods", key.namespace, key.name)
    if pod is None:
        raise not_found(Pod.resource, key.name)
    return pod


def find_node(core: Core, name: str) -> Document:
    node = core.reader.get("nodes", "", name)
    if node is None:
        raise not_found(Pod.resource, name)  # the real server looks for the Node on behalf of the Pod, and says so
    return node
