"""Starts the scheduler with all that it needs: informers, an Event recorder, and the question whether it is wanted at all.

It runs only where no real scheduler does: two of them would fight over every Pod.
"""

import asyncio

from applecart.api.meta import Key
from applecart.api.nodes import Node, RuntimeClass
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.real_ones import is_held
from applecart.embedded.controllers.scheduler.scheduler import DEFAULT_SCHEDULER, Scheduler
from applecart.kube.client import Client
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer, Tuning

REAL_SCHEDULER_LEASE = Key("kube-system", "kube-scheduler")


async def run_scheduler(
    client: Client, clock: Clock, *, name: str = DEFAULT_SCHEDULER, packing: bool = False, tuning: Tuning | None = None
) -> None:
    """Schedule until cancelled."""
    tuning = tuning or Tuning()
    pods = Informer(client, Pod, tuning=tuning)
    nodes = Informer(client, Node, tuning=tuning)
    runtime_classes = Informer(client, RuntimeClass, tuning=tuning)
    recorder = Recorder(client, name, clock)
    scheduler = Scheduler(client, pods, nodes, runtime_classes, recorder, clock, name=name, packing=packing)
    async with asyncio.TaskGroup() as group:
        for work in (pods.run(), nodes.run(), runtime_classes.run(), recorder.run(), scheduler.run()):
            group.create_task(work)


async def real_scheduler_runs(client: Client) -> bool:
    """Whether a kube-scheduler holds its Lease and renews it."""
    return await is_held(client, REAL_SCHEDULER_LEASE)
