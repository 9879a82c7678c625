"""Guests that are asked again and again, on a simulated Mac: who is told what, when, and what a hung probe costs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from applecart.api.containers import Container, ContainerStatus, ExecAction, HttpGetAction, Probe, TcpSocketAction
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Pod, PodSpec, PodStatus
from applecart.clock import Clock
from applecart.errors import Transient
from applecart.kubelet.probes.ask import Asker
from applecart.kubelet.probes.checks import Plan
from applecart.kubelet.probes.runner import FIRST_JITTER_S, ProbeRunner
from applecart.kubelet.probes.state import Answer, Health
from applecart.sim.mac import Call, SimulatedMac
from applecart.sim.tart.guest_life import read_running, running_file
from applecart.sim.tart.json_file import save
from applecart.tart.driver import Tart
from applecart.tart.run_options import RunOptions
from tests.virtual_time import elapse

IMAGE = "ghcr.io/ci/runner:1"
SERVED = Probe(tcp_socket=TcpSocketAction(port=9091))
PAGE = Probe(http_get=HttpGetAction(port=9091, path="/metrics"))
CLOSED = Probe(tcp_socket=TcpSocketAction(port=81))
MARK = Probe(exec=ExecAction(command=("cat", "/ready")), period_seconds=5)


class Told:
    """What the runner said, in order."""

    def __init__(self) -> None:
        self.health: list[Health] = []
        self.failures: list[str] = []


class Guests:
    """A simulated Mac with Tart, and a runner over it."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self.home = home
        self.clock = clock
        self.told = Told()
        self.mac = SimulatedMac(home, clock)
        self.tart = Tart(self.mac, "/usr/local/bin/tart", home, clock)
        self.runner = self.new_runner()

    def new_runner(self) -> ProbeRunner:
        return ProbeRunner(
            Asker(self.mac, self.tart),
            self.clock,
            on_change=lambda uid, health: self.told.health.append(health),
            on_failure=lambda uid, text: self.told.failures.append(text),
        )

    async def boot(self, vm: str, **rule: object) -> str:
        (self.home / "sim").mkdir(parents=True, exist_ok=True)
        (self.home / "sim" / "guests.json").write_bytes(msgspec.json.encode([{"vm": vm, **rule}]))
        await self.tart.pull(IMAGE)
        await self.tart.clone(IMAGE, vm)
        folder = self.home.parent / f"run-{vm}"
        folder.mkdir()
        await self.tart.run(vm, RunOptions(), folder=folder, log=folder / "log")
        address = await self.tart.ip(vm, wait_s=60)
        assert address
        return address

    def put_file(self, vm: str, *paths: str) -> None:
        """These are the files of the guest from now on."""
        save(self.mac.store.sim / "files" / f"{vm}.json", dict.fromkeys(paths, b"yes"))

    def lose_network(self, vm: str) -> None:
        running = read_running(self.mac.store, vm)
        assert running is not None
        assert running.behaviour is not None
        behaviour = msgspec.structs.replace(running.behaviour, network_is_dead=True)
        save(running_file(self.mac.store, vm), msgspec.structs.replace(running, behaviour=behaviour))

    async def start(self, vm: str = "ci-runner", status: PodStatus | None = None, **probes: Probe) -> Health:
        address = await self.tart.ip(vm) or await self.boot(vm)
        return self.runner.start(pod(vm, status, **probes), vm, address, self.clock.now())


def pod(name: str, status: PodStatus | None = None, **probes: Probe) -> Pod:
    container = msgspec.structs.replace(Container(name="runner", image=IMAGE), **probes)
    return Pod(
        metadata=ObjectMeta(namespace="ci", name=name, uid=f"uid-of-{name}"),
        spec=PodSpec(containers=(container,)),
        status=status or PodStatus(),
    )


@pytest.fixture
async def guests(tmp_path: Path, clock: Clock) -> AsyncIterator[Guests]:
    guests = Guests(tmp_path / "tart", clock)
    yield guests
    await guests.runner.aclose()


