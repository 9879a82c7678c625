"""Making a Pod's VM: its files, its golden, a clone with an identity and a size of its own.

The journal says CLONING before a VM of our name can exist and CLONED once it is complete and marked, so whatever an earlier
agent left half made is known to be ours and made again. A VM that is not ours is never touched, whatever its name (I3); one
that may have been started is never started again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from applecart.api import names
from applecart.api.containers import Container
from applecart.api.pods import FAILED, RUNNING, Pod
from applecart.api.reasons import EventReason
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ApplecartError, Permanent, Transient
from applecart.kubelet.entry import Exit, JournalEntry, Lifetime, Stage
from applecart.kubelet.garbage.own_marks import pod_mark
from applecart.kubelet.goldens import Golden
from applecart.kubelet.guest.environment import environment
from applecart.kubelet.guest.exit_report import UNKNOWN_CODE
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.guest.token import wants_token, write_token
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.pull_login import pull_login
from applecart.kubelet.pods.resources import vm_size
from applecart.kubelet.pods.vm_name import NameTaken, holder
from applecart.secrets import Secret
from applecart.tart.home import LocalVm
from applecart.tart.marks import PodMark
from applecart.tart.pulls import PullProgress
from applecart.tart.running import running_vms
from applecart.tart.strays import end_strays


class ForeignVm(Permanent):
    """A VM of the Pod's name is on the host and is not ours."""


class OlderVmRuns(Transient):
    """The VM of an earlier Pod of this name has not ended yet."""


@dataclass(frozen=True, slots=True)
class Making:
    host: Host
    tell: Callable[[str], None]  # what is being done, for the people who wait

    async def make(self, pod: Pod, entry: JournalEntry) -> JournalEntry:
        """From whatever an earlier attempt left to a VM that can be started."""
        host = self.host
        began_s = host.clock.monotonic()
        self._refuse_unless_the_name_is_ours(entry)
        await self._clear_the_name(entry)
        secret_names, token = await self._stage_files(pod, entry)
        container = pod.spec.containers[0]
        golden = await self._golden(pod, container)
        if host.home.vm(entry.vm) is not None:  # somebody took the name while the image was pulled; from here on it is ours
            await self._clear_the_name(entry)
        entry = host.journal.write(
            msgspec.structs.replace(
                entry,
                stage=Stage.CLONING,
                image=container.image,
                golden=golden.vm,
                digest=golden.digest,
                secret_names=secret_names,
                token=token,
                is_marked=False,
            )
        )
        with host.metrics.waiting("clone", entry.key):
            await host.goldens.clone(golden, entry.vm)
            mark = PodMark(entry.uid, entry.namespace, entry.name, entry.image, entry.digest, host.clock.now())
            host.home.write_mark(entry.vm, mark, host.files)
            await self._give_identity(pod, entry.vm)
            cpu, memory_mb = vm_size(pod)
            if cpu or memory_mb:
                await host.tart.set(entry.vm, cpu=cpu, memory_mb=memory_mb)
        host.metrics.provisioned(pod, host.clock.monotonic() - began_s, golden_was_made=golden.was_made)
        return host.journal.write(msgspec.structs.replace(entry, stage=Stage.CLONED, is_marked=True))

    async def _golden(self, pod: Pod, container: Container) -> Golden:
        host = self.host
        began_s = host.clock.monotonic()
        with host.metrics.waiting("pull", pod.key):
            login = await pull_login(host.client, pod)
            if container.image not in host.goldens.images_here():
                self._event(pod, reasons.PULLING, f"pulling image {container.image}")
                self.tell(f"pulling image {container.image}")  # which may wait for another pull before its first percent
            golden = await host.goldens.ensure(
                container.image,
                policy=container.image_pull_policy,
                login=login,
                on_progress=lambda progress: self._tell_progress(container.image, progress),
            )
        took_s = host.clock.monotonic() - began_s
        how = f"made golden {golden.vm} in {took_s:.0f} s" if golden.was_made else f"golden {golden.vm} is on the host"
        self._event(pod, reasons.PULLED, f"image {container.image}: {how}")
        self.tell("cloning the VM")
        return golden

    def _tell_progress(self, image: str, progress: PullProgress) -> None:
        if progress.percent is not None:
            self.tell(f"pulling image {image}: {progress.percent}%")

    def _event(self, pod: Pod, reason: EventReason, sentence: str) -> None:
        self.host.events.event(pod, reason.type, reason.name, sentence)

    def _refuse_unless_the_name_is_ours(self, entry: JournalEntry) -> None:
        if (other := holder(entry, self.host.journal)) is not None:
            raise NameTaken(
                f"VM {entry.vm} belongs to Pod {other.key} while that Pod is on node {self.host.node}; waiting for its end. "
                "Give one of the two another name or namespace, or place them on different nodes"
            )

    async def _clear_the_name(self, entry: JournalEntry) -> None:
        """No VM of our name is left when this returns; Tart would replace one without a word."""
        tombstones = self.host.goldens.tombstones
        is_ours = entry.stage is Stage.CLONING or tombstones.is_rest(entry.vm)
        if is_ours:
            await end_strays(self.host.mac, self.host.clock, self.host.tart.binary, entry.vm)
        found = self.host.home.vm(entry.vm)
        if found is None:
            return
        if not is_ours:
            await self._refuse_unless_old_and_ours(found, entry)
        await tombstones.delete(self.host.tart, entry.vm)

    async def _refuse_unless_old_and_ours(self, found: LocalVm, entry: JournalEntry) -> None:
        mark = pod_mark(found)
        if mark is None:
            raise ForeignVm(
                f"a VM named {found.name} is on node {self.host.node} and was not made for a Pod; "
                "rename or delete it, or give the Pod another name"
            )
        owner = self.host.journal.get(mark.uid)
        if owner is not None and owner.uid != entry.uid and owner.may_have_vm:
            raise NameTaken(f"VM {found.name} belongs to Pod {owner.key} (uid {owner.uid}); waiting for its end")
        if found.name in running_vms(await self.host.mac.processes(), self.host.tart.binary):
            raise OlderVmRuns(f"VM {found.name} of an earlier Pod (uid {mark.uid}) still runs; waiting for its end")

    async def _stage_files(self, pod: Pod, entry: JournalEntry) -> tuple[tuple[str, ...], Lifetime | None]:
        """The names of the variables that are secret, and how long the token lives."""
        host = self.host
        with host.metrics.waiting("config", entry.key):
            share = GuestShare(host.userdata, entry.vm, host.files)
            values = await environment(host.client, pod, host.node, host.node_ip)
            await share.remove()
            share.stage(values, host.node)
            token = await write_token(host.client, pod, share, host.clock) if wants_token(pod) else None
            return tuple(sorted(name for name, value in values.items() if isinstance(value, Secret))), token

    async def _give_identity(self, pod: Pod, vm: str) -> None:
        """Clones that share a serial number fail Apple's asset checks under load; a job without Xcode can do without."""
        try:
            await self.host.tart.set(vm, random_serial=True)
        except ApplecartError as error:
            self._event(pod, reasons.IDENTITY_REGEN_SKIPPED, f"regenerate VM identity: {error}")


