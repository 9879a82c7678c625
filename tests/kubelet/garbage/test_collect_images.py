"""Goldens and images under the collector: kept while wanted or fresh, least recently used first when the disk is short."""

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.names import golden_vm
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kube.client import Client
from applecart.kubelet.garbage.collect import EVERY_S
from applecart.sim.mac import SimulatedMac
from applecart.tart.mac import Process
from applecart.tart.marks import GoldenMark
from applecart.tart.partials import partial_name
from tests.kube.embedded_api import serving
from tests.kubelet.agents import IMAGE, fault
from tests.kubelet.garbage.hosts import DAY, CollectingHost, bind, pod_vms, pods_of, run_vm
from tests.virtual_time import elapse

# Goldens and images


async def test_a_golden_and_its_image_go_a_day_after_their_last_use(host: CollectingHost) -> None:
    old = await host.make_golden("ghcr.io/acme/macos:14", DAY)
    new = await host.make_golden(IMAGE)
    await host.collector.collect()
    assert host.mac.vms() == [new]
    assert [image.tags for image in host.home.images()] == [("15",)]
    assert sorted(host.counted) == ["golden", "image"]
    assert old not in host.mac.vms()


async def test_a_golden_that_was_booted_by_hand_is_not_deleted_under_it(host: CollectingHost, tmp_path: Path) -> None:
    """Incident 25: a golden booted for a benchmark was past its retention."""
    old = await host.make_golden("ghcr.io/acme/macos:14", DAY)
    await host.make_golden(IMAGE)
    await run_vm(host, old, tmp_path)
    await host.collector.collect()
    assert old in host.mac.vms()


