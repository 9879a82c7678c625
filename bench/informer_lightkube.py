"""The peer's side of the informer rows: what a lightkube user writes for the same. Prints one JSON line."""

import asyncio
import sys
import time

from lightkube import AsyncClient, KubeConfig
from lightkube.resources.core_v1 import Pod

from bench.gauge import rss_bytes, since_process_start_s
from bench.informer_side import Measured, report


def key_of(pod: Pod) -> tuple[str | None, str | None]:
    assert pod.metadata
    return pod.metadata.namespace, pod.metadata.name


async def main(kubeconfig: str, events: int) -> None:
    client = AsyncClient(KubeConfig.from_file(kubeconfig))
    await anext(aiter(client.list(Pod, namespace="*", chunk_size=1)))
    before_bytes = rss_bytes()  # with everything loaded that a first answer needs
    began = time.perf_counter()
    listing = client.list(Pod, namespace="*", chunk_size=500)
    pods = {key_of(pod): pod async for pod in listing}
    ready_s, listed_s = since_process_start_s(), time.perf_counter() - began
    first_event = 0.0
    seen = 0
    async for _, pod in client.watch(Pod, namespace="*", resource_version=listing.resourceVersion):
        pods[key_of(pod)] = pod
        seen += 1
        if seen == 1:
            first_event = time.perf_counter()
        if seen == events:
            break
    last_event = time.perf_counter()
    report(Measured(ready_s, listed_s, rss_bytes() - before_bytes, events / (last_event - first_event)))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
