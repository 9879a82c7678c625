"""Whether a real scheduler is at work."""

import asyncio
from datetime import datetime, timedelta

import pytest

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.clock import Clock
from applecart.embedded.controllers.scheduler.run import REAL_SCHEDULER_LEASE, real_scheduler_runs
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from tests.virtual_time import elapse


@pytest.fixture
async def client(running: RunningApi, clock: Clock) -> Client:
    return Client(running.transport(), clock)


async def hold(client: Client, renewed_at: datetime | None, holder: str = "node-1_abc") -> None:
    spec = LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=15,
        renew_time=micro_time(renewed_at) if renewed_at is not None else None,
    )
    namespace, name = REAL_SCHEDULER_LEASE
    await client.create(Lease(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec))


async def renew(client: Client, at: datetime) -> None:
    await client.patch(Lease, Key(*REAL_SCHEDULER_LEASE), Merge({"spec": {"renewTime": micro_time(at)}}))


async def test_without_a_lease_nobody_runs(client: Client) -> None:
    assert not await real_scheduler_runs(client)


async def test_a_lease_that_was_given_back_means_nobody_runs(client: Client, clock: Clock) -> None:
    await hold(client, clock.now(), holder="")
    assert not await real_scheduler_runs(client)


async def test_a_lease_that_was_never_renewed_means_nobody_runs(client: Client) -> None:
    await hold(client, None)
    assert not await real_scheduler_runs(client)


async def test_a_fresh_lease_is_believed_at_once(client: Client, clock: Clock) -> None:
    await hold(client, clock.now() - timedelta(seconds=3))
    before_s = clock.monotonic()
    assert await real_scheduler_runs(client)
    assert clock.monotonic() == before_s


@pytest.mark.parametrize("age", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_lease_that_nobody_renews_for_a_whole_term_is_dead(client: Client, clock: Clock, age: timedelta) -> None:
    await hold(client, clock.now() - age)
    assert not await real_scheduler_runs(client)
    assert clock.monotonic() >= 15.0


@pytest.mark.parametrize("skew", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_holder_whose_clock_is_wrong_is_seen_by_its_renewals(client: Client, clock: Clock, skew: timedelta) -> None:
    await hold(client, clock.now() + skew)
    asked = asyncio.create_task(real_scheduler_runs(client))
    await elapse(5)
    await renew(client, clock.now() + skew)
    assert await asked


async def test_a_lease_that_goes_while_we_look_means_nobody_runs(client: Client, clock: Clock) -> None:
    await hold(client, clock.now() - timedelta(hours=1))
    asked = asyncio.create_task(real_scheduler_runs(client))
    await elapse(5)
    await client.delete(Lease, Key(*REAL_SCHEDULER_LEASE))
    assert not await asked
