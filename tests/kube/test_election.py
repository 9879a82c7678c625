"""At most one process works, whatever happens to processes, clocks and the API; and soon one does again."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.coordination import Lease
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock, VirtualClock
from applecart.embedded.server.server import RunningApi
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.election import STUCK_EXIT_CODE, Election, StuckWork, WorkEndedItself, unique_identity
from applecart.kube.lease import JITTER, LeaseHold, Standing, Timing
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.kube.backends import Backend
from tests.kube.embedded_api import serving
from tests.kube.faults import FaultyTransport, Hung, Refused, always
from tests.kube.processes import Link, Process, Served, Weather, World
from tests.soak import soaks
from tests.virtual_time import elapse

KEY = Key("test", "provider")
TIMING = Timing()
SLOWEST_STOP_S = TIMING.stop_margin_s - 0.05
HEALED_WITHIN_S = TIMING.lease_s + TIMING.retry_s * (1 + JITTER) + (TIMING.lease_s - TIMING.renew_deadline_s)
ACT_EVERY_S = 0.5


class Term(NamedTuple):
    """One run of the work in one process."""

    worker: "Candidate"
    number: int


class Candidate:
    """A process that wants to lead. Its work acts every half second, under the fence, and takes a while to stop."""

    def __init__(self, stage: "Stage", name: str, *, rate: float = 1.0, skew_s: float = 0.0, stop_s: float = 0.0) -> None:
        self.stage = stage
        self.name = name
        self.stop_s = stop_s
        self.process = Process(stage.world, name, rate=rate, skew=timedelta(seconds=skew_s))
        self.stuck: list[str] = []
        self.pauses_at_start = 0
        self.term: Term | None = None
        self.link = Link(stage.weather, stage.api)
        client = Client(self.link, self.process.clock)
        self.election = Election(client, KEY, name, self.process.clock, on_stuck=self.end_process)
        self.task = self.process.start(self.election.lead(self.work))

    async def work(self) -> None:
        self.term = Term(self, self.stage.next_term())
        self.pauses_at_start = self.process.pauses
        self.stage.check_alone(self)
        try:
            while True:
                self.act(self.term)
                await elapse(ACT_EVERY_S)
        finally:
            await elapse(self.stop_s)
            self.act(self.term)
            self.term = None

    def end_process(self, sentence: str) -> None:
        """What `os._exit` is here."""
        self.stuck.append(sentence)
        self.process.kill()

    def act(self, term: Term) -> None:
        if self.election.is_leader():
            self.stage.acted(term)

    @property
    def was_paused(self) -> bool:
        return self.process.is_killed or self.process.pauses > self.pauses_at_start


class Stage:
    """One API, many candidates, and the record of who did what when."""

    def __init__(self, seed: int = 0) -> None:
        self.world = World(seed)
        server = Process(self.world, "api")
        self.api = Served(server, serving(server.clock, [KEY.namespace]))
        self.weather = Weather()
        self.candidates: list[Candidate] = []
        self.acts: list[tuple[float, Term]] = []
        self._terms = 0

    def add(self, name: str = "", *, rate: float = 1.0, skew_s: float = 0.0, stop_s: float = 0.0) -> Candidate:
        name = name or f"candidate-{len(self.candidates)}"
        self.candidates.append(Candidate(self, name, rate=rate, skew_s=skew_s, stop_s=stop_s))
        return self.candidates[-1]

    def next_term(self) -> int:
        self._terms += 1
        return self._terms

    def check_alone(self, starting: Candidate) -> None:
        """Whoever starts to work finds nobody else at work, except one that stood still meanwhile: the fence holds that."""
        others = [other.name for other in self.candidates if other is not starting and other.term and not other.was_paused]
        assert not others, f"{starting.name} starts at {self.world.now_s} s while {others} work"

    def acted(self, term: Term) -> None:
        latest = max((seen.number for _, seen in self.acts[-1:]), default=0)
        assert term.number >= latest, (
            f"{term.worker.name} acts in term {term.number} after term {latest} at {self.world.now_s} s"
        )
        self.acts.append((self.world.now_s, term))

    def check_processes(self) -> None:
        """A broken invariant inside a process ended it; here it comes out. Only a process that stood still may get stuck."""
        for candidate in self.candidates:
            if candidate.stuck:
                assert candidate.process.pauses
            elif candidate.task.done() and not candidate.task.cancelled():
                candidate.task.result()

    def leader(self) -> str:
        """Who acted within the last second; empty when nobody did."""
        at_s, term = self.acts[-1] if self.acts else (-100.0, None)
        return term.worker.name if term and self.world.now_s - at_s <= 2 * ACT_EVERY_S else ""

    def lease(self) -> Lease:
        """As the API has it, read past the weather."""
        reader = Process(self.world, "reader")
        client = Client(self.api, reader.clock)
        task = reader.loop.create_task(client.get(Lease, KEY))
        self.world.run(0)
        return task.result()


@contextmanager
def staged(seed: int = 0) -> Iterator[Stage]:
    stage = Stage(seed)
    try:
        yield stage
    finally:
        stage.weather.heal()
        stage.world.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


def test_a_lone_candidate_leads_at_once_and_renews(stage: Stage) -> None:
    candidate = stage.add("a")
    stage.world.run(1)
    assert stage.leader() == "a"
    first = stage.lease()
    assert (first.holder, first.spec.lease_duration_seconds, first.spec.lease_transitions) == ("a", 15, 0)
    stage.world.run(600)
    assert stage.leader() == "a"
    later = stage.lease()
    assert later.renewed_at is not None
    assert first.renewed_at is not None
    assert later.renewed_at - first.renewed_at > timedelta(minutes=9)
    assert later.acquired_at == first.acquired_at
    assert candidate.term is not None
    assert candidate.term.number == 1


def test_a_standby_waits_while_the_leader_renews(stage: Stage) -> None:
    stage.add("a")
    stage.world.run(1)
    stage.add("b")
    stage.world.run(3600)
    assert {term.worker.name for _, term in stage.acts} == {"a"}


def test_a_leader_that_stops_cleanly_lets_a_standby_in_at_its_next_look(stage: Stage) -> None:
    a = stage.add("a", stop_s=1.0)
    stage.world.run(1)
    stage.add("b")
    stage.world.run(20)
    a.process.cancel(a.task)
    took_s = stage.world.run_until(lambda: stage.leader() == "b", at_most_s=10)
    assert took_s <= 1.0 + TIMING.retry_s * (1 + JITTER) + 0.5
    assert stage.lease().spec.lease_transitions == 1
    assert a.task.cancelled()


def test_a_candidate_that_is_stopped_while_it_takes_the_lease_gives_it_back(stage: Stage) -> None:
    """It had written its name and was stopped before it heard so: nobody worked for the whole lease time."""
    stage.weather.latency_s = 1.0
    a = stage.add("a")
    stage.world.run(2.75)  # a look, a creation, and half of the take
    assert (stage.lease().holder, stage.leader()) == ("a", "")
    a.process.cancel(a.task)
    stage.world.run(5)
    assert stage.lease().holder == ""


def test_a_clean_exit_without_a_standby_leaves_the_record_empty(stage: Stage) -> None:
    a = stage.add("a")
    stage.world.run(5)
    a.process.cancel(a.task)
    stage.world.run(1)
    assert stage.lease().holder == ""


def test_a_leader_that_dies_is_replaced_when_its_lease_has_run_out_and_not_before(stage: Stage) -> None:
    a = stage.add("a")
    stage.world.run(1)
    stage.add("b")
    stage.world.run(60)
    a.process.kill()
    last_act_s = stage.acts[-1][0]
    took_s = stage.world.run_until(lambda: stage.leader() == "b", at_most_s=HEALED_WITHIN_S)
    assert stage.world.now_s - last_act_s > TIMING.lease_s - TIMING.retry_s
    assert took_s <= HEALED_WITHIN_S


def test_clocks_that_disagree_by_hours_change_nothing(stage: Stage) -> None:
    a = stage.add("a", skew_s=-7200)
    stage.world.run(1)
    stage.add("b", skew_s=7200)
    stage.world.run(120)
    assert stage.leader() == "a"
    a.process.kill()
    assert stage.world.run_until(lambda: stage.leader() == "b", at_most_s=HEALED_WITHIN_S) > TIMING.lease_s / 2
    stage.add("c", skew_s=-90_000)
    stage.world.run(120)
    assert stage.leader() == "b"


@pytest.mark.parametrize("cut_after_s", [number / 8 for number in range(48)])
@pytest.mark.parametrize("latency_s", [0.0, 4.0])
def test_a_leader_that_is_cut_off_and_slow_to_stop_has_ended_when_a_standby_with_a_fast_clock_takes_over(
    stage: Stage, latency_s: float, cut_after_s: float
) -> None:
    """The worst case: nobody but the leader is cut off, right after a renewal that the standby saw at once."""
    a = stage.add("a", stop_s=SLOWEST_STOP_S)
    stage.world.run(1)
    stage.add("b", rate=1.05)
    a.link.latency_s = latency_s
    stage.world.run(20 + cut_after_s)
    a.link.is_cut = True
    stage.world.run_until(lambda: stage.leader() == "b", at_most_s=HEALED_WITHIN_S)
    stage.check_processes()


def test_in_an_outage_the_leader_stops_by_its_deadline_and_leads_again_afterwards(stage: Stage) -> None:
    stage.add("a", stop_s=2.0)
    stage.world.run(5)
    stage.weather.is_down = True
    stage.world.run(TIMING.safe_s + 0.1)
    assert stage.candidates[0].term is None
    stage.world.run(3600)
    assert stage.leader() == ""
    stage.weather.heal()
    stage.world.run_until(lambda: stage.leader() == "a", at_most_s=HEALED_WITHIN_S)


def test_an_api_that_answers_late_but_answers_keeps_its_leader(stage: Stage) -> None:
    stage.add("a")
    stage.add("b")
    stage.world.run(20)
    leader = stage.leader()
    stage.weather.latency_s = 2.0
    stage.world.run(300)
    assert stage.leader() == leader


def test_one_call_that_hangs_does_not_cost_the_leadership(stage: Stage) -> None:
    a = stage.add("a")
    stage.world.run(5)
    stage.weather.hangs = True
    stage.world.run(TIMING.retry_s + 0.5)
    stage.weather.heal()
    stage.world.run(60)
    assert a.term is not None
    assert a.term.number == 1


def test_a_take_over_whose_answer_was_lost_is_found_at_the_next_look(stage: Stage) -> None:
    stage.weather.answers_to_lose = 2  # of the creation, and of the take-over
    stage.add("a")
    stage.world.run_until(lambda: stage.leader() == "a", at_most_s=10)


def test_a_process_that_stood_still_for_a_minute_does_nothing_when_it_wakes_up(stage: Stage) -> None:
    """A VM that is moved to another host comes back a minute later, in the middle of a step, with an old view."""
    a = stage.add("a", stop_s=0.5)
    stage.world.run(1)
    stage.add("b")
    stage.world.run(20)
    a.process.pause(60)
    stage.world.run(40)
    assert stage.leader() == "b"
    stage.world.run(60)  # "a" woke up and `acted` would have objected
    assert stage.leader() == "b"
    assert a.term is None
    assert a.stuck == []


def test_a_machine_that_slept_knows_it_by_its_wall_clock(stage: Stage) -> None:
    """The monotonic clock stands still while a machine sleeps; the wall clock does not."""
    a = stage.add("a")
    stage.world.run(5)
    assert a.election.is_leader()
    a.process.clock.skew += timedelta(minutes=10)
    assert not a.election.is_leader()
    stage.world.run(TIMING.retry_s + 0.1)
    assert a.election.is_leader()  # the next renewal showed that nobody took over meanwhile


def test_work_that_does_not_stop_in_its_margin_ends_the_process(stage: Stage) -> None:
    a = stage.add("a", stop_s=60)
    stage.world.run(5)
    stage.weather.is_down = True
    stage.world.run(TIMING.safe_s + 0.1)
    (sentence,) = a.stuck
    assert "test/provider did not stop within" in sentence
    with pytest.raises(StuckWork):
        a.task.result()


def test_a_leader_whose_record_was_overwritten_stops_at_its_next_renewal(stage: Stage) -> None:
    a = stage.add("a")
    stage.world.run(5)
    intruder = Process(stage.world, "intruder")
    spec = {"holderIdentity": "z", "renewTime": "2031-01-01T00:00:00.000000Z"}
    intruder.start(write(Client(stage.api, intruder.clock), spec))
    stage.world.run(TIMING.retry_s + 0.1)
    assert a.term is None
    stage.world.run(TIMING.lease_s + TIMING.retry_s * 2)
    assert stage.leader() == "a"  # nobody renewed the intruder's record


async def write(client: Client, spec: dict[str, str]) -> None:
    await client.patch(Lease, KEY, Merge({"spec": spec}))


@pytest.mark.parametrize("deleted_after_s", [number / 8 for number in range(24)])
def test_a_lease_deleted_under_its_holder_is_made_again_by_the_holder(stage: Stage, deleted_after_s: float) -> None:
    a = stage.add("a")
    stage.world.run(1)
    stage.add("b")
    stage.world.run(20 + deleted_after_s)
    reaper = Process(stage.world, "reaper")
    reaper.start(Client(stage.api, reaper.clock).delete(Lease, KEY))
    stage.world.run(60)
    assert stage.leader() == "a"
    assert stage.lease().holder == "a"
    assert a.term is not None
    assert a.term.number == 1


# On one loop, and on every API


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def election(api: Backend, name: str, clock: Clock) -> Election:
    return Election(api.client, Key(api.namespace, "provider"), name, clock, timing=Timing(10, 2.0, 0.2))


async def test_leadership_passes_from_one_to_the_next_on_every_api(api: Backend, clock: Clock) -> None:
    """Short times: on a real API this test waits for real."""
    at_work: list[str] = []
    started = {"a": asyncio.Event(), "b": asyncio.Event()}

    def work_of(name: str) -> asyncio.Task[None]:
        async def work() -> None:
            assert at_work == []
            at_work.append(name)
            started[name].set()
            try:
                await forever()
            finally:
                at_work.remove(name)

        return asyncio.create_task(election(api, name, clock).lead(work))

    a = work_of("a")
    await asyncio.wait_for(started["a"].wait(), 10)
    b = work_of("b")
    lease = await api.client.get(Lease, Key(api.namespace, "provider"))
    assert (lease.holder, lease.spec.lease_transitions) == ("a", 0)
    a.cancel()
    await asyncio.wait_for(started["b"].wait(), 10)
    lease = await api.client.get(Lease, Key(api.namespace, "provider"))
    assert (lease.holder, lease.spec.lease_transitions) == ("b", 1)
    b.cancel()
    await asyncio.wait({a, b})
    lease = await api.client.get(Lease, Key(api.namespace, "provider"))
    assert (lease.holder, at_work) == ("", [])


async def test_work_that_ends_gives_the_lease_back_and_ends_the_election(api: Backend, clock: Clock) -> None:
    async def work() -> None:
        return

    await asyncio.wait_for(election(api, "a", clock).lead(work), 10)
    assert (await api.client.get(Lease, Key(api.namespace, "provider"))).holder == ""


async def test_an_error_of_the_work_comes_out_and_the_lease_is_given_back(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)

    async def work() -> None:
        raise BadInput("the fleet file is empty")

    with pytest.raises(BadInput, match="the fleet file is empty"):
        await Election(client, KEY, "a", clock).lead(work)
    assert (await client.get(Lease, KEY)).holder == ""


async def test_a_renewal_that_fails_by_a_bug_is_told_and_the_lease_is_taken_again(
    running: RunningApi, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was told as a Lease that another took, and of the bug nobody heard."""
    attempt, began = LeaseHold.attempt, 0

    async def surprised(self: LeaseHold) -> Standing:
        if asyncio.current_task() in renewals() and began == 1:
            raise RuntimeError("a bug")
        return await attempt(self)

    def renewals() -> list[asyncio.Task[object]]:
        return [task for task in asyncio.all_tasks() if task.get_name().startswith("renewal")]

    async def work() -> None:
        nonlocal began
        began += 1
        await elapse(100)

    monkeypatch.setattr(LeaseHold, "attempt", surprised)
    await Election(Client(running.transport(), clock), KEY, "a", clock).lead(work)
    assert began == 2
    assert "the lease was lost because its renewal failed unexpectedly" in caplog.text


