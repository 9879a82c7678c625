"""Puts the node lifecycle together: one informer per kind, the monitor, the keeper of Nodes, the evictions.

It runs only where no kube-controller-manager does: two of them would fight over every taint.
"""

import asyncio

from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.node_lifecycle.evictions import Evictions
from applecart.embedded.controllers.node_lifecycle.heartbeats import Heartbeats
from applecart.embedded.controllers.node_lifecycle.monitor import Monitor
from applecart.embedded.controllers.node_lifecycle.nodes import BY_NODE, LEASES, NodeKeeper, by_node
from applecart.embedded.controllers.node_lifecycle.timing import Timing
from applecart.kube.client import Client
from applecart.kube.controller import Controller
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer, Tuning
from applecart.kube.workqueue import WorkQueue

WORKERS = 8  # Nodes at a time; most of the work is waiting for the API
NODE_COMPONENT = "node-controller"
EVICTION_COMPONENT = "taint-eviction-controller"


async def run_node_lifecycle(
    client: Client, clock: Clock, *, timing: Timing | None = None, tuning: Tuning | None = None
) -> None:
    """Keep Nodes until cancelled."""
    timing = timing or Timing()
    tuning = tuning or Tuning()
    nodes = Informer(client, Node, tuning=tuning)
    leases = Informer(client, Lease, LEASES, tuning=tuning)
    pods = Informer(client, Pod, indexes={BY_NODE: by_node}, tuning=tuning)
    of_nodes = Recorder(client, NODE_COMPONENT, clock)
    of_evictions = Recorder(client, EVICTION_COMPONENT, clock)
    heartbeats = Heartbeats(timing)
    monitor = Monitor(client, nodes, leases, heartbeats, of_nodes, clock, timing)
    keeper = NodeKeeper(client, nodes, pods, heartbeats, monitor.may_execute, of_nodes, clock)
    evictions = Evictions(client, nodes, pods, heartbeats, of_evictions, clock, timing)
    queue: WorkQueue[Key] = WorkQueue(clock)
    controller = Controller("nodes", keeper.reconcile, queue, clock, workers=WORKERS, deadline_s=timing.deadline_s)
    controller.watch(nodes, when=lambda change: change.new is not None and keeper.has_work(change.new))

    def queue_those_with_work() -> None:
        for node in nodes:
            if keeper.has_work(node):
                controller.queue.add(node.key)

    async with asyncio.TaskGroup() as group:
        for work in (nodes.run(), leases.run(), pods.run(), of_nodes.run(), of_evictions.run()):
            group.create_task(work)
        await pods.synced()  # before that no Pod could be marked
        group.create_task(controller.run())
        group.create_task(evictions.controller.run())
        group.create_task(monitor.run(evictions.restart, queue_those_with_work))
