"""The Node's parts, put together: what the host offers, how it is, its labels, its heartbeat."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from applecart.api.meta import Key
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ApplecartError
from applecart.kube.background import Work
from applecart.kubelet.entry import Stage
from applecart.kubelet.node.advertised import Advertised, LabelSource
from applecart.kubelet.node.desired import Offer
from applecart.kubelet.node.facts import Facts, HostFacts, read_facts
from applecart.kubelet.node.guest_disks import GuestDisks, full
from applecart.kubelet.node.health import (
    Check,
    Health,
    NothingFoundOut,
    gui_session_exists,
    scratch_vm_boots,
    tart_answers,
)
from applecart.kubelet.node.keeper import NodeKeeper
from applecart.kubelet.node.lease import NodeLease
from applecart.kubelet.options import Options
from applecart.kubelet.pods.guests import KnownGuests
from applecart.kubelet.pods.host import Host
from applecart.kubelet.scratch_vm import ScratchVm
from applecart.tart.mac import Ended

WRITE_TEST = "write-test"  # a file in the agent's own folder
WRITE_TEST_DATA = b"Written again and again, to see whether the journal could be.\n" * 64  # as much as an entry
MAKES_WAY_WITHIN_S = 10.0  # the pull of a scratch image, which goes on later from where it stood
GUEST_DF_S = 15.0  # a guest that does not answer by then is left out


class Registration:
    def __init__(self, host: Host, options: Options, guests: KnownGuests, endpoint_port: int) -> None:
        self._host = host
        self._options = options
        self._guests = guests
        self._scratch = ScratchVm(
            host.mac,
            host.tart,
            host.home,
            host.files,
            host.clock,
            node=host.node,
            state=options.state_dir,
            clone=host.goldens.clone,
            before_run=host.gui.ensure,
            is_idle=self._is_idle,
        )
        self._facts: HostFacts = HostFacts(host.mac, Facts(address=host.node_ip))
        self.health = Health(
            host.mac,
            host.clock,
            self._checks(),
            tart_name=options.tart_binary.rpartition("/")[2],
            guest_disks=GuestDisks(self._running_vms, self._execute),
            on_guest_disks=self._guest_disks_seen,
            our_vms=lambda: [entry.vm for entry in host.journal if entry.stage in (Stage.BOOTING, Stage.RUNNING)],
            scratch_vms=lambda: self._scratch.ours,
            write_state=lambda: host.files.write(options.state_dir / WRITE_TEST, WRITE_TEST_DATA),
        )
        offer = msgspec.structs.replace(Offer.of(options), endpoint_port=endpoint_port)
        self.keeper = NodeKeeper(
            host.client,
            host.clock,
            offer,
            facts=lambda: self._facts(),
            conditions=self.health.conditions,
            advertised=Advertised(self._label_sources()),
        )
        self.lease = NodeLease(host.client, host.clock, options.node_name, owner=lambda: self.keeper.node)
        self.health.on_report = self._report

    async def read_facts(self) -> None:
        self._facts = await read_facts(self._host.mac, self._host.node_ip)

    def _report(self) -> None:
        for outcome in self.health.outcomes:
            self._host.metrics.node_checked(outcome.name, not outcome.has_failed)
        self.keeper.nudge()

    def works(self) -> dict[str, Work]:
        """What must go on as long as the agent does."""
        # Tidying also where no scratch VM is booted any longer: an earlier agent may have left one.
        tidying = self._scratch.keep_tidy
        return {"heartbeat": self.lease.run, "node": self.keeper.run, "health": self.health.run, "scratch VM": tidying}

    def _label_sources(self) -> list[LabelSource]:
        goldens = LabelSource("goldens", self._host.goldens.labels, keeps_last=True)
        caches = self._host.caches
        # A wrong cache label would send an account's jobs to a host that has nothing of it.
        return [goldens] if caches is None else [goldens, LabelSource("caches", caches.labels)]

    def _checks(self) -> list[Check]:
        host = self._host
        checks = [tart_answers(self._tart_answers), gui_session_exists(host.gui.check)]
        if self._options.scratch_vm_image:
            checks.append(scratch_vm_boots(self._scratch_vm_boots))
        return checks

    async def _scratch_vm_boots(self) -> str | None:
        image = self._options.scratch_vm_image
        getting = asyncio.ensure_future(self._host.goldens.ensure(image))
        try:
            while not getting.done():
                if not self._is_idle():  # its own pull may have to wait for ours: Tart does one at a time from a registry
                    raise NothingFoundOut(f"a Pod needs this host before it has image {image} of the scratch VM")
                await asyncio.wait([getting], timeout=MAKES_WAY_WITHIN_S)
            golden = getting.result()
        except ApplecartError as error:  # a registry's fault is not the host's (I12)
            raise NothingFoundOut(f"image {image} of the scratch VM cannot be had: {error}") from error
        finally:
            getting.cancel()
            await asyncio.gather(getting, return_exceptions=True)
        return await self._scratch.check(golden)

    async def _tart_answers(self) -> None:
        """A pull that runs speaks for Tart: a listing removes what is left of one that is killed meanwhile."""
        if not self._host.home.has_pull_under_way():
            await self._host.tart.list()

    def _is_idle(self) -> bool:
        return all(entry.exit is not None for entry in self._host.journal)

    async def _running_vms(self) -> list[str]:
        return [guest.vm for guest in self._guests.running()]

    async def _execute(self, vm: str, command: Sequence[str]) -> Ended:
        return await self._host.tart.exec(vm, command, deadline_s=GUEST_DF_S)

    def _guest_disks_seen(self, used: Mapping[str, int]) -> None:
        self._host.metrics.guest_disks({vm: float(percent) for vm, percent in used.items()})
        nearly_full = full(used)
        for guest in self._guests.running():
            pod = self._guests.pod(Key(guest.namespace, guest.pod))
            if guest.vm in nearly_full and pod is not None:
                warning = reasons.GUEST_DISK_NEARLY_FULL
                sentence = f"the guest's root volume is at {nearly_full[guest.vm]}%"
                self._host.events.event(pod, warning.type, warning.name, sentence)