async def test_a_guest_without_probes_is_ready_at_once_and_nobody_is_told(guests: Guests) -> None:
    await guests.boot("ci-runner")
    assert await guests.start() == Health(ready=True, alive=True, started=True)
    await elapse(60)
    assert not guests.told.health


@pytest.mark.parametrize("probe", [SERVED, PAGE, Probe(exec=ExecAction(command=("true",)))], ids=["tcp", "http", "exec"])
async def test_a_guest_becomes_ready_with_its_first_good_answer(guests: Guests, probe: Probe) -> None:
    await guests.boot("ci-runner")
    first = await guests.start(readiness_probe=probe)
    assert not first.ready
    assert first.sentence == "the readiness probe has not been answered yet"
    await elapse(FIRST_JITTER_S + 1)
    assert [health.ready for health in guests.told.health] == [True]
    assert not guests.told.failures


@pytest.mark.parametrize("probe", [SERVED, PAGE], ids=["tcp", "http"])
async def test_a_guest_whose_network_is_dead_is_not_ready(guests: Guests, probe: Probe) -> None:
    """Incident 41 and weakness 12: guests with an address and no network were Ready for 13 hours and failed every job."""
    await guests.boot("ci-runner", network_is_dead=True)
    await guests.start(readiness_probe=probe)
    await elapse(600)
    health = guests.runner.health("uid-of-ci-runner")
    assert health is not None
    assert (health.ready, health.alive) == (False, True)
    assert "the readiness probe failed" in health.sentence
    assert not guests.told.health
    assert all(text.startswith("Readiness probe failed: ") for text in guests.told.failures)
    assert len(guests.told.failures) == pytest.approx(60, abs=1)  # every 10 s, and never in a hurry


async def test_a_guest_that_loses_its_network_is_ready_no_longer(guests: Guests) -> None:
    """Incident 41: the host's NAT was replaced under guests that went on being Ready."""
    await guests.boot("ci-runner")
    await guests.start(readiness_probe=SERVED)
    await elapse(30)
    guests.lose_network("ci-runner")
    await elapse(35)
    assert [health.ready for health in guests.told.health] == [True, False]
    assert guests.told.health[-1].sentence.endswith("9091 did not answer within 1 s")


async def test_a_guest_that_goes_bad_and_good_again_is_told_both_times(guests: Guests) -> None:
    await guests.boot("ci-runner")
    guests.put_file("ci-runner", "/ready")
    await guests.start(readiness_probe=MARK)
    await elapse(6)
    guests.put_file("ci-runner")
    await elapse(11)
    assert [health.ready for health in guests.told.health] == [True]  # two failures are no verdict yet
    await elapse(10)
    guests.put_file("ci-runner", "/ready")
    await elapse(6)
    assert [health.ready for health in guests.told.health] == [True, False, True]


async def test_a_startup_probe_holds_the_others_back_until_it_passes(guests: Guests) -> None:
    await guests.boot("ci-runner")
    await guests.start(
        startup_probe=Probe(exec=MARK.exec, failure_threshold=100), readiness_probe=SERVED, liveness_probe=CLOSED
    )
    await elapse(120)
    assert not guests.told.health
    assert all(text.startswith("Startup probe failed: ") for text in guests.told.failures)
    guests.put_file("ci-runner", "/ready")
    await elapse(13)
    assert [(health.started, health.ready) for health in guests.told.health] == [(True, False), (True, True)]
    asked = len(guests.mac.calls)
    await elapse(60)
    assert not any("exec" in call.argv for call in guests.mac.calls[asked:])  # a guest starts once


