"""Our side of the informer rows: list into the cache, then follow the changes. Prints one JSON line."""

import asyncio
import sys
import time
from contextlib import aclosing

from applecart.api.pods import Pod
from applecart.clock import SystemClock
from applecart.kube.cache import Change
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.informer import Informer
from bench.gauge import rss_bytes, since_process_start_s
from bench.informer_side import Measured, report


async def main(kubeconfig: str, events: int) -> None:
    clock = SystemClock()
    client = Client(connect(kubeconfig, None, clock), clock)
    async with aclosing(client.pages(Pod, page_size=1)) as pages:
        await anext(pages)
    before_bytes = rss_bytes()  # with everything loaded that a first answer needs
    informer = Informer(client, Pod, indexes={"node": lambda pod: (pod.spec.node_name,)})
    began = time.perf_counter()
    first_event = last_event = 0.0
    seen = 0

    def count(change: Change[Pod]) -> None:
        nonlocal seen, first_event, last_event
        if change.old is not None:
            seen += 1
            if seen == 1:
                first_event = time.perf_counter()
            if seen == events:
                last_event = time.perf_counter()

    informer.on_change(count)
    following = asyncio.create_task(informer.run())
    await informer.synced()
    ready_s, listed_s = since_process_start_s(), time.perf_counter() - began
    await informer.wait_until(lambda: seen >= events)
    report(Measured(ready_s, listed_s, rss_bytes() - before_bytes, events / (last_event - first_event)))
    following.cancel()
    await client.aclose()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
