"""10,000 Pods of 6 kB listed and 20,000 changes watched, through our informer and through lightkube.

Each repetition is a new process of each side against the same replaying server, which has a core of its own where there are
two: so memory and start time are those of a program that a person would run.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from bench.informer_side import Measured
from bench.rows import Bar, Group, Row

PODS = 10_000
EVENTS = 20_000
REPETITIONS = 5
SIDES = ("ours", "lightkube")
RUN_S = 120  # a side that takes longer hangs

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
clusters: [{{name: bench, cluster: {{server: "{url}"}}}}]
users: [{{name: bench, user: {{token: not-a-secret}}}}]
"""

EVENTS_ROW = "informer: watch events/s"
HELD_ROW = "informer: held memory, MB"
READY_ROW = "informer: start, import to ready, s"
LIST_ROW = "informer: list, s"


def measure(say: Callable[[str], None]) -> Sequence[Row]:
    results: dict[str, list[Measured]] = {side: [] for side in SIDES}
    say(f"rendering {PODS} Pods and {EVENTS} events")
    with pod_server() as url, kubeconfig_for(url) as kubeconfig:
        for repetition in range(REPETITIONS):
            for side in SIDES:
                measured = run_side(side, kubeconfig)
                results[side].append(measured)
                say(
                    f"  {repetition + 1}/{REPETITIONS} {side}: {measured.events_per_s:,.0f} events/s, "
                    f"{measured.held_bytes / 1e6:.0f} MB held, ready after {measured.ready_s:.2f} s"
                )
    ours, peer = results["ours"], results["lightkube"]

    def row(name: str, bar: Bar, value: Callable[[Measured], float]) -> Row:
        return Row(name, bar, tuple(map(value, ours)), tuple(map(value, peer)))

    return [
        row(EVENTS_ROW, Bar("at least", 1.5), lambda m: m.events_per_s),
        row(HELD_ROW, Bar("at most", 0.7), lambda m: m.held_bytes / 1e6),
        row(READY_ROW, Bar("at most", 1.0), lambda m: m.ready_s),
        row(LIST_ROW, Bar("at most", 1.0), lambda m: m.list_s),
    ]


GROUP = Group((EVENTS_ROW, HELD_ROW, READY_ROW, LIST_ROW), measure)


def run_side(side: str, kubeconfig: str) -> Measured:
    command = [*_on_core(0), sys.executable, "-m", f"bench.informer_{side}", kubeconfig, str(EVENTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode:
        raise SystemExit(f"the {side} side failed:\n{done.stderr[-2000:]}")
    return msgspec.json.decode(done.stdout, type=Measured)


@contextmanager
def pod_server() -> Iterator[str]:
    command = [*_on_core(1), sys.executable, "-m", "bench.pod_server", str(PODS), str(EVENTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.stdin.close()


@contextmanager
def kubeconfig_for(url: str) -> Iterator[str]:
    """Both sides start from the same file, as programs do."""
    with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig") as file:
        file.write(KUBECONFIG.format(url=url))
        file.flush()
        yield file.name


def _on_core(core: int) -> list[str]:
    cores = os.cpu_count() or 1
    return ["taskset", "-c", str(core)] if cores > 1 and sys.platform == "linux" else []
