"""What the regression tests of incidents need beyond the world itself: faults, guests, a wire that can be cut, and looks."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from applecart.api.containers import Container, EnvVar
from applecart.api.core import Namespace
from applecart.api.events import Event
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node, NodeCondition
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kube.errors import AlreadyExists
from applecart.kubelet.node.lease import NAMESPACE as LEASES
from applecart.sim.tart.faults import Fault, Faults
from applecart.sim.tart.guest_rules import Rule
from applecart.tart.mac import Ended
from applecart.tart.running import running_vms
from tests.kube.faults import FaultyTransport
from tests.kubelet.world import IMAGE, NAMESPACE, NODE, World, vm_pod, world

GB = 10**9
TART = "/usr/local/bin/tart"


class Wire:
    """Between the agent and the API; people still reach the API when it is cut."""

    def __init__(self, here: World) -> None:
        self.faulty = FaultyTransport(here.api.transport())

    def transport(self) -> FaultyTransport:
        return self.faulty


@asynccontextmanager
async def scene(folder: Path, clock: Clock, *flags: str) -> AsyncIterator[World]:
    """A world where no agent runs yet."""
    async with world(folder, clock, *flags) as here:
        with suppress(AlreadyExists):
            await here.client.create(Namespace(metadata=ObjectMeta(name=LEASES)))
        yield here


def cut_off(here: World) -> FaultyTransport:
    """The wire of every agent that is started from here on."""
    wire = Wire(here)
    here.api = wire  # type: ignore[assignment]
    return wire.faulty


def image_bytes(here: World, size: int) -> None:
    here.mac.registry.edit(lambda content: setattr(content, "image_bytes", size))


def go_wrong(here: World, *faults: Fault) -> None:
    (here.mac.home / "faults.json").write_bytes(msgspec.json.encode(Faults(list(faults))))


def guests(here: World, *rules: Rule) -> None:
    here.mac.store.sim.mkdir(parents=True, exist_ok=True)
    (here.mac.store.sim / "guests.json").write_bytes(msgspec.json.encode(list(rules)))


def job(name: str = "job-1", runs_s: int = 20, code: int = 0, image: str = IMAGE, **spec: Any) -> Pod:
    """A Pod whose guest works for a while and reports how it went."""
    env = (
        EnvVar(name="APPLECART_SIM_RUN_SECONDS", value=str(runs_s)),
        EnvVar(name="APPLECART_SIM_EXIT_CODE", value=str(code)),
    )
    pod = vm_pod(name, image, **spec)
    container = Container(name="runner", image=image, env=env)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,)))


async def delete(here: World, name: str = "job-1", grace_s: int | None = None) -> None:
    await here.client.delete(Pod, Key(NAMESPACE, name), grace_s=grace_s)


async def events(here: World, name: str = "job-1") -> dict[str, Event]:
    """About the Pod, by reason; the last of each."""
    found = await here.client.list(Event, NAMESPACE)
    return {event.reason: event for event in found if event.involved_object.name == name}


def told(event: Event) -> int:
    """How often it happened."""
    return event.series.count if event.series else max(1, event.count)


def calls(here: World, verb: str, word: str = "") -> list[tuple[str, ...]]:
    """What was asked of Tart."""
    return [call.argv[1:] for call in here.mac.calls if call.tart == verb and (not word or word in call.argv)]


def terminated(pod: Pod) -> Any:
    state = pod.status.container_statuses[0].state
    assert state is not None
    assert state.terminated is not None
    return state.terminated


def waiting_reason(pod: Pod | None) -> str:
    status = pod.status.container_statuses if pod is not None else ()
    state = status[0].state if status else None
    return state.waiting.reason if state is not None and state.waiting is not None else ""


async def person_runs(here: World, *words: str) -> Ended:
    """`tart ...` by a person on the host, whatever the agent does."""
    return await here.mac.run([TART, *words], deadline_s=None, env={"TART_HOME": str(here.mac.home)})


async def node_condition(here: World, type_: str) -> NodeCondition:
    found = (await here.client.get(Node, Key("", NODE))).condition(type_)
    assert found is not None
    return found


async def vm_pid(here: World, vm: str = "ci-job-1") -> int:
    return running_vms(await here.mac.processes(), TART)[vm].pid


@contextmanager
def within(here: World, seconds: float) -> Iterator[None]:
    """The body took no longer."""
    began_s = here.clock.monotonic()
    yield
    took_s = here.clock.monotonic() - began_s
    assert took_s <= seconds, f"took {took_s:.1f} s"
