"""Starts the Pod garbage collection with its informers. It runs only where no kube-controller-manager does the same."""

import asyncio

from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.pod_garbage.collector import Patience, PodGarbage
from applecart.kube.client import Client
from applecart.kube.informer import Informer, Tuning


async def run_pod_garbage(
    client: Client, clock: Clock, *, patience: Patience | None = None, tuning: Tuning | None = None
) -> None:
    """Collect until cancelled."""
    tuning = tuning or Tuning()
    pods = Informer(client, Pod, tuning=tuning)
    nodes = Informer(client, Node, tuning=tuning)
    collector = PodGarbage(client, pods, nodes, clock, patience or Patience())
    async with asyncio.TaskGroup() as group:
        for work in (pods.run(), nodes.run(), collector.run()):
            group.create_task(work)
