"""Guests whose VM is this machine: their logs are files of a test, their commands run here, for real."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from applecart.api.containers import ContainerRunning, ContainerState, ContainerStatus
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodStatus
from applecart.kubelet.serve.guests import GUEST_LOG, Guest, State
from applecart.tart.mac import Ended, Session
from applecart.tart.this_mac import ThisMac


class GuestsHere:
    """What an agent knows of its guests, changed by a test as VMs come and go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guests: dict[tuple[str, str], Guest] = {}
        self.started_at: dict[tuple[str, str], datetime] = {}  # what the status of a Pod says, where it says so

    def add(self, pod: str = "job", *, namespace: str = "default", state: State = State.RUNNING, uid: str = "") -> Guest:
        share = self._folder / f"{pod}-share"
        share.mkdir(exist_ok=True)
        guest = Guest(
            namespace=namespace,
            pod=pod,
            container="vm",
            uid=uid or f"uid-of-{pod}",
            vm=f"{namespace}-{pod}",
            state=state,
            vm_log=self._folder / f"{pod}.log",
            share=share,
            kept_log=self._folder / f"{pod}.guest.log",
        )
        self._guests[namespace, pod] = guest
        return guest

    def end(self, guest: Guest) -> None:
        self._guests[guest.namespace, guest.pod] = msgspec.structs.replace(guest, state=State.ENDED)

    def remove(self, guest: Guest) -> None:
        del self._guests[guest.namespace, guest.pod]

    def find(self, namespace: str, pod: str) -> Guest | None:
        return self._guests.get((namespace, pod))

    def running(self) -> Iterable[Guest]:
        return [guest for guest in self._guests.values() if guest.state is State.RUNNING]

    def pods(self) -> Iterable[Pod]:
        return [self._pod(guest) for guest in self._guests.values()]

    def _pod(self, guest: Guest) -> Pod:
        metadata = ObjectMeta(name=guest.pod, namespace=guest.namespace, uid=guest.uid)
        started_at = self.started_at.get((guest.namespace, guest.pod))
        if started_at is None:
            return Pod(metadata=metadata)
        state = ContainerState(running=ContainerRunning(started_at=started_at))
        return Pod(
            metadata=metadata, status=PodStatus(container_statuses=(ContainerStatus(name=guest.container, state=state),))
        )


def print_to(guest: Guest, text: str) -> None:
    """`tart run` prints."""
    with guest.vm_log.open("a") as file:
        file.write(text)


def say_in(guest: Guest, text: str) -> None:
    """The guest writes its own log."""
    with (guest.share / GUEST_LOG).open("a") as file:
        file.write(text)


class CommandsHere:
    """Runs the commands of guests on this machine, and keeps what was started."""

    def __init__(self) -> None:
        self._mac = ThisMac()
        self.sessions: list[Session] = []

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended:
        return await self._mac.run(command, deadline_s=deadline_s)

    async def exec_session(self, vm: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        session = await self._mac.open(command, tty=tty)
        self.sessions.append(session)
        return session
