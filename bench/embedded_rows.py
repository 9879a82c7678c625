"""The embedded API and kube-apiserver with etcd, under the same load.

Both serve at the same time and are measured in turns, over TLS and 32 connections, as an ordinary user whom RBAC lets do
nothing else. The program that makes the load is a process of its own; etcd waits for the disk as it does in production. Bounds
that have no peer (a start, a pause) are compared with what is allowed.
"""

import asyncio
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec

from bench.embedded_hostile import Harm
from bench.embedded_load import Load
from bench.embedded_pauses import Pauses
from bench.embedded_sides import CONNECTIONS, Side, furnish, our_side, real_side
from bench.embedded_watchers import Delivery
from bench.rows import Bar, Group, Row

REPETITIONS = 3
WARM_UP_S = 0.5
LOAD_S = 3.0
WATCHERS = 100
UPDATES_PER_S = 100
LISTED_PODS = 20_000
START_ALLOWED_S = 1.0
PAUSE_ALLOWED_MS = 50.0
TURN_ALLOWED_MS = 50.0
HARMS = 5  # the worst of so many
KEPT_ALLOWED_MB = 150.0  # the rings of two resources, and what an interpreter never gives back
RUN_S = 120  # a program that takes longer hangs

LOADS = {"create": "Pod create", "status": "Pod status patch", "lease": "Lease renew", "get": "Pod get"}
DELIVERY_ROW = f"api {WATCHERS} watchers at {UPDATES_PER_S}/s: delivery p99, ms"
MEMORY_ROW = "api idle memory, MB"
START_ROW = f"api start until ready, s (peer: the {START_ALLOWED_S:g} allowed)"
PAUSE_ROW = f"api longest pause in lists of {LISTED_PODS:,} Pods, ms (peer: the {PAUSE_ALLOWED_MS:g} allowed)"
TURN_ROW = f"api longest turn of the loop in hostile requests, CPU ms (peer: the {TURN_ALLOWED_MS:g} allowed)"
KEPT_ROW = f"api memory that hostile requests leave, MB (peer: the {KEPT_ALLOWED_MB:g} allowed)"

T = TypeVar("T")
Say = Callable[[str], None]


def rate_row(load: str) -> str:
    return f"api {LOADS[load]}: requests/s"


def tail_row(load: str) -> str:
    return f"api {LOADS[load]}: p99, ms"


NAMES = (
    *(name(load) for load in LOADS for name in (rate_row, tail_row)),
    DELIVERY_ROW,
    MEMORY_ROW,
    START_ROW,
    PAUSE_ROW,
    TURN_ROW,
    KEPT_ROW,
)


class Results:
    """Figures by row and side."""

    def __init__(self) -> None:
        self._of: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, row: str, side: str, value: float) -> None:
        self._of[row, side].append(value)

    def row(self, name: str, bar: Bar) -> Row:
        return Row(name, bar, tuple(self._of[name, "ours"]), tuple(self._of[name, "peer"]))


def measure(say: Say) -> Sequence[Row]:
    results = Results()
    with TemporaryDirectory(prefix="bench-") as folder:
        measure_starts(results, Path(folder), say)
        with real_side(Path(folder) / "peer") as peer, our_side(Path(folder) / "ours") as ours:
            results.add(MEMORY_ROW, peer.name, peer.rss_bytes() / 1e6)
            for side in (ours, peer):
                asyncio.run(furnish(side))
            for repetition in range(REPETITIONS):
                for side in (ours, peer):
                    measure_loads(results, side, repetition, say)
    measure_pauses(results, say)
    measure_harm(results, say)
    return rows(results)


def rows(results: Results) -> list[Row]:
    judged = []
    for load in LOADS:
        judged.append(results.row(rate_row(load), Bar("at least", 1.5)))
        judged.append(results.row(tail_row(load), Bar("at most", 1.0)))
    judged.append(results.row(DELIVERY_ROW, Bar("at most", 1.0)))
    judged.append(results.row(MEMORY_ROW, Bar("at most", 0.25)))
    judged.append(results.row(START_ROW, Bar("at most", 1.0)))
    judged += [results.row(name, Bar("at most", 1.0)) for name in (PAUSE_ROW, TURN_ROW, KEPT_ROW)]
    return judged


GROUP = Group(NAMES, measure)


def measure_starts(results: Results, folder: Path, say: Say) -> None:
    """Ours on an empty folder; its memory when nobody has asked anything yet."""
    for repetition in range(REPETITIONS):
        with our_side(folder / f"start-{repetition}") as side:
            results.add(START_ROW, "ours", side.started_in_s)
            results.add(START_ROW, "peer", START_ALLOWED_S)
            results.add(MEMORY_ROW, "ours", side.rss_bytes() / 1e6)
            say(
                f"  {repetition + 1}/{REPETITIONS} ours: ready after {side.started_in_s:.2f} s, {side.rss_bytes() / 1e6:.0f} MB"
            )


def measure_loads(results: Results, side: Side, repetition: int, say: Say) -> None:
    turn = f"  {repetition + 1}/{REPETITIONS} {side.name}:"
    for load, words in LOADS.items():
        arguments = [load, str(CONNECTIONS), str(WARM_UP_S), str(LOAD_S), f"run-{repetition}"]
        measured = run("bench.embedded_load", [*side.credentials(), *arguments], Load)
        results.add(rate_row(load), side.name, measured.per_s)
        results.add(tail_row(load), side.name, measured.p99_ms)
        say(f"{turn} {words} {measured.per_s:,.0f}/s, p99 {measured.p99_ms:.1f} ms")
    arguments = [str(WATCHERS), str(UPDATES_PER_S), str(LOAD_S)]
    delivery = run("bench.embedded_watchers", [*side.credentials(), *arguments], Delivery)
    if delivery.delivered < delivery.wanted:
        say(f"{turn} {delivery.wanted - delivery.delivered:,} of {delivery.wanted:,} events came too late to be counted")
    results.add(DELIVERY_ROW, side.name, delivery.p99_ms)
    say(f"{turn} delivery p99 {delivery.p99_ms:.1f} ms")


def measure_pauses(results: Results, say: Say) -> None:
    for repetition in range(REPETITIONS):
        pauses = run("bench.embedded_pauses", [str(LISTED_PODS)], Pauses)
        results.add(PAUSE_ROW, "ours", pauses.longest_ms)
        results.add(PAUSE_ROW, "peer", PAUSE_ALLOWED_MS)
        say(f"  {repetition + 1}/{REPETITIONS} ours: longest pause {pauses.longest_ms:.1f} ms")


def measure_harm(results: Results, say: Say) -> None:
    harms = [run("bench.embedded_hostile", [], Harm) for _ in range(HARMS)]
    worst = max(harms, key=lambda harm: harm.longest_turn_ms)
    results.add(TURN_ROW, "ours", worst.longest_turn_ms)
    results.add(TURN_ROW, "peer", TURN_ALLOWED_MS)
    results.add(KEPT_ROW, "ours", max(harm.kept_mb for harm in harms))
    results.add(KEPT_ROW, "peer", KEPT_ALLOWED_MB)
    say(f"  ours: longest turn {worst.longest_turn_ms:.1f} ms ({worst.longest_turn})")


def run(module: str, arguments: list[str], told: type[T]) -> T:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stderr[-2000:]}")
    return msgspec.json.decode(done.stdout, type=told)