async def test_work_that_was_cancelled_from_within_is_told_from_a_stop(running: RunningApi, clock: Clock) -> None:
    async def work() -> None:
        inner = asyncio.ensure_future(forever())
        inner.cancel()
        await inner

    with pytest.raises(WorkEndedItself, match="test/provider was cancelled from within"):
        await Election(Client(running.transport(), clock), KEY, "a", clock).lead(work)


async def test_work_that_is_stopped_may_act_until_it_has_ended(running: RunningApi, clock: Clock) -> None:
    """So that it can leave things tidy."""
    might_act: list[bool] = []

    async def work() -> None:
        try:
            await forever()
        finally:
            might_act.append(ours.is_leader())

    ours = Election(Client(running.transport(), clock), KEY, "a", clock)
    task = asyncio.create_task(ours.lead(work))
    await elapse(1)
    task.cancel()
    await asyncio.wait({task})
    assert might_act == [True]
    assert not ours.is_leader()


async def test_an_impatient_second_cancellation_does_not_leave_the_work_behind(running: RunningApi, clock: Clock) -> None:
    is_at_work = False

    async def work() -> None:
        nonlocal is_at_work
        is_at_work = True
        try:
            await forever()
        finally:
            await elapse(2)
            is_at_work = False

    task = asyncio.create_task(Election(Client(running.transport(), clock), KEY, "a", clock).lead(work))
    await elapse(1)
    assert is_at_work
    task.cancel()
    await elapse(0.5)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not is_at_work
    assert (await Client(running.transport(), clock).get(Lease, KEY)).holder == ""