async def test_when_processes_cannot_be_listed_nothing_is_deleted(
    host: CollectingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Incident 25: not knowing counts as running."""
    await host.make_pod_vm("uid")
    await host.make_golden("ghcr.io/acme/macos:14", DAY)

    async def fails() -> list[Process]:
        raise Unreachable("ps cannot be run")

    monkeypatch.setattr(host.mac, "processes", fails)
    await host.collector.collect()
    host.mac.fill_disk(10**9)
    await host.collector.reclaim("a test")
    assert host.tart_calls("delete") == []


async def test_the_golden_of_a_tag_pod_survives_any_number_of_passes(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    """Incident 23: the Pod said a tag, the listing a digest, and the image of a living Pod went at every pass."""
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        await bind(client, "job")
        vm = await host.make_golden(IMAGE, DAY)
        await host.make_golden("ghcr.io/acme/other:1")
        for _ in range(12):
            await host.collector.collect()
            await elapse(EVERY_S)
    assert vm in mac.vms()
    assert len(host.home.images()) == 2
    mark = host.home.mark(vm)
    assert isinstance(mark, GoldenMark)
    assert clock.now() - mark.used_at < timedelta(hours=2)


async def test_an_image_with_two_tags_is_deleted_by_one_command(host: CollectingHost) -> None:
    """Weakness 25: a delete per listed row made every second one fail."""
    vm = await host.make_golden(IMAGE)
    host.mac.registry.move("ghcr.io/acme/macos:16", _digest(host, vm).partition("@")[2])
    await host.goldens.ensure("ghcr.io/acme/macos:16")
    await host.make_golden("ghcr.io/acme/other:1")
    host.set_used(vm, _mark(host, vm), host.clock.now() - DAY)
    await host.collector.collect()
    assert len(host.tart_calls("delete")) == 2
    assert [image.repository for image in host.home.images()] == ["ghcr.io/acme/other"]


async def test_an_image_whose_pull_ends_during_a_pass_stays_ours(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    """What the ledger forgets is somebody else's for ever: such images filled the disk."""
    host: CollectingHost
    other = "ghcr.io/acme/other:1"

    async def pods() -> Sequence[Pod]:
        if other not in host.goldens.images_here():  # the answer of the API takes a while, in which a pull ends
            await host.goldens.ensure(other)
        return ()

    host = CollectingHost(mac, clock, tmp_path, pods)
    await host.make_golden(IMAGE)
    await host.collector.collect()
    digests = {image.name for image in host.home.images()}
    assert len(digests) == 2
    assert host.goldens.ledger.pulled() == digests


async def test_an_image_that_is_wanted_while_it_is_deleted_is_pulled_again_by_us(host: CollectingHost) -> None:
    """Tart would have fetched it for the clone by itself: without a login, and without anybody who watches it."""
    vm = await host.make_golden(IMAGE)
    digest = _digest(host, vm)
    await host.tart.delete(vm)
    fault(host.mac, on="delete", kind="slow", seconds=60, vm=digest, times=1)
    host.mac.calls.clear()
    collecting = asyncio.create_task(host.collector.collect())
    await elapse(30)
    golden = await host.goldens.ensure(digest)
    assert collecting.done()
    assert golden.was_made
    assert host.tart_calls("delete", "pull", "clone") == [f"delete {digest}", f"pull {digest}", f"clone {digest} {vm}"]


async def test_an_image_that_a_tag_leads_to_while_it_is_deleted_is_pulled_again_by_us(host: CollectingHost) -> None:
    vm = await host.make_golden(IMAGE)
    digest = _digest(host, vm)
    await host.tart.delete(vm)
    fault(host.mac, on="delete", kind="slow", seconds=60, vm=digest, times=1)
    host.mac.calls.clear()
    collecting = asyncio.create_task(host.collector.collect())
    await elapse(30)
    assert (await host.goldens.ensure(IMAGE, policy="Always")).was_made
    assert collecting.done()
    assert host.tart_calls("clone") == [f"clone {digest} {vm}"]
    assert host.tart_calls("pull")[-1] == f"pull {IMAGE}"
    assert len(host.tart_calls("pull")) == 2  # the first found the image that was about to go


# A short disk


async def test_a_disk_full_of_goldens_is_relieved_step_by_step_and_no_further(host: CollectingHost) -> None:
    """Incident 30: goldens of old images, each pinned for a day, filled the disk until nothing could be written to the host.

    Incident 31: a golden gave nothing back while its image held the same blocks, and a list read once could take the last one.
    """
    goldens = [await host.make_golden(f"ghcr.io/acme/macos:{tag}", timedelta(hours=4 * tag)) for tag in range(5)]
    host.mac.fill_disk(10 * 10**9)  # 2 % of 494 GB; each golden shares 40 GB with its image
    host.mac.calls.clear()
    await host.collector.collect()
    free = host.mac.disk(host.mac.home).free_percent
    assert 15 <= free < 25
    assert host.mac.vms() == sorted(goldens[:3])  # the two least recently used are gone
    deletes = host.tart_calls("delete")
    assert [delete.partition("@")[1] for delete in deletes] == ["@"] * 5 + [""] * 2


async def test_one_golden_stays_on_a_disk_that_cannot_be_relieved(host: CollectingHost) -> None:
    """Incident 31: a list that was read once let the last golden go too."""
    goldens = [await host.make_golden(f"ghcr.io/acme/macos:{tag}", timedelta(hours=4 * tag)) for tag in range(3)]
    host.mac.fill_disk(-(10**12))
    await host.collector.collect()
    assert host.mac.vms() == [goldens[0]]


async def test_a_disk_too_full_to_write_anything_is_still_relieved(
    host: CollectingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    await host.make_pod_vm("uid")
    for tag in range(3):
        await host.make_golden(f"ghcr.io/acme/macos:{tag}")
    host.mac.fill_disk(0)

    def full(path: Path, data: bytes, mode: int = 0) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host.files, "write", full)
    await host.collector.collect()
    assert host.mac.disk(host.mac.home).free_percent >= 15
    assert pod_vms(host) == []


async def test_a_disk_with_room_is_left_alone(host: CollectingHost) -> None:
    for tag in range(3):
        await host.make_golden(f"ghcr.io/acme/macos:{tag}")
    host.mac.fill_disk(int(0.16 * 494 * 10**9))
    await host.collector.collect()
    assert host.tart_calls("delete") == []


async def test_a_pull_without_room_gets_it_and_succeeds(host: CollectingHost) -> None:
    for tag in range(3):
        await host.make_golden(f"ghcr.io/acme/macos:{tag}")
    host.mac.fill_disk(10**9)
    golden = await host.goldens.ensure(IMAGE)
    assert golden.was_made
    assert len(host.tart_calls("pull")) == 5
    assert host.collector.deleted["golden"] >= 2


@pytest.mark.parametrize("later_s", [0, 2 * 3600])
async def test_a_pull_without_room_gets_that_of_a_pull_nobody_wants_any_more(host: CollectingHost, later_s: int) -> None:
    """Half an image was kept for an hour, or a day, while the next pull found no room for itself."""
    await _half_pull(host, "ghcr.io/acme/macos:14")
    host.mac.fill_disk(30 * 10**9)
    await elapse(later_s)
    assert (await host.goldens.ensure(IMAGE)).was_made


async def test_what_a_pod_on_this_host_waits_for_is_not_thrown_away_half_fetched(
    mac: SimulatedMac, clock: Clock, tmp_path: Path
) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        await bind(client, "job", "ghcr.io/acme/macos:14")
        for image in ("ghcr.io/acme/macos:14", "ghcr.io/acme/macos:13"):
            await _half_pull(host, image, 10 * 10**9)
        mac.fill_disk(10**9)
        await host.collector.collect()
    assert os.listdir(mac.home / "tmp") == [partial_name("ghcr.io/acme/macos:14")]


async def test_a_disk_with_room_keeps_what_was_half_fetched(host: CollectingHost) -> None:
    await _half_pull(host, "ghcr.io/acme/macos:14", 10 * 10**9)
    await host.collector.collect()
    assert os.listdir(host.mac.home / "tmp") == [partial_name("ghcr.io/acme/macos:14")]


async def test_the_only_golden_makes_way_for_one_that_a_pod_waits_for(host: CollectingHost) -> None:
    await host.make_golden("ghcr.io/acme/macos:14")
    host.mac.fill_disk(10**9)
    golden = await host.goldens.ensure(IMAGE)
    assert host.mac.vms() == [golden.vm]


async def test_the_golden_of_a_living_pod_is_kept_even_when_a_pull_has_no_room(
    mac: SimulatedMac, clock: Clock, tmp_path: Path
) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        await bind(client, "job")
        vm = await host.make_golden(IMAGE, DAY)
        mac.fill_disk(10**9)
        await host.collector.reclaim("a test")
    assert mac.vms() == [vm]
    assert len(host.home.images()) == 1


async def test_two_pulls_without_room_do_not_wait_for_each_other_for_ever(host: CollectingHost) -> None:
    await host.make_golden("ghcr.io/acme/macos:14")
    fault(host.mac, on="pull", kind="no-space", times=2)
    async with asyncio.timeout(7200):
        await asyncio.gather(*(host.goldens.ensure(f"{name}.io/acme/macos:1") for name in ("one", "two")))


async def _half_pull(host: CollectingHost, image: str, size_bytes: int = 30 * 10**9) -> None:
    """Its Pod is deleted while it is pulled."""
    before = host.mac.disk(host.mac.home).free_bytes
    pull = asyncio.create_task(host.goldens.ensure(image))
    while before - host.mac.disk(host.mac.home).free_bytes < size_bytes:
        await elapse(1)
    pull.cancel()
    await asyncio.gather(pull, return_exceptions=True)


def _mark(host: CollectingHost, vm: str) -> GoldenMark:
    mark = host.home.mark(vm)
    assert isinstance(mark, GoldenMark)
    return mark


def _digest(host: CollectingHost, vm: str) -> str:
    digest = _mark(host, vm).digest
    assert golden_vm(digest) == vm
    return digest
