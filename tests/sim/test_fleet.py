"""A simulated Mac with the real agent on it: what survives a killed agent, and what a power cut takes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from applecart.api.containers import Container
from applecart.api.core import ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node
from applecart.api.pods import Pod, PodSpec
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.sim.fleet import CALLS_KEPT, FleetMac, options_in
from tests.kube.embedded_api import serving

NAMESPACE = "ci"
WITHIN_S = 300.0
FAULTS = '{"faults": [{"on": "%s", "kind": "kill-agent", "when": "%s"}]}'


@asynccontextmanager
async def an_api(clock: Clock) -> AsyncIterator[tuple[RunningApi, Client]]:
    async with serving(clock, (NAMESPACE,)) as api:
        client = Client(api.transport(), clock)
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=NAMESPACE)))
        yield api, client


@asynccontextmanager
async def powered(mac: FleetMac) -> AsyncIterator[FleetMac]:
    running = asyncio.create_task(mac.run())
    try:
        yield mac
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def pod_on(node: str, name: str = "job") -> Pod:
    container = Container(name="runner", image="ghcr.io/acme/runner:1")
    return Pod(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=PodSpec(containers=(container,), node_name=node, restart_policy="Never"),
    )


async def until(client: Client, name: str, holds: Callable[[Pod], bool]) -> Pod:
    async with asyncio.timeout(WITHIN_S):
        while not holds(pod := await client.get(Pod, Key(NAMESPACE, name))):  # noqa: ASYNC110 (as a person does)
            await asyncio.sleep(0.5)
    return pod


def runs(pod: Pod) -> bool:
    return pod.status.phase == "Running"


@pytest.mark.parametrize(("verb", "when"), [("clone", "before"), ("clone", "after"), ("pull", "before")])
async def test_an_agent_that_is_killed_is_started_again_and_boots_its_pod_once(
    verb: str, when: str, tmp_path: Path, clock: Clock
) -> None:
    async with an_api(clock) as (api, client):
        mac = FleetMac(tmp_path, "mac-1", Client(api.transport(), clock), clock)
        (mac.mac.home / "faults.json").write_text(FAULTS % (verb, when))
        async with powered(mac):
            await client.create(pod_on("mac-1"))
            await until(client, "job", runs)
            assert len(mac.mac.boots) == 1


async def test_guests_of_a_process_that_ended_are_told_as_lost_by_the_next_one(tmp_path: Path, clock: Clock) -> None:
    async with an_api(clock) as (api, client):
        for start in (1, 2):
            mac = FleetMac(tmp_path, "mac-1", Client(api.transport(), clock), clock)
            async with powered(mac):
                if start == 1:
                    await client.create(pod_on("mac-1"))
                    await until(client, "job", runs)
                    continue
                pod = await until(client, "job", lambda found: found.is_terminal)
                state = pod.status.container_statuses[0].state
                assert pod.status.phase == "Failed"
                assert state is not None
                assert state.terminated is not None
                assert "how its job went is unknown" in state.terminated.message
                assert len(mac.mac.boots) == 1, "a used disk never boots again"


async def test_an_agent_that_cannot_start_ends_nobody_else_and_comes_when_it_can(tmp_path: Path, clock: Clock) -> None:
    async with an_api(clock) as (api, client):
        broken = FleetMac(tmp_path / "1", "mac-1", Client(api.transport(), clock), clock)
        sound = FleetMac(tmp_path / "2", "mac-2", Client(api.transport(), clock), clock)
        (tmp_path / "1" / "state").touch()  # where a folder should be
        async with powered(broken), powered(sound):
            await client.create(pod_on("mac-2"))
            await until(client, "job", runs)
            with pytest.raises(NotFound):
                await client.get(Node, Key("", "mac-1"))
            (tmp_path / "1" / "state").unlink()
            await client.create(pod_on("mac-1", "later"))
            await until(client, "later", runs)


async def test_it_is_registered_only_by_an_agent_that_runs_now(tmp_path: Path, clock: Clock) -> None:
    async with an_api(clock) as (api, _):
        mac = FleetMac(tmp_path, "mac-1", Client(api.transport(), clock), clock)
        assert not mac.is_registered
        async with powered(mac), asyncio.timeout(WITHIN_S):
            while not mac.is_registered:  # noqa: ASYNC110 (as a person does)
                await asyncio.sleep(0.5)
        assert not mac.is_registered
        assert mac.page.ready["agent"]() == "the agent has not registered its Node yet"


async def test_a_mac_that_runs_for_days_forgets_its_oldest_calls(tmp_path: Path, clock: Clock) -> None:
    async with an_api(clock) as (api, _):
        mac = FleetMac(tmp_path, "mac-1", Client(api.transport(), clock), clock)
        for _ in range(3 * CALLS_KEPT):
            await mac.mac.processes()
        assert CALLS_KEPT <= len(mac.mac.calls) <= 2 * CALLS_KEPT + 1


def test_everything_of_a_mac_is_in_its_folder(tmp_path: Path) -> None:
    options = options_in(tmp_path, "mac-1")
    for folder in (options.state_dir, options.userdata_dir, options.vm_log_dir, options.tart_home):
        assert folder.parent == tmp_path
    assert options.vnc_control_dir is None
    assert options.runner_cache_root is None


def test_a_folder_that_guests_could_not_share_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--userdata-dir .* name another one"):
        options_in(tmp_path / "a:b", "mac-1")
