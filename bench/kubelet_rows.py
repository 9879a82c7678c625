"""tart-kubelet: how soon it is there, what it holds, how soon a Pod becomes a VM, and that neither days nor outages pile up.

Measured on the program itself against the embedded API in another process, over TLS, with the rights of a host. Where the
figure is the agent's own time, the simulated Tart is in its process and answers at once; where Tart is a program, its own
commands are the peer. What has no peer is compared with what is allowed.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.embedded_rows import RUN_S, Results, Say
from bench.embedded_sides import Side, our_side, real_side
from bench.kubelet_boots import Boots
from bench.kubelet_boots_program import boots_ms
from bench.kubelet_churn import Held
from bench.kubelet_stage import api_of
from bench.kubelet_start import held_mb, start_s
from bench.kubelet_stuck import gone_s
from bench.rows import Bar, Group, Row

REPETITIONS = 3
BOOTS = 50
BOOTS_WITH_PROGRAM = 8
CHURNED, EARLY = 500, 50
START_ALLOWED_S = 1.0
MEMORY_ALLOWED_MB = 60.0
BOOT_ALLOWED_MS = 100.0
STUCK_ALLOWED_S = 5.0

START_ROW = f"kubelet start until its Node is Ready, s (peer: the {START_ALLOWED_S:g} allowed)"
MEMORY_ROW = f"kubelet memory with 2 VMs, MB (peer: the {MEMORY_ALLOWED_MB:g} allowed)"
BOOT_ROW = f"kubelet Pod bound to tart run, p50, ms (peer: the {BOOT_ALLOWED_MS:g} allowed)"
PROGRAM_ROW = "kubelet Pod bound to tart run, Tart a program, p50, ms (peer: its clone and set alone)"
STUCK_ROW = f"kubelet 504 stuck Pods gone, embedded API, s (peer: the {STUCK_ALLOWED_S:g} allowed)"
REAL_STUCK_ROW = f"kubelet 504 stuck Pods gone, kube-apiserver, s (peer: the {STUCK_ALLOWED_S:g} allowed)"
CHURN_ROW = f"kubelet memory after {CHURNED} Pods, MB (peer: after {EARLY})"
FILES_ROW = f"kubelet open files after {CHURNED} Pods (peer: after {EARLY})"
COUNTS_ROW = f"kubelet tasks and folders after {CHURNED} Pods (peer: after {EARLY})"
SERIES_ROW = f"kubelet series of metrics after {CHURNED} Pods (peer: after {EARLY})"

BARS = {
    START_ROW: Bar("at most", 1.0),
    MEMORY_ROW: Bar("at most", 1.0),
    BOOT_ROW: Bar("at most", 1.0),
    PROGRAM_ROW: Bar("at most", 2.0),
    STUCK_ROW: Bar("at most", 1.0),
    REAL_STUCK_ROW: Bar("at most", 1.0),
    CHURN_ROW: Bar("at most", 1.1),  # the last 512 Events are remembered, to count repeated ones up
    FILES_ROW: Bar("at most", 1.2),  # connections to the API come and go: 15 files, one or two more or less
    COUNTS_ROW: Bar("at most", 1.0),
    SERIES_ROW: Bar("at most", 1.25),  # a kind of call that fails for the first time adds its series; one per Pod would be 2.4
}


def rows(results: Results, *names: str) -> list[Row]:
    return [results.row(name, BARS[name]) for name in names]


def measure_process(say: Say) -> Sequence[Row]:
    results = Results()
    with TemporaryDirectory(prefix="bench-") as place, our_side(Path(place) / "api") as side:
        for repetition in range(REPETITIONS):
            folder = Path(place) / str(repetition)
            started = asyncio.run(start_s(side, folder / "start"))
            held = asyncio.run(held_mb(side, folder / "held"))
            add(results, START_ROW, started, START_ALLOWED_S)
            add(results, MEMORY_ROW, held, MEMORY_ALLOWED_MB)
            say(f"  {repetition + 1}/{REPETITIONS} ready after {started:.2f} s, {held:.1f} MB")
    return rows(results, START_ROW, MEMORY_ROW)


def measure_boots(say: Say) -> Sequence[Row]:
    results = Results()
    with TemporaryDirectory(prefix="bench-") as place, our_side(Path(place) / "api") as side:
        for repetition in range(REPETITIONS):
            folder = Path(place) / str(repetition)
            boots = msgspec.json.decode(run_inside(side, folder / "inside", "bench.kubelet_boots", BOOTS)[-1], type=Boots)
            program_ms, alone_ms = asyncio.run(boots_ms(side, folder / "program", BOOTS_WITH_PROGRAM))
            add(results, BOOT_ROW, boots.p50_ms, BOOT_ALLOWED_MS)
            add(results, PROGRAM_ROW, program_ms, alone_ms)
            say(
                f"  {repetition + 1}/{REPETITIONS} p50 {boots.p50_ms:.0f} ms, p99 {boots.p99_ms:.0f} ms; "
                f"with Tart a program {program_ms:.0f} ms, of which its commands {alone_ms:.0f} ms"
            )
    return rows(results, BOOT_ROW, PROGRAM_ROW)


def measure_stuck(say: Say) -> Sequence[Row]:
    results = Results()
    for name, made in ((STUCK_ROW, our_side), (REAL_STUCK_ROW, real_side)):
        with TemporaryDirectory(prefix="bench-") as place, made(Path(place) / "api") as side:
            for repetition in range(REPETITIONS):
                gone = asyncio.run(gone_s(side, Path(place) / str(repetition)))
                add(results, name, gone, STUCK_ALLOWED_S)
                say(f"  {repetition + 1}/{REPETITIONS} {name.split(',')[1].strip()}: gone after {gone:.2f} s")
    return rows(results, STUCK_ROW, REAL_STUCK_ROW)


def measure_churn(say: Say) -> Sequence[Row]:
    results = Results()
    with TemporaryDirectory(prefix="bench-") as place, our_side(Path(place) / "api") as side:
        said = run_inside(side, Path(place) / "churn", "bench.kubelet_churn", CHURNED, EARLY)
    held = [msgspec.json.decode(line, type=Held) for line in said]
    for each in held:
        say(
            f"  after {each.pods} Pods: {each.memory_mb:.1f} MB, {each.open_files} files, {each.tasks} tasks, "
            f"{each.series} series, {each.folders} folders"
        )
    first, last = held[0], held[-1]
    add(results, CHURN_ROW, last.memory_mb, first.memory_mb)
    add(results, FILES_ROW, last.open_files, first.open_files)
    add(results, COUNTS_ROW, counts(last), counts(first))
    add(results, SERIES_ROW, last.series, first.series)
    return rows(results, CHURN_ROW, FILES_ROW, COUNTS_ROW, SERIES_ROW)


GROUPS = (
    Group((START_ROW, MEMORY_ROW), measure_process),
    Group((BOOT_ROW, PROGRAM_ROW), measure_boots),
    Group((STUCK_ROW, REAL_STUCK_ROW), measure_stuck),
    Group((CHURN_ROW, FILES_ROW, COUNTS_ROW, SERIES_ROW), measure_churn),
)


def add(results: Results, row: str, ours: float, peer: float) -> None:
    results.add(row, "ours", ours)
    results.add(row, "peer", peer)


def counts(held: Held) -> float:
    return held.tasks + held.folders


def run_inside(side: Side, folder: Path, module: str, *arguments: int) -> list[str]:
    """A program that is agent and Mac in one process; its lines."""

    async def run() -> str:
        async with api_of(side, folder) as api:
            command = [sys.executable, "-m", module, str(api.kubeconfig), str(api.agent_kubeconfig), str(folder / "host")]
            done = await asyncio.to_thread(
                subprocess.run, [*command, *map(str, arguments)], capture_output=True, text=True, timeout=RUN_S, check=False
            )
            if done.returncode:
                raise SystemExit(f"{module} failed:\n{done.stderr[-2000:]}")
            return str(done.stdout)

    return asyncio.run(run()).splitlines()
