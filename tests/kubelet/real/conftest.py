"""The two APIs that the agent's process runs on, and the agent itself."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from applecart.clock import Clock
from tests.kubelet.real.agent_process import AgentProcess
from tests.kubelet.real.apis import Api, embedded_api, real_api
from tests.kubernetes.cluster import FullCluster

NODE = "mac-1"
NAMESPACE = "ci"

StartsAgents = Callable[..., AgentProcess]


@pytest.fixture
async def embedded(tmp_path: Path, clock: Clock) -> AsyncIterator[Api]:
    async with embedded_api(tmp_path, clock, NAMESPACE, NODE) as api:
        yield api


@pytest.fixture
async def real(real_cluster: FullCluster, namespace: str, tmp_path: Path, clock: Clock) -> AsyncIterator[Api]:
    """The node is named like the test's own namespace: Nodes belong to nobody else's test."""
    async with real_api(real_cluster, tmp_path, clock, namespace, namespace) as api:
        yield api


@pytest.fixture
def agent_of(tmp_path: Path) -> Iterator[StartsAgents]:
    """Makes the agent of an API's node; whatever it started is ended with the test."""
    made: list[AgentProcess] = []

    def make(api: Api, *flags: str, **options: object) -> AgentProcess:
        agent = AgentProcess(tmp_path / "host", api.agent_kubeconfig, api.node, *flags, **options)  # type: ignore[arg-type]
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.close()
