"""Starts the scheduler with all that it needs: informers, an Event recorder, and the question whether it is wanted at all.

It runs only where no real scheduler does: two of them would fight over every Pod.
"""

import asyncio

from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.api.nodes import Node, RuntimeClass
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.scheduler.scheduler import DEFAULT_SCHEDULER, Scheduler
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer, Tuning

REAL_SCHEDULER_LEASE = Key("kube-system", "kube-scheduler")
LEASE_S = 15  # what a scheduler holds its Lease for unless told otherwise
LOOK_EVERY_S = 2.0  # a holder renews about so often


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
    """Whether a kube-scheduler holds its Lease and renews it.

    A renewal that our clock calls recent counts at once. Clocks differ, so an old one is watched for a whole term: only a
    holder that does not renew in that time is gone.
    """
    lease = await _scheduler_lease(client)
    if lease is None or not lease.holder or lease.renewed_at is None:
        return False
    term_s = lease.spec.lease_duration_seconds or LEASE_S
    age_s = (client.clock.now() - lease.renewed_at).total_seconds()
    if 0 <= age_s < term_s:
        return True
    waited_s = 0.0
    while waited_s < term_s:
        await asyncio.sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
        now = await _scheduler_lease(client)
        if now is None or not now.holder:
            return False
        if now.revision != lease.revision:
            return True
    return False


async def _scheduler_lease(client: Client) -> Lease | None:
    try:
        return await client.get(Lease, REAL_SCHEDULER_LEASE)
    except NotFound:
        return None
