"""Goldens when things go wrong: failed clones, full disks, foreign VMs, and removal while somebody wants one."""

import asyncio
from pathlib import Path

import pytest

from applecart.api.names import golden_vm
from applecart.clock import Clock
from applecart.kubelet.golden_making import VmInTheWay
from applecart.sim.mac import SimulatedMac
from applecart.tart.failures import NoSpace, TartFailed
from applecart.tart.files import Files
from applecart.tart.images import parse
from tests.kubelet.agents import IMAGE, Agent, fault, mark_of
from tests.virtual_time import elapse


@pytest.fixture
def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    return SimulatedMac(tmp_path / "tart", clock)


@pytest.fixture
async def agent(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> Agent:
    return Agent(mac, clock, tmp_path)


async def test_a_failed_clone_of_a_pods_vm_leaves_the_golden_alone(agent: Agent) -> None:
    """Weakness 3: any failure of that clone deleted the golden, and with it came a new pull of 40 GB."""
    golden = await agent.goldens.ensure(IMAGE)
    fault(agent.mac, on="clone", kind="fail", vm="ci-job", text="something odd")
    with pytest.raises(TartFailed):
        await agent.goldens.clone(golden, "ci-job")
    agent.mac.calls.clear()
    assert not (await agent.goldens.ensure(IMAGE)).was_made
    await agent.goldens.clone(golden, "ci-job")
    assert agent.tart_calls("pull", "delete") == []


async def test_a_golden_that_lacks_a_file_is_made_again_from_the_store(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    (agent.mac.home / "vms" / golden.vm / "nvram.bin").unlink()
    with pytest.raises(TartFailed):
        await agent.goldens.clone(golden, "ci-job")
    agent.mac.calls.clear()
    again = await agent.goldens.ensure(IMAGE)
    assert again == golden
    await agent.goldens.clone(again, "ci-job")
    assert agent.tart_calls("pull") == []


async def test_a_broken_golden_is_noticed_before_it_is_cloned(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    (agent.mac.home / "vms" / golden.vm / "disk.img").unlink()
    assert (await agent.goldens.ensure(IMAGE)).was_made
    assert [vm.name for vm in agent.home.vms()] == [golden.vm]


async def test_a_vm_of_a_goldens_name_that_is_not_ours_is_never_replaced(agent: Agent) -> None:
    await agent.tart.pull(IMAGE)
    digest = agent.home.digest_of(parse(IMAGE))
    assert digest is not None
    await agent.tart.clone(digest, golden_vm(digest))
    (agent.mac.home / "vms" / golden_vm(digest) / "note").write_text("mine")
    with pytest.raises(VmInTheWay, match=f"tart delete {golden_vm(digest)}"):
        await agent.goldens.ensure(IMAGE)
    assert (agent.mac.home / "vms" / golden_vm(digest) / "note").exists()


@pytest.mark.parametrize("gone", [("applecart.json",), ("applecart.json", "config.json"), ("nvram.bin",)], ids="-".join)
async def test_the_rest_of_a_golden_whose_deletion_was_cut_short_is_not_in_the_way(agent: Agent, gone: tuple[str, ...]) -> None:
    """Tart deletes file by file. Without the mark, which went first, the rest was nobody's, and the image could not be used."""
    golden = await agent.goldens.ensure(IMAGE)
    fault(agent.mac, on="delete", kind="crash")
    with pytest.raises(TartFailed):
        await agent.goldens.remove(golden.vm, mark_of(agent, golden))
    for file in gone:
        (agent.mac.home / "vms" / golden.vm / file).unlink()
    assert (await agent.goldens.ensure(IMAGE)).was_made
    assert agent.home.vms()[0].mark is not None
    assert list((agent.state / "deleting").iterdir()) == []


@pytest.mark.parametrize("verb", ["pull", "clone"])
async def test_a_full_disk_is_cleared_once_and_tried_once_more(agent: Agent, verb: str) -> None:
    """Weakness 3: only a pull without room made room, a clone did not."""
    asked: list[str] = []

    async def reclaim(reason: str) -> None:
        asked.append(reason)

    agent.goldens.reclaim = reclaim
    fault(agent.mac, on=verb, kind="no-space", times=1)
    await agent.goldens.ensure(IMAGE)
    assert len(asked) == 1
    assert len(agent.tart_calls(verb)) == 2


@pytest.mark.parametrize("is_collecting", [True, False])
async def test_a_disk_that_stays_full_is_an_answer_after_one_more_try_or_none(agent: Agent, is_collecting: bool) -> None:
    async def reclaim(reason: str) -> None: ...

    agent.goldens.reclaim = reclaim if is_collecting else None
    fault(agent.mac, on="pull", kind="no-space", times=None)
    with pytest.raises(NoSpace):
        await agent.goldens.ensure(IMAGE)
    assert len(agent.tart_calls("pull")) == (2 if is_collecting else 1)


async def test_a_disk_too_full_for_our_own_files_counts_as_full(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Files, path: Path, data: bytes, mode: int = 0) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Files, "write", full)
    with pytest.raises(NoSpace, match=f"the pull of {IMAGE}"):
        await agent.goldens.ensure(IMAGE)


async def test_a_pull_that_nobody_waits_for_any_longer_ends_also_on_a_full_disk(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end could not be written down, which hid that it was given up: room was made and the image pulled once more, for a
    Pod whose deletion waited for it."""
    asked: list[str] = []

    async def reclaim(reason: str) -> None:
        asked.append(reason)

    agent.goldens.reclaim = reclaim
    fault(agent.mac, on="pull", kind="slow", seconds=600, times=None)
    ensuring = asyncio.create_task(agent.goldens.ensure(IMAGE))
    await elapse(30)

    def full(self: Files, path: Path, data: bytes, mode: int = 0) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Files, "write", full)
    ensuring.cancel()
    await elapse(30)
    assert ensuring.cancelled()
    assert asked == []
    assert len(agent.tart_calls("pull")) == 1


async def test_a_clone_of_a_pods_vm_without_room_makes_room_and_tries_once_more(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    asked: list[str] = []

    async def reclaim(reason: str) -> None:
        asked.append(reason)
        assert golden.vm in agent.goldens.busy.vms

    agent.goldens.reclaim = reclaim
    fault(agent.mac, on="clone", kind="no-space", vm="ci-job")
    await agent.goldens.clone(golden, "ci-job")
    assert asked == ["the clone of VM ci-job"]


# Removal and use, at once


async def test_a_golden_that_was_used_since_it_was_judged_is_not_removed(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    judged = mark_of(agent, golden)
    await elapse(1)
    await agent.goldens.ensure(IMAGE)
    assert not await agent.goldens.remove(golden.vm, judged)
    assert await agent.goldens.remove(golden.vm, mark_of(agent, golden))
    assert agent.mac.vms() == []


async def test_a_golden_being_cloned_from_is_not_removed(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    clone = asyncio.create_task(agent.goldens.clone(golden, "ci-job"))
    await elapse(0.01)
    assert not await agent.goldens.remove(golden.vm, mark_of(agent, golden))
    await clone


async def test_a_pod_that_comes_while_its_golden_is_removed_waits_and_makes_it_again(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    removal = asyncio.create_task(agent.goldens.remove(golden.vm, mark_of(agent, golden)))
    await elapse(0.001)
    again = await agent.goldens.ensure(IMAGE)
    assert await removal
    assert again.was_made
    assert agent.mac.vms() == [golden.vm]
