"""Two Pods whose VMs have one name: `ci/a-b` and `ci-a/b` are both `ci-a-b` on a host."""

from itertools import permutations
from pathlib import Path

import pytest

from applecart.api import names
from applecart.api.containers import Container, EnvVar
from applecart.api.core import Namespace, ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.api.pods import RUNNING, SUCCEEDED, Pod, PodSpec
from applecart.clock import EPOCH, Clock
from applecart.kube.patch import Merge
from applecart.kubelet.entry import JournalEntry, Stage
from applecart.kubelet.pods.vm_name import holder
from applecart.kubelet.serve.log_options import LogOptions
from applecart.kubelet.serve.logs import NoLog, open_log
from applecart.sim.tart.guest_rules import Rule
from applecart.tart.marks import PodMark
from tests.kubelet.incidents.scene import GB, delete, guests, image_bytes, scene, waiting_reason
from tests.kubelet.world import IMAGE, NODE, World
from tests.virtual_time import elapse

VM = "ci-a-b"
OTHER_IMAGE = "ghcr.io/acme/other@sha256:" + "b" * 64
FIRST, SECOND = Key("ci", "a-b"), Key("ci-a", "b")


def tenant(key: Key, value: str, image: str = IMAGE) -> Pod:
    container = Container(name="runner", image=image, env=(EnvVar(name="TENANT", value=value),))
    return Pod(
        metadata=ObjectMeta(name=key.name, namespace=key.namespace), spec=PodSpec(containers=(container,), node_name=NODE)
    )


async def second_namespace(here: World) -> None:
    await here.client.create(Namespace(metadata=ObjectMeta(name=SECOND.namespace)))
    await here.client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=SECOND.namespace)))


def staged(here: World) -> str:
    return (here.folder / "userdata" / VM / "tuist.env").read_text()


async def status(here: World, key: Key) -> Pod:
    return await here.client.get(Pod, key)


async def create_both(here: World) -> tuple[Pod, Pod]:
    """The second comes while the image of the first is being pulled."""
    first = await here.create(tenant(FIRST, "tenant-one"))
    await elapse(3)
    return first, await here.create(tenant(SECOND, "tenant-two"))


async def test_a_guest_never_gets_the_files_of_another_pod_with_its_vms_name(tmp_path: Path, clock: Clock) -> None:
    """I3, I9: the second was staged into the folder of the first, whose guest booted with the secrets of a stranger."""
    async with scene(tmp_path, clock) as here:
        await second_namespace(here)
        here.start_agent()
        first, second = await create_both(here)
        await here.until_phase(FIRST.name, RUNNING)
        await elapse(600)
        assert "tenant-one" in staged(here)
        assert len(here.mac.boots) == 1
        assert here.agent is not None
        mark = here.agent.host.home.mark(VM)
        assert isinstance(mark, PodMark)
        assert mark.uid == first.uid
        waiting = await status(here, second.key)
        assert waiting_reason(waiting) == "TartCreateFailed"
        assert f"VM {VM} belongs to Pod ci/a-b" in waiting.status.message


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same-agent", "next-agent"])
async def test_a_pod_that_waited_for_its_vms_name_gets_it_when_the_other_is_gone(
    is_restarted: bool, tmp_path: Path, clock: Clock
) -> None:
    async with scene(tmp_path, clock) as here:
        await second_namespace(here)
        here.start_agent()
        _, second = await create_both(here)
        await here.until_phase(FIRST.name, RUNNING)
        if is_restarted:
            await here.kill_agent()
            here.start_agent()
            await elapse(300)
            assert here.mac.running() == [VM]
        await delete(here, FIRST.name)
        await here.until_gone(FIRST.name, within_s=120)
        await elapse(180)
        assert (await status(here, second.key)).status.phase == RUNNING
        assert "tenant-two" in staged(here)
        assert len(here.mac.boots) == 2


@pytest.mark.parametrize("first_is", ["pulling", "cloned", "running"])
async def test_a_pod_that_waits_for_a_name_takes_nothing_of_the_other_with_it(
    first_is: str, tmp_path: Path, clock: Clock
) -> None:
    """I3: its teardown removed the folder that the other's guest was about to be given, and a VM that was about to start."""
    async with scene(tmp_path, clock) as here:
        await second_namespace(here)
        if first_is == "cloned":
            here.mac.seal_auto_login()
            here.mac.lose_gui_session()
        here.start_agent()
        first, second = await create_both(here)
        await elapse({"pulling": 2, "cloned": 60, "running": 60}[first_is])
        assert here.agent is not None
        entry = here.agent.host.journal.get(first.uid)
        assert entry is not None
        assert entry.stage is {"pulling": Stage.ACCEPTED, "cloned": Stage.CLONED, "running": Stage.RUNNING}[first_is]
        await here.client.delete(Pod, second.key)
        await elapse(5)
        assert "tenant-one" in staged(here)
        assert [entry.key for entry in here.agent.host.journal] == [FIRST]
        if first_is != "cloned":
            await here.until_phase(FIRST.name, RUNNING, within_s=120)
        mark = here.agent.host.home.mark(VM)
        assert isinstance(mark, PodMark)
        assert mark.uid == first.uid