async def test_a_leader_that_is_stopped_while_it_ends_a_lost_term_gives_the_lease_back(
    running: RunningApi, clock: Clock
) -> None:
    """The work takes two seconds to stop, and within them the process is told to stop as well. It left its name behind."""
    network = FaultyTransport(running.transport())

    async def work() -> None:
        try:
            await forever()
        finally:
            await elapse(2)

    task = asyncio.create_task(Election(Client(network, clock), KEY, "a", clock).lead(work))
    await elapse(1)
    network.plan = always(Refused())
    await elapse(TIMING.renew_deadline_s)
    network.heal()
    task.cancel()
    await asyncio.wait({task}, timeout=10)
    assert task.done()
    assert (await Client(running.transport(), clock).get(Lease, KEY)).holder == ""


@pytest.mark.parametrize("has_led", [False, True])
async def test_a_standby_that_is_stopped_waits_for_no_api(running: RunningApi, clock: Clock, has_led: bool) -> None:
    """It has nothing to give back, so it does not look whether it has."""
    network = FaultyTransport(running.transport())
    direct = Client(running.transport(), clock)
    terms: list[float] = []

    async def work() -> None:
        terms.append(clock.monotonic())
        await forever()

    task = asyncio.create_task(Election(Client(network, clock), KEY, "a", clock).lead(work))
    if has_led:
        await elapse(1)
    else:
        await elapse(0)
        task.cancel()
        await asyncio.wait({task})
        await direct.create(Lease(metadata=ObjectMeta(name=KEY.name, namespace=KEY.namespace)))
    await direct.patch(Lease, KEY, Merge({"spec": {"holderIdentity": "z", "renewTime": "2031-01-01T00:00:00.000000Z"}}))
    if not has_led:
        task = asyncio.create_task(Election(Client(network, clock), KEY, "b", clock).lead(work))
    await elapse(5)
    assert len(terms) == has_led
    network.plan = always(Hung())
    began_s = clock.monotonic()
    task.cancel()
    await asyncio.wait({task})
    assert clock.monotonic() == began_s


