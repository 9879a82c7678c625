"""An account's cache over two jobs on one host, with the whole agent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from applecart.api import labels, names
from applecart.api.containers import Container, EnvVar
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node
from applecart.api.pods import SUCCEEDED, Pod, PodSpec
from applecart.clock import Clock
from applecart.kube.patch import Merge
from applecart.kubelet.cache import walk
from tests.kubelet.world import IMAGE, NAMESPACE, NODE, World, world

ACCOUNT = "42"
GIB = 1 << 30


def job(name: str) -> Pod:
    env = (EnvVar(name="APPLECART_SIM_RUN_SECONDS", value="120"), EnvVar(name="APPLECART_SIM_EXIT_CODE", value="0"))
    container = Container(name="runner", image=IMAGE, env=env)
    return Pod(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=PodSpec(containers=(container,), node_name=NODE))


async def run_one(here: World, name: str, generation: int) -> str:
    """A job that is committed for the account, fills its cache and offers it; how it found the cache."""
    await here.create(job(name))
    await here.until_phase(name, "Running")
    key = Key(NAMESPACE, name)
    await here.client.patch(Pod, key, Merge({"metadata": {"labels": {labels.RUNNER_ACCOUNT: ACCOUNT}}}))
    status = here.folder / "userdata" / names.pod_vm(NAMESPACE, name) / "status"
    async with asyncio.timeout(60):  # what a guest waits at most
        while not (status / "cache-ready").exists():  # noqa: ASYNC110 (as a guest does)
            await asyncio.sleep(1)
    found = (status / "cache-base-generation").read_text()
    (status / "cache-dirty").write_text("1")
    (status / "cache-promote-result").write_text(f"accepted {generation}")
    await here.until_phase(name, SUCCEEDED)
    await here.client.delete(Pod, key)
    await here.until_gone(name)
    return found.strip()


async def test_a_second_job_begins_with_what_the_first_one_left(tmp_path: Path, clock: Clock) -> None:
    root = tmp_path / "caches"
    async with world(tmp_path, clock, f"--runner-cache-root={root}", "--cache-volume-cap-gib=20") as here:
        here.mac.cache.mount(root, 80 * GIB)
        here.start_agent()
        assert await run_one(here, "job-1", 1) == "0"
        assert await run_one(here, "job-2", 2) == "1"
        label = names.cache_master_label(int(ACCOUNT))
        async with asyncio.timeout(60):
            while label not in (await here.client.get(Node, Key("", NODE))).labels:  # noqa: ASYNC110
                await asyncio.sleep(1)


async def test_a_root_that_is_not_mounted_costs_the_cache_and_never_the_job(tmp_path: Path, clock: Clock) -> None:
    """Incident 51: an unmounted root was written to the boot disk; now the VM starts cold and its Pod says why."""
    root = tmp_path / "caches"
    async with world(tmp_path, clock, f"--runner-cache-root={root}") as here:
        here.start_agent()
        await here.create(job("job-1"))
        await here.until_phase("job-1", SUCCEEDED)
        events = await here.events("job-1")
        assert [event.message for event in events if event.reason == "CacheVolumeSkipped"] == [
            f"cache volume not attached: the disk for caches is not mounted at {root}"
        ]


async def test_a_pod_goes_although_what_its_guest_left_takes_for_ever_to_look_through(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: its finalizer stayed for as long as its guest had made the look through its image last."""

    async def to_thread(*_: Any) -> None:
        await asyncio.sleep(10.0**7)

    monkeypatch.setattr(walk, "to_thread", to_thread)
    root = tmp_path / "caches"
    async with world(tmp_path, clock, f"--runner-cache-root={root}", "--cache-volume-cas-gib=8") as here:
        here.mac.cache.mount(root, 80 * GIB)
        here.start_agent()
        began_s = clock.monotonic()
        await run_one(here, "job-1", 1)
        assert clock.monotonic() - began_s < 600
