"""An agent that is killed anywhere on the way to a golden, and the next one: one golden, marked, and nothing left over."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock
from applecart.kubelet.garbage.ledger import LEDGER_FILE
from applecart.sim.mac import Call, SimulatedMac
from applecart.tart.files import Files
from applecart.tart.marks import GoldenMark
from tests.kubelet.agents import IMAGE, Agent, Killed, MortalFiles
from tests.virtual_time import elapse


class Executioner:
    """Counts the moments at which an agent could die, and kills it at one of them."""

    def __init__(self, mac: SimulatedMac, at: int | None) -> None:
        self.mac = mac
        self.at = at
        self.moments: list[str] = []
        self.agent: asyncio.Task[object] | None = None
        mac.before_call = lambda call: self._called("before", call)
        mac.after_call = lambda call: self._called("after", call)

    def moment(self, what: str) -> None:
        self.moments.append(what)
        if self.at == len(self.moments) - 1:
            self.kill()
            raise Killed

    def kill(self) -> None:
        self.mac.kill_agent()
        assert self.agent is not None
        self.agent.cancel()

    async def _called(self, when: str, call: Call) -> None:
        self.moments.append(f"{when} {call.verb} {call.tart}")
        if self.at == len(self.moments) - 1:
            self.kill()

    def let_go(self) -> None:
        self.mac.before_call = self.mac.after_call = None
        self.mac.start_agent()


async def live_and_die(mac: SimulatedMac, clock: Clock, folder: Path, at: int | None) -> list[str]:
    """One life of the agent: settle, then the golden of a Pod. The moments it passed."""
    executioner = Executioner(mac, at)
    agent = Agent(mac, clock, folder, MortalFiles(executioner.moment, lambda: mac.agent_is_dead))

    async def life() -> None:
        await agent.goldens.settle()
        golden = await agent.goldens.ensure(IMAGE)
        await agent.goldens.clone(golden, "ci-job")

    executioner.agent = asyncio.create_task(life())
    await asyncio.wait([executioner.agent])
    if at is None:
        executioner.agent.result()
    elif not executioner.agent.cancelled():
        executioner.agent.exception()
    agent.tart.close()
    executioner.let_go()
    return executioner.moments


async def count_moments(tmp_path: Path, clock: Clock) -> int:
    return len(await live_and_die(SimulatedMac(tmp_path / "count" / "tart", clock), clock, tmp_path / "count", None))


def assert_whole(mac: SimulatedMac, agent: Agent, vm: str, digest: str) -> None:
    assert mac.vms() == [vm]
    mark = agent.home.mark(vm)
    assert isinstance(mark, GoldenMark)
    assert (mark.digest, mark.images) == (digest, (IMAGE,))
    assert list((agent.state / "goldens").iterdir()) == []
    assert agent.goldens.ledger.pulled() == {digest}
    assert agent.home.half_made() == []


async def test_an_agent_killed_at_any_moment_leaves_what_the_next_one_can_finish(tmp_path: Path, clock: Clock) -> None:
    count = await count_moments(tmp_path, clock)
    assert count > 15
    for at in range(count):
        folder = tmp_path / str(at)
        mac = SimulatedMac(folder / "tart", clock)
        moments = await live_and_die(mac, clock, folder, at)
        agent = Agent(mac, clock, folder)
        await agent.goldens.settle()
        golden = await agent.goldens.ensure(IMAGE)
        await elapse(60)  # a clone of the dead agent would be over by now, and must not have undone anything
        await agent.goldens.settle()
        for vm in mac.vms():
            if vm != golden.vm:
                await agent.tart.delete(vm)  # the Pod's own, which the Pod's journal answers for
        try:
            assert_whole(mac, agent, golden.vm, golden.digest)
        except AssertionError as error:
            raise AssertionError(f"killed at {at}, {moments[-1]}") from error
        agent.tart.close()


@pytest.mark.parametrize("after_s", [0.1, 0.4, 50, 200, 399, 400.5, 401, 402])
async def test_an_agent_killed_in_the_middle_of_a_pull_or_clone_leaves_what_the_next_one_can_finish(
    tmp_path: Path, clock: Clock, after_s: float
) -> None:
    """Its Tart lives on: the next agent's own pull waits for it, and what it fetched is ours."""
    mac = SimulatedMac(tmp_path / "tart", clock)
    executioner = Executioner(mac, None)
    agent = Agent(mac, clock, tmp_path, MortalFiles(lambda _: None, lambda: mac.agent_is_dead))
    executioner.agent = asyncio.create_task(agent.goldens.ensure(IMAGE))
    await elapse(after_s)
    executioner.kill()
    await asyncio.wait([executioner.agent])
    if not executioner.agent.cancelled():
        executioner.agent.exception()
    agent.tart.close()
    executioner.let_go()
    again = Agent(mac, clock, tmp_path)
    await again.goldens.settle()
    golden = await again.goldens.ensure(IMAGE)
    await elapse(1000)
    assert_whole(mac, again, golden.vm, golden.digest)


