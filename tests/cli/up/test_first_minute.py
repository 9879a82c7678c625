"""The first minute of a new user: what `applecart up` prints is typed as it stands, with a real kubectl."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.commands import SERVES, WAIT_S, environment, read_until, running

pytestmark = pytest.mark.kubernetes

RUNNING_WITHIN = "45s"  # it takes 6; a machine that compiles something meanwhile takes its time
TRY = re.compile(r"\ntry\n((?:  .+\n)+)")
EXAMPLE = re.compile(r"\n  example +(\S+) ")


@dataclass(frozen=True, slots=True)
class Shell:
    """Where the person types: with kubectl on PATH, and the line `export KUBECONFIG=...` typed before everything."""

    home: Path  # kubectl keeps what it learns of an API there
    programs: Path
    lines: tuple[str, ...]  # what was printed to try
    text: str  # all that was printed

    def type(self, line: str, *, expect: int = 0) -> str:
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", f"{self.lines[0]}\n{line}"],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
            env={**environment(), "PATH": path, "HOME": str(self.home)},
        )
        assert done.returncode == expect, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def printed(self, word: str) -> str:
        """The line with this command of kubectl; kubectl itself by the name that is on PATH here."""
        line = next(line for line in self.lines if f"kubectl {word} " in line)
        return "kubectl" + line.partition("kubectl")[2]


@contextmanager
def up(data: Path, programs: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Shell]]:
    with running("up", "--port", "0", "--data", str(data), *arguments) as process:
        text = read_until(process, SERVES)
        found = TRY.search(text)
        assert found, text
        yield process, Shell(data / "home", programs, tuple(line.strip() for line in found[1].splitlines()), text)


@pytest.fixture(params=["embedded", "binaries"])
def flags(request: pytest.FixtureRequest, kube_programs: Path) -> list[str]:
    return [] if request.param == "embedded" else ["--api", "binaries", "--binaries", str(kube_programs)]


def test_the_printed_lines_show_a_vm_that_lives_and_dies(kube_programs: Path, flags: list[str], tmp_path: Path) -> None:
    with up(tmp_path, kube_programs, *flags) as (process, shell):
        nodes = shell.type("kubectl get nodes --no-headers")
        assert [line.split()[:2] for line in nodes.splitlines()] == [[f"mac-{n}", "Ready"] for n in (1, 2, 3)]
        shell.type(shell.printed("run"))
        shell.type(f"kubectl wait pod/hello --for=condition=Ready --timeout={RUNNING_WITHIN}")
        assert "hello" in shell.type(shell.printed("get").replace(" --watch", ""))
        assert "is up at" in shell.type(shell.printed("logs").replace(" -f", ""))
        assert "macOS" in shell.type(shell.printed("exec").replace(" -it", ""))
        shell.type("kubectl exec hello -- sh -c 'exit 3'", expect=3)
        events = shell.type("kubectl describe pod hello")
        for reason in ("Scheduled", "CreatingVM", "Pulled", "Started"):
            assert re.search(rf"Normal +{reason} ", events), reason
        shell.type(shell.printed("delete"))
        assert shell.type("kubectl get pods -o name") == ""
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0


def test_top_shows_what_the_vms_use(kube_programs: Path, tmp_path: Path) -> None:
    with up(tmp_path, kube_programs, "--macs", "1") as (_, shell):
        shell.type(shell.printed("run"))
        shell.type(f"kubectl wait pod/hello --for=condition=Ready --timeout={RUNNING_WITHIN}")
        for what in ("node mac-1", "pod hello"):  # figures are there after the first look at the agents
            shell.type(f"for i in $(seq 80); do kubectl top {what} && exit; sleep 0.5; done; exit 1")


def test_the_example_is_a_job_that_succeeds(kube_programs: Path, tmp_path: Path) -> None:
    with up(tmp_path, kube_programs, "--macs", "1") as (_, shell):
        found = EXAMPLE.search(shell.text)
        assert found
        shell.type(f"kubectl apply -f {found[1]}")
        shell.type("kubectl wait pod/job --for=jsonpath={.status.phase}=Succeeded --timeout=55s")
        assert "linking" in shell.type("kubectl logs job")
        shell.type("kubectl delete pod job")


def test_a_second_start_says_what_became_of_the_vms_of_the_first(kube_programs: Path, tmp_path: Path) -> None:
    """Also after kill -9: the simulated Macs lost power, their disks did not."""
    with up(tmp_path, kube_programs, "--macs", "1") as (process, shell):
        shell.type(shell.printed("run"))
        shell.type(f"kubectl wait pod/hello --for=condition=Ready --timeout={RUNNING_WITHIN}")
        process.kill()
        process.wait(WAIT_S)
    with up(tmp_path, kube_programs, "--macs", "1") as (_, shell):
        shell.type("kubectl wait pod/hello --for=jsonpath={.status.phase}=Failed --timeout=30s")
        pod = json.loads(shell.type("kubectl get pod hello -o json"))
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert "how its job went is unknown" in ended["message"]
        shell.type(shell.printed("delete"))
        shell.type(shell.printed("run"))
        shell.type(f"kubectl wait pod/hello --for=condition=Ready --timeout={RUNNING_WITHIN}")


def test_fewer_macs_than_before_leave_no_dead_nodes(kube_programs: Path, tmp_path: Path) -> None:
    with up(tmp_path, kube_programs, "--macs", "2") as (process, _):
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_S)
    with up(tmp_path, kube_programs, "--macs", "1") as (_, shell):
        assert shell.type("kubectl get nodes -o name").split() == ["node/mac-1"]