async def test_a_liveness_probe_that_keeps_failing_says_once_that_the_guest_is_dead(guests: Guests) -> None:
    await guests.boot("ci-runner")
    probe = Probe(tcp_socket=TcpSocketAction(port=81), termination_grace_period_seconds=7)
    assert (await guests.start(liveness_probe=probe)).alive
    await elapse(15)
    assert not guests.told.health
    await elapse(600)
    (dead,) = guests.told.health
    assert (dead.alive, dead.ready, dead.grace_s) == (False, False, 7)
    assert dead.sentence.startswith("the liveness probe failed 3 times in a row; the last answer was: ")
    assert len(guests.told.failures) == 3  # it is not asked any more


async def test_a_startup_probe_that_never_passes_ends_the_guest(guests: Guests) -> None:
    await guests.boot("ci-runner")
    await guests.start(startup_probe=CLOSED)
    await elapse(60)
    assert [health.alive for health in guests.told.health] == [False]


async def test_a_probe_that_hangs_delays_no_other(guests: Guests) -> None:
    """I13: what hangs is killed at its timeout, and counts only for itself."""
    await guests.boot("ci-runner")
    hangs = Probe(exec=ExecAction(command=("sleep", "1000")), timeout_seconds=9, period_seconds=10)
    await guests.start(readiness_probe=SERVED, liveness_probe=hangs)
    await elapse(FIRST_JITTER_S + 1)
    assert [health.ready for health in guests.told.health] == [True]
    await elapse(40)
    assert [health.alive for health in guests.told.health] == [True, False]
    assert guests.told.failures == ["Liveness probe failed: the command sleep 1000 did not end within 9 s"] * 3
    assert not any("exec" in process.command for process in await guests.mac.processes())


async def test_a_tart_that_fails_makes_a_guest_unready_and_does_not_end_it(guests: Guests) -> None:
    """I12: a fault of the host must not end a job."""
    await guests.boot("ci-runner", no_agent=True)
    probe = Probe(exec=ExecAction(command=("true",)), timeout_seconds=5)
    seen = PodStatus(container_statuses=(ContainerStatus(name="runner", ready=True, started=True),))
    await guests.start(status=seen, readiness_probe=probe, liveness_probe=probe)
    await elapse(300)
    assert [(health.ready, health.alive) for health in guests.told.health] == [(False, True)]
    assert any("errored and resulted in unknown state" in text for text in guests.told.failures)


@pytest.mark.parametrize("probe", [SERVED, PAGE], ids=["tcp", "http"])
async def test_a_host_that_cannot_connect_makes_a_guest_unready_and_does_not_end_it(guests: Guests, probe: Probe) -> None:
    """I7 and I12: three faults of the host in a row ended a job, because they read as a guest that does not answer."""
    await guests.boot("ci-runner")
    await guests.start(readiness_probe=probe, liveness_probe=probe)
    await elapse(30)

    async def lacks_descriptors(call: Call) -> None:
        if call.verb == "connect":
            raise Transient("no connection: Too many open files")

    guests.mac.before_call = lacks_descriptors
    await elapse(300)
    assert [(health.ready, health.alive) for health in guests.told.health] == [(True, True), (False, True)]
    guests.mac.before_call = None
    await elapse(15)
    assert guests.told.health[-1].ready


async def test_a_clock_that_was_set_back_does_not_put_the_first_probe_off(guests: Guests, clock: Clock) -> None:
    """The host's clock was corrected by hours after the guest had started, and its probes began hours late."""
    address = await guests.boot("ci-runner")
    started_at = clock.now() + timedelta(hours=5)
    probe = Probe(tcp_socket=SERVED.tcp_socket, initial_delay_seconds=20)
    guests.runner.start(pod("ci-runner", readiness_probe=probe), "ci-runner", address, started_at)
    await elapse(20 + FIRST_JITTER_S + 1)
    assert [health.ready for health in guests.told.health] == [True]


