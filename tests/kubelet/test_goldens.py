"""Goldens on a simulated Mac: pulled once, shared by all, never stale, never lost to somebody else's failure."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.names import golden_label, golden_vm
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.goldens import ALWAYS, IF_NOT_PRESENT, NEVER
from applecart.sim.mac import SimulatedMac
from applecart.tart.failures import BadImage, ImageMissing, RegistryRefused
from applecart.tart.pulls import PullProgress
from tests.kubelet.agents import IMAGE, Agent, mark_of
from tests.virtual_time import elapse

LATEST = "ghcr.io/acme/macos:latest"


@pytest.fixture
def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    return SimulatedMac(tmp_path / "tart", clock)


@pytest.fixture
async def agent(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> Agent:
    return Agent(mac, clock, tmp_path)


async def test_the_first_pod_pulls_and_every_later_one_only_clones(agent: Agent) -> None:
    """Incident 21: every new VM pulled its image again, 14 TB a day."""
    first = await agent.goldens.ensure(IMAGE)
    assert first.was_made
    assert agent.tart_calls() == [f"pull {IMAGE}", f"clone {first.digest} {first.vm}"]
    agent.mac.calls.clear()
    for pod in range(10):
        golden = await agent.goldens.ensure(IMAGE)
        assert (golden.vm, golden.was_made) == (first.vm, False)
        await agent.goldens.clone(golden, f"ci-job-{pod}")
    assert agent.tart_calls() == [f"clone {first.vm} ci-job-{pod}" for pod in range(10)]


async def test_a_golden_is_named_after_its_content_and_says_which_references_lead_to_it(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    assert golden.digest.startswith("ghcr.io/acme/macos@sha256:")
    assert golden.vm == golden_vm(golden.digest)
    assert mark_of(agent, golden).images == (IMAGE,)


async def test_a_digest_reference_never_touches_the_network_when_its_golden_is_there(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    agent.mac.calls.clear()
    for policy in (ALWAYS, IF_NOT_PRESENT, NEVER, None):
        assert (await agent.goldens.ensure(golden.digest, policy=policy)).vm == golden.vm
    assert agent.tart_calls() == []


async def test_a_reference_with_tag_and_digest_means_the_digest(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    both = f"ghcr.io/acme/macos:old@{golden.digest.partition('@')[2]}"
    assert (await agent.goldens.ensure(both)).vm == golden.vm


async def test_two_tags_of_one_content_share_one_golden(agent: Agent) -> None:
    one = await agent.goldens.ensure(IMAGE)
    agent.mac.registry.move("ghcr.io/acme/macos:16", one.digest.partition("@")[2])
    two = await agent.goldens.ensure("ghcr.io/acme/macos:16")
    assert (two.vm, two.was_made) == (one.vm, False)
    assert set(mark_of(agent, one).images) == {IMAGE, "ghcr.io/acme/macos:16"}
    assert agent.mac.vms() == [one.vm]


async def test_a_tag_that_moved_gets_a_new_golden_and_the_old_one_loses_it(agent: Agent) -> None:
    """Weakness 6: a golden named after the reference was never made anew, so `latest` stayed what it once was."""
    old = await agent.goldens.ensure(LATEST)
    agent.mac.registry.move(LATEST)
    new = await agent.goldens.ensure(LATEST)
    assert new.was_made
    assert new.vm != old.vm
    assert mark_of(agent, new).images == (LATEST,)
    assert mark_of(agent, old).images == ()


async def test_a_tag_that_did_not_move_is_looked_up_and_not_fetched(agent: Agent, clock: Clock) -> None:
    await agent.goldens.ensure(LATEST)
    agent.mac.calls.clear()
    began_s = clock.monotonic()
    golden = await agent.goldens.ensure(LATEST)
    assert not golden.was_made
    assert agent.tart_calls() == [f"pull {LATEST}"]
    assert clock.monotonic() - began_s < 10


async def test_if_not_present_takes_what_the_reference_led_to_before(agent: Agent) -> None:
    old = await agent.goldens.ensure(IMAGE)
    agent.mac.registry.move(IMAGE)
    agent.mac.calls.clear()
    assert (await agent.goldens.ensure(IMAGE, policy=IF_NOT_PRESENT)).vm == old.vm
    assert agent.tart_calls() == []
    assert (await agent.goldens.ensure(IMAGE, policy=ALWAYS)).vm != old.vm


async def test_never_takes_what_is_here_and_pulls_nothing(agent: Agent) -> None:
    with pytest.raises(ImageMissing, match="imagePullPolicy Never"):
        await agent.goldens.ensure(IMAGE, policy=NEVER)
    assert agent.tart_calls() == []
    golden = await agent.goldens.ensure(IMAGE)
    assert (await agent.goldens.ensure(IMAGE, policy=NEVER)).vm == golden.vm


async def test_a_golden_that_is_gone_is_cloned_again_from_the_store_without_a_pull(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    await agent.tart.delete(golden.vm)
    agent.mac.calls.clear()
    assert (await agent.goldens.ensure(IMAGE)).was_made
    assert agent.tart_calls() == [f"clone {golden.digest} {golden.vm}"]


async def test_bad_input_is_refused_before_anything_is_asked(agent: Agent) -> None:
    with pytest.raises(BadImage):
        await agent.goldens.ensure("macos")
    with pytest.raises(BadInput, match="Sometimes"):
        await agent.goldens.ensure(IMAGE, policy="Sometimes")
    assert agent.tart_calls() == []


# Many Pods, one pull


async def test_many_pods_wait_for_one_pull_and_one_clone_and_all_hear_of_its_progress(agent: Agent) -> None:
    heard: list[list[PullProgress]] = [[] for _ in range(5)]
    goldens = await asyncio.gather(*(agent.goldens.ensure(IMAGE, on_progress=news.append) for news in heard))
    assert len({golden.vm for golden in goldens}) == 1
    assert agent.tart_calls() == [f"pull {IMAGE}", f"clone {goldens[0].digest} {goldens[0].vm}"]
    assert all(news and news == heard[0] for news in heard)


async def test_a_pod_that_goes_away_does_not_end_the_pull_for_another(agent: Agent) -> None:
    first = asyncio.create_task(agent.goldens.ensure(IMAGE))
    second = asyncio.create_task(agent.goldens.ensure(IMAGE))
    await elapse(60)
    first.cancel()
    golden = await second
    assert golden.was_made
    assert agent.tart_calls("pull") == [f"pull {IMAGE}"]


async def test_a_pull_that_nobody_waits_for_any_more_is_ended_and_goes_on_later(agent: Agent, clock: Clock) -> None:
    pod = asyncio.create_task(agent.goldens.ensure(IMAGE))
    await elapse(200)  # of 400
    pod.cancel()
    await asyncio.wait([pod])
    assert not [process for process in await agent.mac.processes() if "pull" in process.command]
    began_s = clock.monotonic()
    await agent.goldens.ensure(IMAGE)
    assert clock.monotonic() - began_s < 300


async def test_a_pod_that_comes_while_a_pull_is_being_ended_waits_and_begins_anew(agent: Agent) -> None:
    pod = asyncio.create_task(agent.goldens.ensure(IMAGE))
    await elapse(30)
    pod.cancel()
    golden = await agent.goldens.ensure(IMAGE)
    assert golden.was_made
    assert agent.mac.vms() == [golden.vm]


async def test_a_failed_pull_fails_for_all_who_wait_and_leaves_nothing(agent: Agent) -> None:
    agent.mac.registry.edit(lambda content: content.denied.append("ghcr.io/acme/*"))
    results = await asyncio.gather(*(agent.goldens.ensure(IMAGE) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [RegistryRefused] * 3
    assert agent.tart_calls() == [f"pull {IMAGE}"]
    assert agent.mac.vms() == []


async def test_one_slow_image_does_not_delay_another(agent: Agent) -> None:
    slow = asyncio.create_task(agent.goldens.ensure("slow.io/acme/macos:1"))
    agent.mac.registry.edit(lambda content: content.sizes.update({"sha256:" + "1" * 64: 10**9}))
    agent.mac.registry.move("fast.io/acme/macos:1", "sha256:" + "1" * 64)
    await agent.goldens.ensure("fast.io/acme/macos:1")
    assert not slow.done()
    await slow


# What the Node says


async def test_the_node_is_labelled_with_every_reference_that_needs_no_pull(agent: Agent) -> None:
    """Incident 34: the labels that steer Pods to hosts with their golden never reached the Node."""
    assert agent.goldens.labels() == {}
    golden = await agent.goldens.ensure(IMAGE)
    assert agent.goldens.labels() == {golden_label(IMAGE): "true", golden_label(golden.digest): "true"}
    assert agent.goldens.images_here() == {IMAGE, golden.digest}


async def test_the_label_of_a_tag_moves_with_it(agent: Agent) -> None:
    old = await agent.goldens.ensure(LATEST)
    agent.mac.registry.move(LATEST)
    new = await agent.goldens.ensure(LATEST)
    assert set(agent.goldens.labels()) == {golden_label(image) for image in (LATEST, old.digest, new.digest)}


async def test_labels_follow_a_golden_that_somebody_deleted(agent: Agent) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    assert agent.goldens.labels()
    await agent.tart.delete(golden.vm)
    await elapse(11)
    assert agent.goldens.labels() == {}


async def test_labels_stay_while_the_store_cannot_be_read(agent: Agent) -> None:
    """Incident 36: one look that failed dropped the labels, and Pods went to hosts that had to pull."""
    await agent.goldens.ensure(IMAGE)
    labels = agent.goldens.labels()
    vms = agent.mac.home / "vms"
    vms.rename(agent.mac.home / "aside")
    vms.symlink_to(vms)  # reading it fails, whoever we are
    await elapse(11)
    assert agent.goldens.labels() == labels


async def test_a_restarted_agent_knows_its_goldens(agent: Agent, tmp_path: Path) -> None:
    golden = await agent.goldens.ensure(IMAGE)
    again = Agent(agent.mac, agent.clock, tmp_path)
    assert again.goldens.labels() == agent.goldens.labels()
    assert not (await again.goldens.ensure(IMAGE)).was_made
    assert again.goldens.ledger.pulled() == {golden.digest}


async def test_use_is_remembered_on_disk(agent: Agent, clock: Clock) -> None:
    """Weakness 25: when a golden was last used was kept in memory only, and forgotten at every restart."""
    golden = await agent.goldens.ensure(IMAGE)
    await elapse(timedelta(hours=5).total_seconds())
    await agent.goldens.ensure(IMAGE)
    assert clock.now() - mark_of(agent, golden).used_at < timedelta(seconds=1)
