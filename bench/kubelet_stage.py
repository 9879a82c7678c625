"""Where the agent is measured: a server in a process of its own, reached over TLS with the rights of a host, and its Node."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import SystemClock
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer
from bench.embedded_sides import Side
from tests.kubelet.real.agent_process import PROGRAM, AgentProcess
from tests.kubelet.real.apis import Admin, Api, admitted
from tests.kubelet.real.following import Followed, following

NAMESPACE = "bench"
NODE = "mac-1"
LATE_S = 60.0


@asynccontextmanager
async def api_of(side: Side, folder: Path) -> AsyncIterator[Api]:
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    admin = Admin(side.kubeconfig, side.url, side.ca.parent)
    async with admitted(admin, folder, SystemClock(), NAMESPACE, NODE) as api:
        yield api


@contextmanager
def agent_process(api: Api, folder: Path, *flags: str, program: Sequence[str] = PROGRAM) -> Iterator[AgentProcess]:
    agent = AgentProcess(folder, api.agent_kubeconfig, NODE, *flags, program=program)
    try:
        yield agent
    finally:
        agent.close()


@asynccontextmanager
async def following_pods(api: Api, agent: AgentProcess) -> AsyncIterator[Followed[Pod]]:
    async with following(api.client, Pod, agent, NAMESPACE) as pods:
        yield pods


async def until_ready(api: Api) -> None:
    """The Node says Ready; heard by a watch."""
    nodes = Informer(api.client, Node)
    task = asyncio.create_task(nodes.run())

    def is_ready() -> bool:
        node = nodes.get(Key("", NODE))
        ready = node.condition("Ready") if node is not None else None
        return ready is not None and ready.status == "True"

    try:
        async with asyncio.timeout(LATE_S):
            await nodes.wait_until(is_ready)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def forget_node(api: Api) -> None:
    with suppress(NotFound):
        await api.client.delete(Node, Key("", NODE))


def in_phase(pods: Followed[Pod], phase: str, count: int) -> Callable[[], bool]:
    return lambda: sum(pod.status.phase == phase for pod in pods.informer) == count