async def test_a_restart_of_the_agent_makes_nobody_unready(guests: Guests) -> None:
    await guests.boot("ci-runner")
    seen = PodStatus(container_statuses=(ContainerStatus(name="runner", ready=True, started=True),))
    first = await guests.start(status=seen, readiness_probe=SERVED, startup_probe=CLOSED)
    assert first == Health(ready=True, alive=True, started=True)
    await elapse(120)
    assert not guests.told.health
    assert not guests.told.failures


async def test_the_initial_delay_counts_from_the_start_of_the_guest_not_of_the_agent(guests: Guests, clock: Clock) -> None:
    address = await guests.boot("ci-runner")
    started_at = clock.now()
    await elapse(100)
    probe = Probe(tcp_socket=SERVED.tcp_socket, initial_delay_seconds=120)
    guests.runner.start(pod("ci-runner", readiness_probe=probe), "ci-runner", address, started_at)
    await elapse(19)
    assert not guests.told.health
    await elapse(1 + FIRST_JITTER_S + 1)
    assert [health.ready for health in guests.told.health] == [True]


async def test_a_guest_that_was_stopped_is_not_asked_and_not_told_of(guests: Guests) -> None:
    await guests.boot("ci-runner")
    await guests.start(readiness_probe=CLOSED, liveness_probe=Probe(exec=ExecAction(command=("sleep", "5")), timeout_seconds=9))
    await elapse(FIRST_JITTER_S + 1)
    await guests.runner.stop("uid-of-ci-runner")
    await guests.runner.stop("uid-of-ci-runner")
    asked, failures = len(guests.mac.calls), len(guests.told.failures)
    await elapse(120)
    assert len(guests.mac.calls) == asked
    assert len(guests.told.failures) == failures
    assert guests.runner.health("uid-of-ci-runner") is None
    assert len(asyncio.all_tasks()) == len([task for task in asyncio.all_tasks() if "probe" not in task.get_name()])


async def test_a_new_address_is_asked_from_then_on(guests: Guests, clock: Clock) -> None:
    address = await guests.boot("ci-runner")
    asked = pod("ci-runner", readiness_probe=SERVED)
    guests.runner.start(asked, "ci-runner", "192.168.64.250", clock.now())
    await elapse(60)
    assert not guests.told.health
    guests.runner.start(asked, "ci-runner", address, clock.now())
    await elapse(12)
    assert [health.ready for health in guests.told.health] == [True]


async def test_a_probe_that_cannot_be_asked_keeps_the_guest_unready_with_a_sentence(guests: Guests) -> None:
    await guests.boot("ci-runner")
    health = await guests.start(readiness_probe=Probe())
    assert (health.ready, health.alive) == (False, True)
    assert "grpc is not supported" in health.sentence


async def test_a_probe_that_is_cancelled_from_within_is_asked_again_and_it_is_said(
    guests: Guests, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its task ended without a word: a guest that hung later was never noticed."""
    ask, surprises = Asker.ask, [asyncio.CancelledError()]

    async def surprised(self: Asker, plan: Plan, vm: str, address: str) -> Answer:
        if surprises:
            raise surprises.pop()
        return await ask(self, plan, vm, address)

    monkeypatch.setattr(Asker, "ask", surprised)
    await guests.boot("ci-runner")
    await guests.start(readiness_probe=SERVED)
    await elapse(30)
    assert [health.ready for health in guests.told.health] == [True]
    assert [one.message for one in caplog.records] == ["a probe or its listener failed"]


async def test_a_listener_that_fails_does_not_end_the_asking(guests: Guests) -> None:
    await guests.boot("ci-runner")

    def fails(uid: str, text: str) -> None:
        guests.told.failures.append(text)
        raise RuntimeError("a listener is broken")

    runner = ProbeRunner(Asker(guests.mac, guests.tart), guests.clock, on_change=lambda uid, health: None, on_failure=fails)
    runner.start(pod("ci-runner", readiness_probe=CLOSED), "ci-runner", "192.168.64.2", guests.clock.now())
    await elapse(35)
    await runner.aclose()
    assert len(guests.told.failures) >= 3
