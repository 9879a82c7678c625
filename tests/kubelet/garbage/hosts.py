"""A host with an agent that collects garbage: simulated Mac, real files, Pods in the embedded API."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from applecart.api.containers import Container
from applecart.api.meta import ObjectMeta
from applecart.api.names import pod_vm
from applecart.api.pods import Pod, PodSpec
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kubelet.entry import JournalEntry, Stage
from applecart.kubelet.garbage.collect import Collector
from applecart.kubelet.garbage.look import Look, PodSource, pods_on
from applecart.kubelet.journal import Journal
from applecart.sim.mac import SimulatedMac
from applecart.tart.marks import GoldenMark, PodMark
from applecart.tart.run_options import RunOptions
from tests.kubelet.agents import IMAGE, Agent
from tests.virtual_time import elapse

NODE = "mac-1"
DAY = timedelta(hours=25)  # longer than a golden is kept


async def no_pods() -> Sequence[Pod]:
    return ()


class CollectingHost(Agent):
    def __init__(self, mac: SimulatedMac, clock: Clock, folder: Path, pods: PodSource = no_pods) -> None:
        super().__init__(mac, clock, folder)
        self.userdata = folder / "userdata"
        self.logs = folder / "logs"
        for made in (self.userdata, self.logs):
            self.files.make_folder(made)
        self.journal = Journal(self.state, self.files)
        self.look = Look(
            mac=mac,
            home=self.home,
            journal=self.journal,
            goldens=self.goldens,
            pods=pods,
            userdata=self.userdata,
            logs=self.logs,
            clock=clock,
        )
        self.counted: list[str] = []
        self.collector = Collector(
            look=self.look,
            tart=self.tart,
            home=self.home,
            files=self.files,
            journal=self.journal,
            goldens=self.goldens,
            userdata=self.userdata,
            on_deleted=self.counted.append,
        )

    async def make_pod_vm(self, uid: str, name: str = "", image: str = IMAGE) -> str:
        """As a Pod's worker does it: clone, mark, stage files."""
        name = name or uid
        vm = pod_vm("ci", name)
        golden = await self.goldens.ensure(image)
        await self.goldens.clone(golden, vm)
        self.home.write_mark(vm, PodMark(uid, "ci", name, image, golden.digest, self.clock.now()), self.files)
        self.files.make_folder(self.userdata / vm)
        self.files.write(self.userdata / vm / "tuist.env", b"KEY=value\n")
        return vm

    def enter(self, uid: str, stage: Stage, name: str = "") -> JournalEntry:
        vm = pod_vm("ci", name or uid)
        return self.journal.write(JournalEntry(uid, "ci", name or uid, vm, stage, self.clock.now(), IMAGE))

    async def make_golden(self, image: str, idle: timedelta = timedelta()) -> str:
        """A golden that nobody used for that long."""
        golden = await self.goldens.ensure(image)
        mark = self.home.mark(golden.vm)
        assert isinstance(mark, GoldenMark)
        self.set_used(golden.vm, mark, self.clock.now() - idle)
        return golden.vm

    def set_used(self, vm: str, mark: GoldenMark, at: datetime) -> None:
        self.home.write_mark(vm, GoldenMark(mark.digest, mark.images, mark.made_at, at), self.files)


async def bind(client: Client, name: str, image: str = IMAGE) -> Pod:
    spec = PodSpec(containers=(Container(name="vm", image=image),), node_name=NODE)
    return await client.create(Pod(metadata=ObjectMeta(name=name, namespace="ci"), spec=spec))


def pods_of(client: Client) -> PodSource:
    return pods_on(client, NODE)


async def run_vm(host: CollectingHost, vm: str, folder: Path) -> None:
    """Until it has booted."""
    await host.tart.run(vm, RunOptions(), folder=folder / f"run-{vm}", log=folder / f"{vm}.txt")
    await elapse(30)


def pod_vms(host: CollectingHost) -> list[str]:
    return [vm.name for vm in host.home.vms() if isinstance(vm.mark, PodMark)]