async def test_a_pod_that_never_ran_does_not_end_as_the_guest_with_its_vms_name_did(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        await second_namespace(here)
        guests(here, Rule())
        here.start_agent()
        _, second = await create_both(here)
        await here.until_phase(FIRST.name, RUNNING)
        (tmp_path / "userdata" / VM / "status" / "runner-rc").write_text("0\n")
        await elapse(2 * 3600)
        ended = await status(here, second.key)
        assert (ended.status.phase, ended.status.reason) == ("Failed", "TartCreateFailed")
        assert here.mac.running() == [VM]


async def test_a_pod_of_which_nothing_is_left_takes_nothing_of_the_next_with_its_vms_name_when_it_vanishes(
    tmp_path: Path, clock: Clock
) -> None:
    """I3: it was torn down once more, and the folder of its VM's name was by then staged for another."""
    async with scene(tmp_path, clock) as here:
        await second_namespace(here)
        guests(here, Rule(runs_s=20))
        here.start_agent()
        await here.create(tenant(FIRST, "tenant-one"))
        await here.until_phase(FIRST.name, SUCCEEDED)
        await elapse(10)
        guests(here, Rule())
        image_bytes(here, 100 * GB)
        await here.create(tenant(SECOND, "tenant-two", OTHER_IMAGE))
        await elapse(5)
        assert "tenant-two" in staged(here)
        await here.client.patch(Pod, FIRST, Merge({"metadata": {"finalizers": []}}))
        await here.client.delete(Pod, FIRST, grace_s=0)
        await elapse(30)
        assert here.agent is not None
        assert [entry.key for entry in here.agent.host.journal] == [SECOND]
        assert "tenant-two" in staged(here)


async def test_a_pod_shows_no_log_of_the_next_with_its_vms_name(tmp_path: Path, clock: Clock) -> None:
    """I9: they may be of different people, and the logs of a VM go by its name."""
    async with scene(tmp_path, clock) as here:
        await second_namespace(here)
        guests(here, Rule(runs_s=20))
        here.start_agent()
        await here.create(tenant(FIRST, "tenant-one"))
        await here.until_phase(FIRST.name, SUCCEEDED)
        await elapse(10)
        assert here.agent is not None
        find = here.agent.guests.find
        first = find(*FIRST)
        assert first is not None
        assert open_log(here.agent.guests, first, LogOptions(), clock)
        second = await here.create(tenant(SECOND, "tenant-two"))
        for phase in (RUNNING, SUCCEEDED):
            while (await status(here, second.key)).status.phase != phase:
                await elapse(1)
            first = find(*FIRST)
            assert first is not None
            with pytest.raises(NoLog, match="no longer on its host"):
                open_log(here.agent.guests, first, LogOptions(), clock)
        theirs = find(*SECOND)
        assert theirs is not None
        assert open_log(here.agent.guests, theirs, LogOptions(), clock)


def entry(uid: str, key: Key, stage: Stage, golden: str = "") -> JournalEntry:
    return JournalEntry(uid, key.namespace, key.name, names.pod_vm(*key), stage, EPOCH, golden=golden)


@pytest.mark.parametrize("first", [Stage.ACCEPTED, Stage.ENDED, Stage.REMOVED])
@pytest.mark.parametrize("second", [Stage.ACCEPTED, Stage.CLONING, Stage.RUNNING, Stage.ENDED, Stage.REMOVED])
def test_of_those_that_share_a_name_one_has_it_and_all_others_wait_for_that_one(first: Stage, second: Stage) -> None:
    """Two that wait for each other would wait for ever; two that do not would share a VM."""
    pods = [
        entry("1", FIRST, first),
        entry("2", SECOND, second, golden="" if second is Stage.ACCEPTED else "tuist-golden"),
        JournalEntry("3", "c", "i-a-b", VM, Stage.ACCEPTED, EPOCH),
        entry("4", Key("ci", "other"), Stage.RUNNING),
    ]
    for journal in permutations(pods):
        sharing = [each for each in journal if each.vm == VM and each.stage is not Stage.REMOVED]
        have_it = [each for each in sharing if holder(each, journal) is None]
        assert len(have_it) == 1
        assert all(holder(each, journal) == have_it[0] for each in sharing if each != have_it[0])
        assert holder(pods[3], journal) is None
        if second in (Stage.CLONING, Stage.RUNNING):
            assert have_it == [pods[1]]


def test_an_earlier_pod_of_the_same_name_is_none_that_shares_it() -> None:
    """Its VM goes before anything else gets the name (`reconciler.py`)."""
    journal = [entry("1", FIRST, Stage.RUNNING, "tuist-golden"), entry("2", FIRST, Stage.ACCEPTED)]
    assert holder(journal[1], journal) is None
