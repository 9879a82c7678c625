"""One look: what might be removed is read before what protects it, and what cannot be read is never taken for absent."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.patch import Merge
from applecart.kubelet.entry import Stage
from applecart.sim.mac import SimulatedMac
from applecart.tart.mac import Disk
from applecart.tart.marks import PodMark
from tests.kube.embedded_api import serving
from tests.kubelet.agents import IMAGE
from tests.kubelet.garbage.hosts import CollectingHost, bind, pods_of


async def test_a_vm_that_is_listed_has_its_journal_entry(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    """Incident 28: a VM made between two readings was seen without what protects it."""
    made: CollectingHost

    async def pods() -> Sequence[Pod]:
        made.enter("late", Stage.CLONING)
        await made.make_pod_vm("late")
        return ()

    made = CollectingHost(mac, clock, tmp_path, pods)
    made.enter("early", Stage.CLONING)
    await made.make_pod_vm("early")
    scene = await made.look.scene()
    listed = {vm.mark.uid for vm in scene.vms if isinstance(vm.mark, PodMark)}
    assert listed == {"early"}
    assert listed <= scene.held


@pytest.mark.parametrize("stage", list(Stage))
async def test_an_entry_protects_its_vm_as_long_as_it_may_have_one(
    mac: SimulatedMac, clock: Clock, tmp_path: Path, stage: Stage
) -> None:
    host = CollectingHost(mac, clock, tmp_path)
    entry = host.enter("uid", stage)
    scene = await host.look.scene()
    assert ("uid" in scene.held) == entry.may_have_vm
    assert (entry.vm in scene.entry_vms) == (stage != Stage.REMOVED)


async def test_pods_are_those_of_this_node_that_are_not_being_deleted(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    async with serving(clock) as running:
        client = Client(running.transport(), clock)
        host = CollectingHost(mac, clock, tmp_path, pods_of(client))
        lives, ended, deleted = [await bind(client, name) for name in ("lives", "ended", "deleted")]
        await client.patch_status(Pod, Key("ci", "ended"), Merge({"status": {"phase": "Succeeded"}}))
        finalizer = Merge({"metadata": {"finalizers": ["tart-kubelet.tuist.dev/vm-cleanup"]}})
        await client.patch(Pod, Key("ci", "deleted"), finalizer)
        await client.delete(Pod, Key("ci", "deleted"))
        scene = await host.look.scene()
    assert {(pod.uid, pod.image, pod.is_ended) for pod in scene.pods} == {
        (lives.metadata.uid, IMAGE, False),
        (ended.metadata.uid, IMAGE, True),
    }
    assert deleted.metadata.uid not in {pod.uid for pod in scene.pods}


async def test_only_folders_are_userdata_and_only_files_are_logs(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    host = CollectingHost(mac, clock, tmp_path)
    (host.userdata / "vm").mkdir()
    (host.userdata / "file").touch()
    (host.userdata / "link").symlink_to(tmp_path)
    (host.logs / "vm.log").touch()
    (host.logs / "folder.log").mkdir()
    os.mkfifo(host.logs / "pipe.log")
    scene = await host.look.scene()
    assert [found.path.name for found in scene.userdata] == ["vm"]
    assert [found.path.name for found in scene.logs] == ["vm.log"]


async def test_a_disk_that_cannot_be_measured_is_not_short(
    mac: SimulatedMac, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path) -> Disk:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(mac, "disk", fails)
    host = CollectingHost(mac, clock, tmp_path)
    assert (await host.look.scene()).free_percent is None


async def test_a_host_without_any_folder_yet_is_empty(mac: SimulatedMac, clock: Clock, tmp_path: Path) -> None:
    host = CollectingHost(mac, clock, tmp_path)
    host.userdata.rmdir()
    host.logs.rmdir()
    scene = await host.look.scene()
    assert (scene.vms, scene.images, scene.userdata, scene.logs) == ((), (), (), ())