def new_entry(pod: Pod, host: Host) -> JournalEntry:
    """The first word about a Pod. A VM that already bears its uid was started by an agent whose journal is lost: it is
    watched to its end, and never started. A Pod that ran, says the API, and whose VM is gone too has ended (I4)."""
    vm = names.pod_vm(pod.namespace, pod.name)
    mark = host.home.mark(vm)
    is_known_to_its_vm = isinstance(mark, PodMark) and mark.uid == pod.uid
    if not is_known_to_its_vm and pod.status.phase == RUNNING:
        return _entry_of_a_lost_vm(pod, vm, host)
    return JournalEntry(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        vm=vm,
        stage=Stage.RUNNING if is_known_to_its_vm else Stage.ACCEPTED,
        accepted_at=host.clock.now(),
        image=pod.spec.containers[0].image if pod.spec.containers else "",
        digest=mark.digest if isinstance(mark, PodMark) and is_known_to_its_vm else "",
        is_marked=is_known_to_its_vm,
        started_at=host.clock.now() if is_known_to_its_vm else None,
    )


def _entry_of_a_lost_vm(pod: Pod, vm: str, host: Host) -> JournalEntry:
    states = [each.state.running for each in pod.status.container_statuses if each.state is not None]
    reason = reasons.RUN_EXITED.name
    message = f"node {host.node} has lost the VM of this Pod and what it knew of it; how its job went is unknown"
    return JournalEntry(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        vm=vm,
        stage=Stage.ENDED,
        accepted_at=pod.status.start_time or host.clock.now(),
        started_at=next((state.started_at for state in states if state is not None), None),
        exit=Exit(FAILED, reason, message, reason, UNKNOWN_CODE, finished_at=host.clock.now()),
    )
