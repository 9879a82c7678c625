"""The controllers put together: one that fails disturbs nobody, and none runs beside the real ones."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.core import Namespace, ServiceAccount
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.cli.fleet_watch import FleetWatch
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.controller_manager import (
    CONTROLLER_MANAGER_LEASE,
    SCHEDULER_LEASE,
    add_controllers,
    real_controller_manager_runs,
    real_scheduler_runs,
    signer,
)
from applecart.embedded.server.server import running_api
from applecart.embedded.trust.pki import load_or_create_token_keys
from applecart.kube.client import Client
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from applecart.kube.runtime_metrics import kind_label
from tests.embedded.controllers.stages import api_in_memory
from tests.embedded.memory_log import MemoryLog
from tests.kube.faults import FaultyTransport
from tests.virtual_time import elapse


@pytest.fixture
def keys(tmp_path: Path) -> TokenKeys:
    return TokenKeys.load(load_or_create_token_keys(tmp_path, "tokens"))


async def test_all_of_them_run_on_the_embedded_api(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        manager = Manager(Client(running.transport(), clock))
        add_controllers(manager, b"authority", keys, ends_events=True)
        working = asyncio.create_task(manager.run())
        await manager.client.create(Namespace(metadata=ObjectMeta(name="ci")))
        await elapse(60)
        assert manager.not_ready() is None
        assert (await manager.client.get(ServiceAccount, Key("ci", "default"))).name == "default"
        assert all(
            line.endswith(b" 0.0") for line in manager.metrics.render().splitlines() if line.startswith(b"applecart_task")
        )
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_no_object_is_held_in_memory_twice(clock: Clock, keys: TokenKeys) -> None:
    """There were four caches of all Pods in `applecart up`, and one of their metadata."""
    async with running_api(MemoryLog(), clock, keys) as running:
        network = FaultyTransport(running.transport())
        manager = Manager(Client(network, clock))
        FleetWatch(manager)
        add_controllers(manager, b"authority", keys)
        working = asyncio.create_task(manager.run())
        await elapse(100)
        opened = [call for call in network.calls if ("watch", "true") in call.query]
        pods = [call for call in opened if call.path == "/api/v1/pods"]
        assert len(pods) == 1
        wholes = [call.path for call in opened if not any(name == "fieldSelector" for name, _ in call.query)]
        assert len(wholes) == len(set(wholes))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_whatever_runs_is_measured(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        manager = Manager(Client(running.transport(), clock))
        add_controllers(manager, b"authority", keys)
        working = asyncio.create_task(manager.run())
        await manager.client.create(Namespace(metadata=ObjectMeta(name="ci")))
        await elapse(1)
        page = manager.metrics.render().decode()
        for informer in manager.informers:
            assert f'applecart_informer_objects{{kind="{kind_label(informer)}",scope="{informer.scope}"}}' in page
        controllers = (
            "garbage collector",
            "namespace belongings",
            "namespace ending",
            "nodes",
            "evictions",
            "disruption budgets",
        )
        for name in (*controllers, "service-account tokens"):
            assert f'workqueue_depth{{name="{name}"}}' in page
            assert f'controller_runtime_reconcile_time_seconds_count{{controller="{name}"}}' in page
        for task in manager.tasks:
            assert f'applecart_task_restarts_total{{task="{task.name}"}} 0.0' in page
        for component in manager._recorders:
            assert f'applecart_events_total{{component="{component}",outcome="dropped"}} 0.0' in page
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_an_unexpected_exception_in_any_task_is_told_and_ends_nothing(
    clock: Clock, keys: TokenKeys, caplog: pytest.LogCaptureFixture
) -> None:
    """Silent death: a task of a group that raised took all others along, and one that returned was missed by nobody."""
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        for name in names_of_tasks(client, keys):
            manager = Manager(client)
            add_controllers(manager, b"authority", keys)
            fails_once(manager, name)
            working = asyncio.create_task(manager.run())
            await elapse(0.1)
            assert "a background task ended" in caplog.text, name
            assert "a bug of ours" in (manager.not_ready() or ""), name
            caplog.clear()
            await elapse(5)
            assert manager.not_ready() is None, name
            namespace = f"after-{random.Random(name).getrandbits(32)}"
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            await elapse(1)
            assert await client.get(ServiceAccount, Key(namespace, "default")), name
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def names_of_tasks(client: Client, keys: TokenKeys) -> list[str]:
    manager = Manager(client)
    add_controllers(manager, b"authority", keys)
    return [task.name for task in manager.tasks]


def fails_once(manager: Manager, name: str) -> None:
    (task,) = [task for task in manager.tasks if task.name == name]
    work, fails = task.work, [True]

    async def run() -> None:
        if fails:
            fails.clear()
            raise RuntimeError("a bug of ours")
        await work()

    task.work = run


async def test_all_stop_when_they_are_stopped(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        manager = Manager(Client(running.transport(), clock))
        add_controllers(manager, b"authority", keys)
        await elapse(1)  # what the API itself keeps running is there
        before = asyncio.all_tasks()
        task = asyncio.create_task(manager.run())
        await elapse(10)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await elapse(1)
        assert {other for other in asyncio.all_tasks() - before if not other.done()} == set()


async def test_a_token_that_is_signed_for_a_secret_names_its_account(keys: TokenKeys) -> None:
    token = signer(keys)("ci", "builder", "u-1", "builder-token")
    claims = keys.verified(token)
    for part in (b"system:serviceaccount:ci:builder", b"u-1", b"builder-token"):
        assert part in claims


async def test_without_keys_nobody_promises_tokens(clock: Clock, keys: TokenKeys) -> None:
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        with_keys, without = add_controllers(Manager(client), b"", keys), add_controllers(Manager(client), b"", None)
    assert set(with_keys) - set(without) == {"service-account tokens"}


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
