"""Whether a real controller manager is at work."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import ObjectMeta, micro_time
from applecart.clock import Clock
from applecart.embedded.controllers.real_ones import CONTROLLER_MANAGER_LEASE, real_controller_manager_runs
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from tests.embedded.controllers.stages import api_in_memory
from tests.virtual_time import elapse

TERM_S = 15


@pytest.fixture
async def client(clock: Clock) -> AsyncIterator[Client]:
    async with api_in_memory(clock) as (connected, _):
        yield connected


async def hold(client: Client, renewed_at: datetime | None, holder: str = "node-1_abc") -> None:
    namespace, name = CONTROLLER_MANAGER_LEASE
    spec = LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=TERM_S,
        renew_time=micro_time(renewed_at) if renewed_at is not None else None,
    )
    await client.create(Lease(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec))


async def test_without_a_lease_nobody_runs(client: Client) -> None:
    assert not await real_controller_manager_runs(client)


async def test_a_lease_that_was_never_renewed_means_nobody_runs(client: Client) -> None:
    await hold(client, None)
    assert not await real_controller_manager_runs(client)


async def test_a_fresh_lease_is_believed_at_once(client: Client, clock: Clock) -> None:
    await hold(client, clock.now() - timedelta(seconds=3))
    before_s = clock.monotonic()
    assert await real_controller_manager_runs(client)
    assert clock.monotonic() == before_s


@pytest.mark.parametrize("age", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_lease_that_nobody_renews_for_a_whole_term_is_dead(client: Client, clock: Clock, age: timedelta) -> None:
    await hold(client, clock.now() - age)
    assert not await real_controller_manager_runs(client)
    assert clock.monotonic() >= TERM_S


@pytest.mark.parametrize("skew", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_holder_whose_clock_is_wrong_is_seen_by_its_renewals(client: Client, clock: Clock, skew: timedelta) -> None:
    await hold(client, clock.now() + skew)
    asked = asyncio.create_task(real_controller_manager_runs(client))
    await elapse(5)
    await client.patch(Lease, CONTROLLER_MANAGER_LEASE, Merge({"spec": {"renewTime": micro_time(clock.now() + skew)}}))
    assert await asked


async def test_a_lease_that_goes_while_we_look_means_nobody_runs(client: Client, clock: Clock) -> None:
    await hold(client, clock.now() - timedelta(hours=1))
    asked = asyncio.create_task(real_controller_manager_runs(client))
    await elapse(5)
    await client.delete(Lease, CONTROLLER_MANAGER_LEASE)
    assert not await asked
