"""The controllers put together: one that fails disturbs nobody, and none runs beside the real ones."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.core import Namespace, ServiceAccount
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.registry import (
    CONTROLLER_MANAGER_LEASE,
    PACE,
    SCHEDULER_LEASE,
    TOKENS,
    WELL_AFTER_S,
    Small,
    SmallControllers,
    keep_running,
    real_controller_manager_runs,
    real_scheduler_runs,
    signer,
    small_controllers,
)
from applecart.embedded.server.server import running_api
from applecart.embedded.store.log import MemoryLog
from applecart.embedded.trust.pki import load_or_create_token_keys
from applecart.errors import ControlPlaneFault
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from tests.embedded.controllers.stages import CA_PEM, api_in_memory
from tests.virtual_time import elapse


class Failing:
    """Lives for a while, then fails."""

    def __init__(self, clock: Clock, lives_s: float, error: Exception | None = None) -> None:
        self.started_at_s: list[float] = []
        self._clock = clock
        self._lives_s = lives_s
        self._error = error

    async def run(self) -> None:
        self.started_at_s.append(self._clock.monotonic())
        await elapse(self._lives_s)
        if self._error is not None:
            raise self._error

    @property
    def pauses_s(self) -> list[float]:
        return [
            later - earlier - self._lives_s for earlier, later in zip(self.started_at_s, self.started_at_s[1:], strict=False)
        ]


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("error", [ControlPlaneFault("the API is away"), ValueError("a bug"), None], ids=["ours", "bug", "end"])
async def test_one_that_ends_is_started_again_ever_later(clock: Clock, error: Exception | None) -> None:
    failing = Failing(clock, 1.0, error)
    task = asyncio.create_task(keep_running(Small("failing", failing.run), clock))
    await elapse(1000)
    await stop(task)
    pauses_s = failing.pauses_s
    assert len(pauses_s) > 10
    assert pauses_s[0] <= PACE.first_s
    assert all(PACE.longest_s / 2 <= pause_s <= PACE.longest_s for pause_s in pauses_s[8:])


async def test_one_that_ran_well_for_long_is_started_again_soon(clock: Clock) -> None:
    failing = Failing(clock, WELL_AFTER_S + 1, ValueError("a bug"))
    task = asyncio.create_task(keep_running(Small("failing", failing.run), clock))
    await elapse(20 * WELL_AFTER_S)
    await stop(task)
    assert len(failing.pauses_s) > 10
    assert all(pause_s <= PACE.first_s for pause_s in failing.pauses_s)


async def test_its_end_is_told(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(keep_running(Small("failing", Failing(clock, 1.0, ValueError("a bug")).run), clock))
    with caplog.at_level(logging.ERROR):
        await elapse(1.1)
    await stop(task)
    assert [record.getMessage() for record in caplog.records] == ["a controller ended, starting it again"]


async def test_the_others_do_not_notice(clock: Clock) -> None:
    failing, well = Failing(clock, 1.0, ValueError("a bug")), Failing(clock, 10_000.0)
    async with api_in_memory(clock) as (client, sign):
        controllers = SmallControllers(
            client, clock, CA_PEM, sign, more=[Small("failing", failing.run), Small("well", well.run)]
        )
        names = [controller.name for controller in controllers.controllers]
        assert names == [
            "garbage collector",
            "disruption budgets",
            "namespaces",
            "service-account tokens",
            "failing",
            "well",
            "scheduler",
        ]
        task = asyncio.create_task(controllers.run())
        await elapse(500)
        await stop(task)
    assert len(failing.started_at_s) > 5
    assert len(well.started_at_s) == 1


async def test_all_stop_when_they_are_stopped(clock: Clock) -> None:
    async with api_in_memory(clock) as (client, sign):
        task = asyncio.create_task(SmallControllers(client, clock, CA_PEM, sign).run())
        before = asyncio.all_tasks()
        await elapse(10)
        await stop(task)
        assert task.cancelled()
        await elapse(1)
        assert {other for other in asyncio.all_tasks() - before if not other.done()} == set()


@pytest.fixture
def keys(tmp_path: Path) -> TokenKeys:
    return TokenKeys.load(load_or_create_token_keys(tmp_path, "tokens"))


async def test_all_of_them_run_on_the_embedded_api(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        small = small_controllers(client, clock, b"authority", keys, ends_events=True)
        working = asyncio.create_task(small.run())
        await client.create(Namespace(metadata=ObjectMeta(name="ci")))
        await asyncio.sleep(60)
        assert not working.done()
        assert (await client.get(ServiceAccount, Key("ci", "default"))).name == "default"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_token_that_is_signed_for_a_secret_names_its_account(keys: TokenKeys) -> None:
    token = signer(keys)("ci", "builder", "u-1", "builder-token", "u-2")
    claims = keys.verified(token)
    for part in (b"system:serviceaccount:ci:builder", b"u-1", b"builder-token"):
        assert part in claims


async def test_without_keys_nobody_promises_tokens(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        with_keys = {one.name for one in small_controllers(client, clock, b"", keys).controllers}
        without = {one.name for one in small_controllers(client, clock, b"", None).controllers}
    assert with_keys - without == {TOKENS}


@pytest.fixture
async def client(clock: Clock) -> AsyncIterator[Client]:
    async with api_in_memory(clock) as (connected, _):
        yield connected


async def hold(client: Client, renewed_at: datetime | None, holder: str = "node-1_abc") -> None:
    spec = LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=15,
        renew_time=micro_time(renewed_at) if renewed_at is not None else None,
    )
    namespace, name = SCHEDULER_LEASE
    await client.create(Lease(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec))


async def renew(client: Client, at: datetime) -> None:
    await client.patch(Lease, Key(*SCHEDULER_LEASE), Merge({"spec": {"renewTime": micro_time(at)}}))


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
    await client.delete(Lease, Key(*SCHEDULER_LEASE))
    assert not await asked


async def test_a_controller_manager_is_seen_by_its_own_lease(client: Client, clock: Clock) -> None:
    await hold(client, clock.now())
    assert not await real_controller_manager_runs(client)
    await client.create(
        Lease(
            metadata=ObjectMeta(name=CONTROLLER_MANAGER_LEASE.name, namespace=CONTROLLER_MANAGER_LEASE.namespace),
            spec=LeaseSpec(holder_identity="node-1_abc", lease_duration_seconds=15, renew_time=micro_time(clock.now())),
        )
    )
    assert await real_controller_manager_runs(client)
