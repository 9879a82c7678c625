"""Usage of host and guests: asked at once, answered in time, remembered for a little while. On virtual time."""

import asyncio
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from applecart.clock import Clock, VirtualClock
from applecart.errors import DeadlineExceeded, Transient
from applecart.kubelet.serve.figures import FIRST_NS
from applecart.kubelet.serve.guests import State
from applecart.kubelet.serve.stats import ANSWER_S, FRESH_S, Stats
from applecart.kubelet.serve.usage import PS
from applecart.tart.mac import Ended, Mac, Session
from tests.kubelet.serve.local_guests import GuestsHere
from tests.virtual_time import elapse


class Machines:
    """A host and its guests, of which each may be slow, silent or broken."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slow_s: dict[str, float] = {}
        self.answers: dict[str, Ended] = {}

    async def run(self, argv: Sequence[str], *, deadline_s: float) -> Ended:
        return await self.exec("host", argv, deadline_s=deadline_s)

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended:
        assert tuple(command) == PS
        self.asked.append(vm)
        slow_s = self.slow_s.get(vm, 0.0)
        await asyncio.sleep(min(slow_s, deadline_s))
        if slow_s > deadline_s:
            raise DeadlineExceeded(f"{vm} did not answer")
        if vm not in self.answers:
            raise Transient(f"{vm} is not there")
        return self.answers[vm]

    async def exec_session(self, vm: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        raise AssertionError("nobody runs a command here")


@pytest.fixture
def machines() -> Machines:
    machines = Machines()
    machines.answers = {
        "host": Ended(0, b"50.0 1000\n"),
        "default-a": Ended(0, b"10.0 100\n20.0 100\n"),
        "default-b": Ended(0, b"1.0 10\n"),
    }
    return machines


@pytest.fixture
def guests(tmp_path: Path) -> GuestsHere:
    guests = GuestsHere(tmp_path)
    guests.add("a")
    guests.add("b")
    return guests


def stats_of(machines: Machines, guests: GuestsHere, clock: Clock) -> Stats:
    return Stats("mac-1", cast(Mac, machines), machines, guests, clock)


def names(summary: dict[str, Any]) -> list[str]:
    return [pod["podRef"]["name"] for pod in summary["pods"]]


async def test_the_summary_has_the_host_and_each_running_guest(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    guests.add("waits", state=State.WAITING)
    summary = await stats_of(machines, guests, clock).summary()
    time = "2026-01-01T00:00:00Z"
    assert summary["node"] == {
        "nodeName": "mac-1",
        "cpu": {"time": time, "usageNanoCores": 500_000_000, "usageCoreNanoSeconds": FIRST_NS},
        "memory": {"time": time, "workingSetBytes": 1_024_000},
    }
    assert summary["pods"][0] == {
        "podRef": {"name": "a", "namespace": "default", "uid": "uid-of-a"},
        "containers": [
            {
                "name": "vm",
                "cpu": {"time": time, "usageNanoCores": 300_000_000, "usageCoreNanoSeconds": FIRST_NS},
                "memory": {"time": time, "workingSetBytes": 204_800},
            }
        ],
        "cpu": {"time": time, "usageNanoCores": 300_000_000, "usageCoreNanoSeconds": FIRST_NS},
        "memory": {"time": time, "workingSetBytes": 204_800},
    }
    assert names(summary) == ["a", "b"]


async def test_everybody_is_asked_once_in_ten_seconds(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    stats = stats_of(machines, guests, clock)
    await asyncio.gather(*(stats.summary() for _ in range(5)))
    await elapse(FRESH_S - 1)
    await stats.summary()
    assert sorted(machines.asked) == ["default-a", "default-b", "host"]
    await elapse(1)
    await stats.summary()
    assert len(machines.asked) == 6


@pytest.mark.parametrize("answer", [Ended(1, b"1.0 1\n"), Ended(0, b"ps: illegal option"), None])
async def test_a_guest_that_does_not_answer_is_left_out(
    machines: Machines, guests: GuestsHere, clock: Clock, answer: Ended | None
) -> None:
    if answer is None:
        del machines.answers["default-a"]
    else:
        machines.answers["default-a"] = answer
    assert names(await stats_of(machines, guests, clock).summary()) == ["b"]


async def test_a_guest_that_hangs_delays_nobody(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    machines.slow_s["default-a"] = 1000
    stats = stats_of(machines, guests, clock)
    began_s = clock.monotonic()
    assert names(await stats.summary()) == ["b"]
    assert clock.monotonic() - began_s == ANSWER_S
    assert names(await stats.summary()) == ["b"]
    assert machines.asked.count("default-a") == 1
    await stats.aclose()


async def test_a_guest_that_is_slow_is_in_the_next_summary(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    machines.slow_s["default-a"] = ANSWER_S + 1
    stats = stats_of(machines, guests, clock)
    assert names(await stats.summary()) == ["b"]
    await elapse(1.5)
    assert names(await stats.summary()) == ["a", "b"]


async def test_a_host_that_does_not_answer_leaves_its_guests(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    del machines.answers["host"]
    summary = await stats_of(machines, guests, clock).summary()
    assert summary["node"] == {"nodeName": "mac-1"}
    assert names(summary) == ["a", "b"]


async def test_figures_of_guests_that_are_gone_are_forgotten(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    stats = stats_of(machines, guests, clock)
    await stats.summary()
    gone = guests.find("default", "a")
    assert gone is not None
    guests.end(gone)
    assert names(await stats.summary()) == ["b"]
    assert len(stats._last) == 2


async def test_cpu_time_grows_by_what_is_used_and_never_falls(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    """A metrics server computes from two scrapes, and drops a guest whose time went down: a compiler that ended did that."""
    stats = stats_of(machines, guests, clock)
    seen = []
    for printed in (b"100.0 10\n", b"100.0 10\n300.0 10\n", b"0.0 10\n"):
        machines.answers["default-a"] = Ended(0, printed)
        seen.append((await stats.summary())["pods"][0]["cpu"]["usageCoreNanoSeconds"])
        await elapse(15)
    assert [later - first for first, later in itertools.pairwise(seen)] == [60 * 10**9, 0]


async def test_cpu_time_goes_on_after_a_guest_did_not_answer(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    stats = stats_of(machines, guests, clock)
    await stats.summary()
    good = machines.answers.pop("default-a")
    await elapse(15)
    assert names(await stats.summary()) == ["b"]
    machines.answers["default-a"] = good
    await elapse(15)
    assert (await stats.summary())["pods"][0]["cpu"]["usageCoreNanoSeconds"] == FIRST_NS + 30 * 300_000_000


async def test_a_clock_that_is_set_back_takes_no_time_from_anybody(
    machines: Machines, guests: GuestsHere, clock: VirtualClock
) -> None:
    stats = stats_of(machines, guests, clock)
    await stats.summary()
    clock.jump(timedelta(hours=-3))
    await elapse(15)
    assert (await stats.summary())["node"]["cpu"]["usageCoreNanoSeconds"] == FIRST_NS + 15 * 500_000_000


async def test_who_was_fresh_when_it_was_asked_is_not_lost_to_somebody_who_hangs(
    machines: Machines, guests: GuestsHere, clock: Clock
) -> None:
    stats = stats_of(machines, guests, clock)
    del machines.answers["default-a"]
    await stats.summary()
    machines.slow_s["default-a"] = 1000
    await elapse(FRESH_S - 1)
    assert names(await stats.summary()) == ["b"]
    await stats.aclose()


async def test_a_pod_tells_when_its_guest_was_started(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    guests.started_at["default", "a"] = datetime(2025, 12, 31, 23, 59, 30, tzinfo=UTC)
    first, second = (await stats_of(machines, guests, clock).summary())["pods"]
    assert first["startTime"] == first["containers"][0]["startTime"] == "2025-12-31T23:59:30Z"
    assert "startTime" not in second


async def test_both_pages_show_the_same_figures(machines: Machines, guests: GuestsHere, clock: Clock) -> None:
    stats = stats_of(machines, guests, clock)
    page = (await stats.resource_metrics()).decode()
    await stats.summary()
    assert 'container_memory_working_set_bytes{container="vm",namespace="default",pod="a"} 204800.0 1767225600000\n' in page
    assert sorted(machines.asked) == ["default-a", "default-b", "host"]
