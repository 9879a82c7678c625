"""The Pod and the Node that a request to an agent is about, as committed."""

from applecart.api.meta import Key, Resource
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import not_found
from applecart.embedded.server.core import Core

PODS = Resource("", "v1", "Pod", "pods", True)


def find_pod(core: Core, key: Key) -> Document:
    pod = core.reader.get("pods", key.namespace, key.name)
    if pod is None:
        raise not_found(PODS, key.name)
    return pod


def find_node(core: Core, name: str) -> Document:
    node = core.reader.get("nodes", "", name)
    if node is None:
        raise not_found(PODS, name)  # the real server looks for the Node on behalf of the Pod, and says so
    return node
