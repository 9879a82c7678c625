"""The scenarios, on the API in memory and on a real one, with our scheduler and with kube-scheduler: the same outcomes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.embedded.binaries.cluster import Options
from applecart.embedded.controllers.scheduler.scheduler import Scheduler
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.connect import connect
from tests.embedded.controllers.scheduler.scenarios import SCENARIOS, Scenario
from tests.embedded.controllers.scheduler.stage import stage
from tests.embedded.controllers.stages import run_alone
from tests.kubernetes.cluster import SCHEDULER, FullCluster

OURS = "ours"
REAL = "kube-scheduler"


def name_of(scenario: Scenario) -> str:
    return scenario.__name__


@asynccontextmanager
async def our_scheduler(client: Client, clock: Clock) -> AsyncIterator[None]:
    task = asyncio.create_task(run_alone(Scheduler, client))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
async def test_in_memory_our_scheduler_plays(scenario: Scenario, running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    async with our_scheduler(client, clock), stage(client, "test") as scene:
        await scenario(scene)


@pytest.fixture(scope="module")
def cluster_of_scenarios(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    """One of its own: a scenario counts all nodes of the cluster."""
    cluster = FullCluster(kube_programs, tmp_path_factory.mktemp("scheduled"), Options(durable=False))
    asyncio.run(cluster.start())
    yield cluster
    asyncio.run(cluster.stop())


@pytest.fixture(scope="module", params=[OURS, REAL])
def scheduler(request: pytest.FixtureRequest, cluster_of_scenarios: FullCluster) -> Iterator[str]:
    """Who schedules; never both at once."""
    if request.param == REAL:
        request.getfixturevalue("words_of_the_default_minor")
        asyncio.run(cluster_of_scenarios.start_scheduler())
    yield request.param
    asyncio.run(cluster_of_scenarios.stop_program(SCHEDULER))


@pytest.mark.kubernetes
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
async def test_on_kubernetes_both_schedulers_play(
    scheduler: str, cluster_of_scenarios: FullCluster, scenario: Scenario, clock: Clock
) -> None:
    client = Client(connect(str(cluster_of_scenarios.kubeconfig), None, clock, environ={}), clock)
    who = our_scheduler(client, clock) if scheduler == OURS else nullcontext()
    try:
        async with who, stage(client, "default") as scene:
            await scenario(scene)
    finally:
        await client.aclose()