async def test_a_standby_takes_over_as_soon_as_the_holders_time_is_over(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    await client.create(Lease(metadata=ObjectMeta(name=KEY.name, namespace=KEY.namespace)))
    await write(client, {"holderIdentity": "dead", "renewTime": "2031-01-01T00:00:00.000000Z"})

    async def work() -> None:
        assert clock.monotonic() == pytest.approx(TIMING.lease_s, abs=0.05)

    await Election(client, KEY, "a", clock).lead(work)


class Slept(VirtualClock):
    """A clock whose machine stood still for a while, as its loop does not know."""

    stood_still_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.stood_still_s


async def test_a_lease_that_was_taken_too_long_ago_when_we_learn_of_it_is_taken_again_before_any_work(
    running: RunningApi,
) -> None:
    loop = asyncio.get_running_loop()
    clock = Slept(loop)

    def stand_still(request: Request) -> None:
        if request.method == "PATCH" and not clock.stood_still_s:
            clock.stood_still_s = TIMING.renew_deadline_s + 1

    began = 0

    async def work() -> None:
        nonlocal began
        began += 1
        await elapse(60)

    await Election(Client(FaultyTransport(running.transport(), stand_still), clock), KEY, "a", clock).lead(work)
    assert began == 1


def test_the_last_resort_ends_a_process_whose_cleanup_would_wait_forever() -> None:
    program = (
        "import atexit, time; from applecart.kube.election import end_process; "
        "atexit.register(time.sleep, 3600); end_process('the work does not stop')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (STUCK_EXIT_CODE, "applecart: the work does not stop")


def test_the_last_resort_ends_a_process_whose_stderr_nobody_reads() -> None:
    """The log line before it, and its own sentence, waited for room in a pipe that was full: two processes worked."""
    program = (
        "import os; os.set_blocking(2, False)\n"
        "try:\n"
        "    while True: os.write(2, b'x' * 4096)\n"
        "except BlockingIOError: os.set_blocking(2, True)\n"
        "from applecart.kube.election import end_process; end_process('the work does not stop')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as child:
        try:
            assert child.wait(timeout=60) == STUCK_EXIT_CODE
        finally:
            child.kill()


async def test_of_two_processes_of_one_identity_one_works_and_the_other_says_why_not(
    running: RunningApi, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A host name as identity: each found its own name in the record, with a stamp that it never wrote, and renewed it."""
    at_work: list[str] = []
    client = Client(running.transport(), clock)

    def start(name: str) -> asyncio.Task[None]:
        async def work() -> None:
            at_work.append(name)
            try:
                await forever()
            finally:
                at_work.remove(name)

        return asyncio.create_task(Election(client, KEY, "host", clock).lead(work))

    first = start("first")
    await elapse(1)
    second = start("second")
    await elapse(600)
    assert at_work == ["first"]
    assert [record.levelno for record in caplog.records if "held in our name" in record.getMessage()] == [logging.WARNING]
    second.cancel()
    await asyncio.wait({second})
    assert (await client.get(Lease, KEY)).holder == "host"  # it gave back nothing that is not its own
    second = start("second")
    await elapse(1)
    first.cancel()
    await elapse(5)
    assert at_work == ["second"]
    second.cancel()
    await asyncio.wait({second})


async def test_a_standby_says_once_for_each_holder_that_it_waits(
    running: RunningApi, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = Client(running.transport(), clock)
    tasks = []
    for name in ("a", "b", "c"):
        tasks.append(asyncio.create_task(Election(client, KEY, name, clock).lead(forever)))
        await elapse(1)
    await elapse(600)
    tasks[0].cancel()
    await elapse(600)
    waits = [getattr(record, "fields", {}) for record in caplog.records if "waiting for it" in record.getMessage()]
    assert [wait["holder"] for wait in waits][:2] == ["a", "a"]
    assert len(waits) == 3, "b and c for a, then one of them for the other"
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def test_an_identity_is_never_given_twice(clock: Clock) -> None:
    names = {unique_identity("mac-7", clock.random) for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith("mac-7_") for name in names)


async def test_an_election_without_an_identity_is_refused(running: RunningApi, clock: Clock) -> None:
    with pytest.raises(BadInput, match="Lease test/provider needs an identity"):
        Election(Client(running.transport(), clock), KEY, "", clock)


# Any schedule

NUMBERS = st.integers(0, 2)
FEW_SECONDS = st.floats(0, 40).map(lambda number: round(number, 2))
DISTURBANCES = st.one_of(
    st.tuples(st.just("pause"), NUMBERS, st.sampled_from([3.0, 9.0, 14.0, 16.0, 60.0])),
    st.tuples(st.just("kill"), NUMBERS, st.just(0.0)),
    st.tuples(st.just("stop"), NUMBERS, st.just(0.0)),
    st.tuples(st.just("down"), NUMBERS, FEW_SECONDS),
    st.tuples(st.just("hang"), NUMBERS, FEW_SECONDS),
    st.tuples(st.just("slow"), NUMBERS, st.sampled_from([0.5, 3.0, 6.0, 12.0])),
    st.tuples(st.just("far"), NUMBERS, st.sampled_from([1.0, 4.0])),
    st.tuples(st.just("lose"), NUMBERS, st.sampled_from([1.0, 3.0])),
    st.tuples(st.just("jump"), NUMBERS, st.sampled_from([-3600.0, -10.0, 8.0, 3600.0])),
    st.tuples(st.just("cut"), NUMBERS, st.just(0.0)),
    st.tuples(st.just("heal"), NUMBERS, st.just(0.0)),
)
SCHEDULES = st.lists(st.tuples(FEW_SECONDS, DISTURBANCES), max_size=8)
CANDIDATES = st.lists(
    st.tuples(st.sampled_from([1.0, 1.02, 1.05]), st.sampled_from([0.0, -7200.0, 5.0]), st.sampled_from([0.0, SLOWEST_STOP_S])),
    min_size=2,
    max_size=3,
)


@settings(max_examples=soaks(12, 120))
@given(CANDIDATES, SCHEDULES, st.integers(0, 1000))
def test_under_any_schedule_never_two_work_at_once_and_one_does_soon_after_all_is_well_again(
    candidates: list[tuple[float, float, float]], schedule: list[tuple[float, tuple[str, int, float]]], seed: int
) -> None:
    with staged(seed) as stage:
        for rate, skew_s, stop_s in candidates:
            stage.add(rate=rate, skew_s=skew_s, stop_s=stop_s)
        alive = list(stage.candidates)
        for rest_s, (what, number, amount) in schedule:
            stage.world.run(rest_s)
            disturb(stage, alive, what, alive[number % len(alive)], amount)
            for candidate in [each for each in alive if each.stuck]:
                alive[alive.index(candidate)] = stage.add()
        stage.weather.heal()
        for candidate in stage.candidates:
            candidate.process.paused_until_s = 0.0
        stage.add()
        stage.world.run_until(lambda: stage.leader() != "", at_most_s=HEALED_WITHIN_S)
        stage.world.run(60)
        assert stage.leader()
        stage.check_processes()


def disturb(stage: Stage, alive: list[Candidate], what: str, victim: Candidate, amount: float) -> None:
    match what:
        case "pause":
            victim.process.pause(amount)
        case "kill":
            victim.process.kill()
        case "stop":
            victim.process.cancel(victim.task)
        case "down":
            stage.weather.is_down = True
            stage.world.run(amount)
            stage.weather.is_down = False
        case "hang":
            stage.weather.hangs = True
            stage.world.run(amount)
            stage.weather.hangs = False
        case "slow":
            stage.weather.latency_s = amount
        case "far":
            victim.link.latency_s = amount
        case "lose":
            stage.weather.answers_to_lose = int(amount)
        case "jump":
            victim.process.clock.skew += timedelta(seconds=amount)
        case "cut":
            victim.link.is_cut = True
        case "heal":
            stage.weather.heal()
    if what in ("kill", "stop"):  # whoever runs them starts another
        alive[alive.index(victim)] = stage.add(stop_s=victim.stop_s)
