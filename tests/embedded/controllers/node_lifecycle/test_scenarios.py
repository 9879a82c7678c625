"""The scenarios on the embedded API in memory, and on a real one with ours and with kube-controller-manager."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.embedded.binaries.cluster import Options
from applecart.embedded.controllers.node_lifecycle.heartbeats import Timing
from applecart.embedded.controllers.node_lifecycle.monitor import add_node_lifecycle
from applecart.kube.client import Client
from applecart.kube.connect import connect
from tests.embedded.controllers.node_lifecycle.conftest import World
from tests.embedded.controllers.node_lifecycle.fleet import Fleet
from tests.embedded.controllers.node_lifecycle.scenarios import SCENARIOS, Scenario
from tests.embedded.controllers.stages import run_alone
from tests.kubernetes.cluster import CONTROLLER_MANAGER, FullCluster

OURS = "ours"
REAL = "kube-controller-manager"
WITHIN_S = 40.0
QUICK = Timing(look_every_s=0.5, grace_s=5.0, startup_grace_s=6.0, nodes_per_s=5.0, slow_nodes_per_s=5.0)
QUICK_FLAGS = (
    f"--node-monitor-period={QUICK.look_every_s:g}s",
    f"--node-monitor-grace-period={QUICK.grace_s:g}s",
    f"--node-startup-grace-period={QUICK.startup_grace_s:g}s",
    f"--node-eviction-rate={QUICK.nodes_per_s:g}",
)


def name_of(scenario: Scenario) -> str:
    return scenario.__name__


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
async def test_in_memory_ours_plays(scenario: Scenario, world: World) -> None:
    await scenario(world.fleet)


@asynccontextmanager
async def our_lifecycle(client: Client, clock: Clock) -> AsyncIterator[None]:
    task = asyncio.create_task(run_alone(add_node_lifecycle, client, QUICK))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture(scope="module")
def cluster_of_scenarios(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    """One of its own: a scenario judges by all nodes of the cluster."""
    cluster = FullCluster(kube_programs, tmp_path_factory.mktemp("lifecycle"), Options(durable=False))
    asyncio.run(cluster.start())
    yield cluster
    asyncio.run(cluster.stop())


@pytest.fixture(scope="module", params=[OURS, REAL])
def lifecycle(request: pytest.FixtureRequest, cluster_of_scenarios: FullCluster) -> Iterator[str]:
    """Who keeps the nodes; never both at once."""
    if request.param == REAL:
        asyncio.run(cluster_of_scenarios.start_controller_manager(*QUICK_FLAGS))
    yield request.param
    asyncio.run(cluster_of_scenarios.stop_program(CONTROLLER_MANAGER))


@pytest.mark.kubernetes
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
async def test_on_kubernetes_both_play(
    lifecycle: str, cluster_of_scenarios: FullCluster, scenario: Scenario, clock: Clock
) -> None:
    client = Client(connect(str(cluster_of_scenarios.kubeconfig), None, clock, environ={}), clock)
    who = our_lifecycle(client, clock) if lifecycle == OURS else nullcontext()
    try:
        async with who, Fleet(client, client, clock, "default", QUICK, WITHIN_S) as fleet:
            await scenario(fleet)
    finally:
        await client.aclose()
