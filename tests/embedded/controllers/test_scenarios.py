"""The scenarios of the controllers: on the API in memory and on a real one, with ours and with kube-controller-manager.

The outcomes must be the same everywhere.
"""

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.binaries.cluster import Options
from applecart.kube.client import Client
from applecart.kube.connect import connect
from tests.embedded.controllers import budget_scenarios as of_budgets
from tests.embedded.controllers import token_scenarios as of_tokens
from tests.embedded.controllers.garbage import scenarios as of_garbage
from tests.embedded.controllers.namespaces import scenarios as of_namespaces
from tests.embedded.controllers.scene import Scenario, scene
from tests.embedded.controllers.stages import CA_PEM, api_in_memory, our_controllers
from tests.kubernetes.cluster import FullCluster

OURS = "ours"
REAL = "kube-controller-manager"
SCENARIOS = [*of_budgets.SCENARIOS, *of_garbage.SCENARIOS, *of_namespaces.SCENARIOS, *of_tokens.SCENARIOS]


def name_of(scenario: Scenario) -> str:
    return scenario.__name__


def namespace_of(scenario: Scenario) -> str:
    return scenario.__name__.replace("_", "-")[:50].strip("-")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
async def test_in_memory_our_controllers_play(scenario: Scenario, clock: Clock) -> None:
    async with (
        api_in_memory(clock) as (client, keys),
        our_controllers(client, CA_PEM, keys),
        scene(client, namespace_of(scenario), CA_PEM) as stage,
    ):
        await scenario(stage)


@pytest.fixture(scope="module", params=[OURS, REAL])
def cluster(
    request: pytest.FixtureRequest, kube_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, FullCluster]]:
    """One for ours and one for the real controllers: never both on the same."""
    options = Options(durable=False, with_controller_manager=request.param == REAL)
    made = FullCluster(kube_programs, tmp_path_factory.mktemp("controlled"), options)
    asyncio.run(made.start())
    try:
        if request.param == REAL:
            asyncio.run(made.start_controller_manager())
        yield request.param, made
    finally:
        asyncio.run(made.stop())


@pytest.mark.kubernetes
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
async def test_on_kubernetes_both_play(cluster: tuple[str, FullCluster], scenario: Scenario, clock: Clock) -> None:
    who, real = cluster
    client = Client(connect(str(real.kubeconfig), None, clock, environ={}), clock)
    keys = TokenKeys.load(real.files.trust.token_keys)
    working = our_controllers(client, real.ca_pem, keys) if who == OURS else nullcontext()
    try:
        async with working, scene(client, namespace_of(scenario), real.ca_pem) as stage:
            await scenario(stage)
    finally:
        await client.aclose()