async def test_a_clone_that_outlives_its_agent_does_not_replace_the_next_ones_golden(tmp_path: Path, clock: Clock) -> None:
    mac = SimulatedMac(tmp_path / "tart", clock)
    (mac.home / "faults.json").write_text('{"faults": [{"on": "clone", "kind": "slow", "seconds": 100}]}')
    agent = Agent(mac, clock, tmp_path)
    await agent.tart.pull(IMAGE)
    life = asyncio.create_task(agent.goldens.ensure(IMAGE))
    await elapse(5)
    mac.kill_agent()
    life.cancel()
    mac.start_agent()
    assert [process for process in await mac.processes() if " clone " in process.command]
    again = Agent(mac, clock, tmp_path)
    await again.goldens.settle()
    golden = await again.goldens.ensure(IMAGE)
    await elapse(300)
    assert isinstance(again.home.mark(golden.vm), GoldenMark)


async def test_an_intent_that_came_to_nothing_is_forgotten_after_an_hour(tmp_path: Path, clock: Clock) -> None:
    mac = SimulatedMac(tmp_path / "tart", clock)
    executioner = Executioner(mac, None)
    agent = Agent(mac, clock, tmp_path)
    await agent.goldens.ensure(IMAGE)
    intents = agent.state / "goldens"
    executioner.let_go()
    mark = agent.home.mark(mac.vms()[0])
    assert isinstance(mark, GoldenMark)
    intent = {"digest": mark.digest, "image": IMAGE, "began_at": clock.now()}
    (intents / f"{mac.vms()[0]}.json").write_bytes(msgspec.json.encode(intent))
    await agent.tart.delete(mac.vms()[0])
    await agent.goldens.settle()
    assert len(list(intents.iterdir())) == 1
    await elapse(3601)
    await agent.goldens.settle()
    assert list(intents.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b'{"digest": "a b", "image": "", "began_at": "2026-01-01T00:00:00Z"}']
)
async def test_an_intent_that_cannot_be_read_proves_nothing(tmp_path: Path, clock: Clock, content: bytes) -> None:
    agent = Agent(SimulatedMac(tmp_path / "tart", clock), clock, tmp_path)
    (agent.state / "goldens" / "tuist-golden-0123456789abcdef.json").write_bytes(content)
    (agent.state / "goldens" / "note.txt").write_bytes(content)
    await agent.goldens.settle()
    assert list((agent.state / "goldens").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"pulled": [1]}', b'{"pulls": [{"image": "x"}]}'])
async def test_a_ledger_that_cannot_be_read_is_set_aside_and_nothing_is_ours(
    tmp_path: Path, clock: Clock, content: bytes
) -> None:
    mac = SimulatedMac(tmp_path / "tart", clock)
    Files().make_folder(tmp_path / "state")
    (tmp_path / "state" / LEDGER_FILE).write_bytes(content)
    agent = Agent(mac, clock, tmp_path)
    assert agent.goldens.ledger.pulled() == frozenset()
    assert (tmp_path / "state" / f"{LEDGER_FILE}.unreadable").read_bytes() == content
