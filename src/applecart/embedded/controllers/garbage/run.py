"""Starts the garbage collector with all that it needs."""

import asyncio

from applecart.clock import Clock
from applecart.embedded.controllers.garbage.collector import Collector
from applecart.embedded.controllers.garbage.monitors import Monitors
from applecart.kube.client import Client
from applecart.kube.discovery import Discovery
from applecart.kube.events import Recorder
from applecart.kube.informer import Tuning

COMPONENT = "garbage-collector-controller"


async def run_garbage_collector(client: Client, clock: Clock, *, tuning: Tuning | None = None) -> None:
    """Collect until cancelled."""
    recorder = Recorder(client, COMPONENT, clock)
    collector = Collector(client, recorder, clock)

    def discovered(discovery: Discovery) -> None:
        collector.owners.discovery = discovery
        collector.kinds_changed()

    monitors = Monitors(collector.client, collector.graph, collector.look_at, discovered, clock, tuning or Tuning())

    async def collect() -> None:
        # Before every kind was listed once, owners look absent and each would cost a question to the API.
        await monitors.ready()
        await collector.controller.run()

    async with asyncio.TaskGroup() as group:
        for work in (monitors.run(), recorder.run(), collect()):
            group.create_task(work)
