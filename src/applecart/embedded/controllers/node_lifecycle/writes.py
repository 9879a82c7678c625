"""What the node lifecycle writes into a Node: its conditions and its taints.

Both name the revision they were decided on: a Node that changed meanwhile is a `Conflict`, and whoever asked decides again.
"""

import msgspec

from applecart.api.nodes import Node, NodeCondition, Taint
from applecart.kube.client import Client
from applecart.kube.patch import Merge, Strategic


async def write_conditions(client: Client, node: Node, conditions: list[NodeCondition]) -> Node:
    body = {"status": {"conditions": msgspec.to_builtins(conditions)}}
    return await client.patch_status(Node, node.key, Strategic(body), if_revision=node.revision)


async def write_taints(client: Client, node: Node, taints: tuple[Taint, ...]) -> Node:
    # The whole list: a strategic merge would join two effects of one key into one taint.
    body = {"spec": {"taints": msgspec.to_builtins(taints) or None}}
    return await client.patch(Node, node.key, Merge(body), if_revision=node.revision)
