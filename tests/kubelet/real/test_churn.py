"""A host that is never idle: Pods made, run, ended and deleted, two at a time, in the simulated world.

Whatever an agent kept of each Pod that ever was, in memory, in its metrics or on disk, would end it after some months. What is
kept for people (a VM's logs, for a week) is kept per Pod and nothing else is. `make bench ROWS='kubelet*after*'` measures the
same in megabytes.
"""

import asyncio
import gc
from collections import Counter
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

import msgspec
import pytest

from applecart.api.containers import EnvVar
from applecart.api.meta import Key
from applecart.api.pods import SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.kubelet import assembly
from applecart.kubelet.agent import Agent
from applecart.observe.metrics import Metrics
from applecart.sim.tart import guest_rules
from applecart.sim.tart.leases import Leases, write_leases
from tests.kubelet import world as simulated
from tests.kubelet.world import NAMESPACE, World, vm_pod
from tests.soak import soaks

EARLY, LATE = 20, soaks(60, 500)  # Pods that were, at the two looks
AT_ONCE = 2
RUNS_S = "30"
DHCP_S = 600  # as fleets set it that make more guests a day than there are addresses
SETTLES_S = 120.0  # the next rounds of everything that has rounds

NOT_OURS = (type, ModuleType, FunctionType, BuiltinFunctionType, asyncio.AbstractEventLoop, asyncio.Task)


def job(name: str) -> Pod:
    pod = vm_pod(name)
    env = (EnvVar(name=guest_rules.RUN_SECONDS, value=RUNS_S),)
    container = msgspec.structs.replace(pod.spec.containers[0], env=env)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,)))


async def churn(here: World, names: list[str]) -> None:
    async def take_turns() -> None:
        while names:
            name = names.pop()
            await here.create(job(name))
            await here.until_phase(name, SUCCEEDED)
            await here.client.delete(Pod, Key(NAMESPACE, name))
            await here.until_gone(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(take_turns())
    await asyncio.sleep(SETTLES_S)


def reachable(agent: Agent, here: World) -> Counter[str]:
    """How many objects of each type the agent holds; what it only speaks to (the Mac, the API) or runs in is not its own."""
    gc.collect()
    world = (here, here.mac, here.api, here.kill, agent.host.mac, agent.host.client)
    seen = {id(each) for each in world}
    found: Counter[str] = Counter()
    todo: list[object] = [agent]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, NOT_OURS):
            continue
        seen.add(id(one))
        found[type(one).__qualname__] += 1
        todo += gc.get_referents(one)
    return found


def series(metrics: Metrics) -> int:
    return sum(not line.startswith(b"#") for line in metrics.render().splitlines())


def files_in(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


async def test_nothing_grows_with_the_pods_that_were(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 Pods a host-day for months: of each only its logs stay, for their week."""
    monkeypatch.setattr(assembly, "REMEMBERED_EVENTS", EARLY)  # it is bounded: here the bound is reached at once
    metrics = Metrics()
    monkeypatch.setattr(simulated, "Metrics", lambda: metrics)
    async with simulated.world(tmp_path, clock) as here:
        write_leases(here.mac.store.sim, Leases(lease_s=DHCP_S))
        here.start_agent()
        await churn(here, [f"job-{number}" for number in range(EARLY)])
        agent = here.agent
        assert agent is not None
        held, shown, disk = reachable(agent, here), series(metrics), files_in(tmp_path / "state")
        await churn(here, [f"job-{number}" for number in range(EARLY, LATE)])
        grown = {kind: (more, held[kind]) for kind, more in (reachable(agent, here) - held).items()}
        assert max((more for more, _ in grown.values()), default=0) < (LATE - EARLY) / 2, grown
        # A kind of call that failed for the first time has new series; a Pod has none.
        assert series(metrics) - shown < LATE - EARLY
        assert b"job-" not in metrics.render()
        assert files_in(tmp_path / "state") == disk
        assert files_in(tmp_path / "userdata") == []
        assert list(agent.host.journal) == []
        per_pod = Counter(name.split(".", 1)[1] for name in files_in(tmp_path / "vm-log"))
        assert per_pod == {"log": LATE, "guest.log": LATE}
        assert len(here.mac.boots) == LATE
        assert here.mac.running() == []
