"""What `applecart up` counts as waiting."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from applecart.api.crd import DEFINITIONS
from applecart.api.infrastructure import ScalewayAppleSiliconMachine, ScalewayAppleSiliconMachineStatus
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import Pod, PodStatus
from applecart.cli.fleet_watch import FleetWatch, machine_not_ready_since, pod_pending_since
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from tests.kube.embedded_api import define, serving
from tests.kube.faults import FaultyTransport, Says, always
from tests.kube.objects import pod
from tests.virtual_time import elapse

BORN = datetime(2026, 1, 1, tzinfo=UTC)
META = ObjectMeta(name="a", namespace="ci", creation_timestamp=BORN)


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    async with serving(clock) as running:
        yield running


def test_a_pending_pod_waits_since_it_was_created() -> None:
    assert pod_pending_since(Pod(metadata=META, status=PodStatus(phase="Pending"))) == BORN


def test_a_running_pod_waits_for_nothing() -> None:
    assert pod_pending_since(Pod(metadata=META, status=PodStatus(phase="Running"))) is None


def test_a_machine_waits_until_it_is_ready() -> None:
    assert machine_not_ready_since(ScalewayAppleSiliconMachine(metadata=META)) == BORN
    ready = ScalewayAppleSiliconMachine(metadata=META, status=ScalewayAppleSiliconMachineStatus(ready=True))
    assert machine_not_ready_since(ready) is None


async def test_the_age_of_the_oldest_pending_pod_is_exported_until_it_runs(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    await define(client, *DEFINITIONS)
    manager = Manager(client)
    metrics, ages = manager.metrics, manager.ages
    fleet = FleetWatch(manager)
    following = asyncio.create_task(manager.run())
    await fleet.following()
    pods = fleet.informers[1]
    stuck = await client.create(pod("ci", "stuck"))
    await pods.wait_until(lambda: bool(ages.oldest(1)))
    await elapse(timedelta(hours=2).total_seconds())
    (oldest,) = ages.oldest(1)
    assert oldest.key == Key("ci", "stuck")
    assert round(oldest.age_s) == 7200
    assert 'applecart_informer_objects{kind="pods",scope=""} 1.0' in metrics.render().decode()
    await client.patch_status(Pod, stuck.key, Merge({"status": {"phase": "Running"}}))
    await pods.wait_until(lambda: not ages.oldest(1))
    assert manager.not_ready() is None
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_kind_that_the_api_does_not_serve_is_named_by_the_readiness_page(running: RunningApi, clock: Clock) -> None:
    network = FaultyTransport(running.transport(), always(Says(403)))
    manager = Manager(Client(network, clock))
    FleetWatch(manager)
    following = asyncio.create_task(manager.run())
    await elapse(60)
    assert (manager.not_ready() or "").startswith("informer of pods: GET /api/v1/pods: ")
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
