"""Bad luck on one host, from a seed: jobs come and go, Tart misbehaves, the agent dies, the API goes away. A soak takes hours.

At every moment no disk is booted twice and no Pod has a second VM; when the bad luck ends everything settles: no Pod hangs, and
nothing but goldens is left on the host. A seed that fails is replayed by its number.
"""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.kube.errors import NotFound
from applecart.sim.tart.faults import Fault
from tests.kube.faults import FaultyTransport, Hung, Lost, Refused
from tests.kubelet.incidents.scene import cut_off, go_wrong, job, scene
from tests.kubelet.world import NAMESPACE, World
from tests.soak import seeds, soaks

LASTS_S = soaks(1200.0, 2 * 3600.0)
SETTLES_S = 2 * 3600.0  # longer than any class of trouble waits
VERBS = ("pull", "clone", "set", "run", "stop", "delete", "ip", "exec", "list", "launchctl")
KINDS = ("hang", "fail", "crash", "slow", "no-space")


async def jobs(here: World, chance: random.Random) -> None:
    """People: at most three Pods at a time, some deleted early."""
    number = 0
    while True:
        pods = await here.client.list(Pod, NAMESPACE)
        if len(pods) < 3:
            number += 1
            await here.create(job(f"job-{number}", runs_s=chance.randrange(5, 600), code=chance.choice((0, 0, 3))))
        for pod in pods:
            if pod.is_terminal or chance.random() < 0.05:
                with suppress(NotFound):
                    await here.client.delete(Pod, pod.key)
        await asyncio.sleep(chance.uniform(1, 60))


async def misfortune(here: World, chance: random.Random) -> None:
    while True:
        await asyncio.sleep(chance.uniform(10, 240))
        match chance.randrange(4):
            case 0:
                await here.kill_agent()
                await asyncio.sleep(chance.uniform(0, 60))
                here.start_agent()
            case 1:
                here.mac.lose_gui_session()
            case _:
                go_wrong(
                    here,
                    *(
                        Fault(
                            on=chance.choice(VERBS),
                            kind=chance.choice(KINDS),
                            when=chance.choice(("before", "after")),
                            seconds=chance.uniform(1, 90),
                            times=chance.randrange(1, 4),
                        )
                        for _ in range(chance.randrange(1, 4))
                    ),
                )


async def outages(wire: FaultyTransport, chance: random.Random) -> None:
    while True:
        await asyncio.sleep(chance.uniform(300, 1800))
        wire.plan = lambda request: chance.choice((Refused(), Hung(), Lost()))
        wire.sever()
        await asyncio.sleep(chance.uniform(1, 300))
        wire.heal()


@pytest.mark.parametrize("seed", seeds(2, soak=50))
async def test_whatever_happens_no_vm_boots_twice_and_nothing_is_left(seed: int, tmp_path: Path, clock: Clock) -> None:
    chance = random.Random(seed)
    async with scene(tmp_path, clock) as here:
        people = here.client
        wire = cut_off(here)
        here.start_agent()
        works = (jobs(here, chance), misfortune(here, chance), outages(wire, chance))
        bad_luck = [asyncio.create_task(work) for work in works]
        await asyncio.wait(bad_luck, timeout=LASTS_S, return_when=asyncio.FIRST_EXCEPTION)
        for task in bad_luck:
            task.cancel()
        for result in await asyncio.gather(*bad_luck, return_exceptions=True):
            assert isinstance(result, asyncio.CancelledError), result
        go_wrong(here)
        wire.heal()
        assert here.kill is not None
        if here.kill.is_dead:
            here.start_agent()
        for pod in await people.list(Pod, NAMESPACE):
            with suppress(NotFound):
                await people.delete(Pod, Key(NAMESPACE, pod.name))
        async with asyncio.timeout(SETTLES_S):
            while here.agent is None or any(here.agent.host.journal) or await people.list(Pod, NAMESPACE):  # noqa: ASYNC110
                await asyncio.sleep(10)
        boots = here.mac.boots
        assert len(boots) > 3
        assert [boot for boot in boots if boot.times > 1] == []
        assert [vm for vm, times in Counter(boot.vm for boot in boots).items() if times > 1] == []
        assert here.mac.running() == []
        assert [vm for vm in here.mac.vms() if not vm.startswith("tuist-golden-")] == []
        assert list((tmp_path / "userdata").iterdir()) == []
