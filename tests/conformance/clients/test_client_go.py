"""What controllers in Go do works on the embedded server and on a real one: the checks of tests/kubernetes/clientgo.

The program runs once per server and says of each check whether it passed. Checks about informers run a second time with lists
that do not stream, which is how client-go before 1.35 and every server without that feature work.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.clients.conftest import SERVERS
from tests.kubernetes.recipe import CLIENT_GO_CHECKS, HERE, checks_folder

RUN_TIMEOUT_S = 110
FEWEST = 35
_SOURCES = sorted((HERE / CLIENT_GO_CHECKS.module).glob("*.go"))
NAMES = [name for file in _SOURCES for name in re.findall(r'^\t\t\{"([^"]+)", ', file.read_text(), re.MULTILINE)]
INFORMERS = [name for name in NAMES if "informer" in name]

pytestmark = pytest.mark.kubernetes

Run = Callable[[str, bool], dict[str, dict[str, Any]]]


@pytest.fixture(scope="session")
def run(kubeconfigs: dict[str, Path]) -> Run:
    """The results on a server, by the names of checks; with streaming lists or without."""
    program = checks_folder() / CLIENT_GO_CHECKS.name
    if not program.exists():
        pytest.fail(f"run make kube-binaries: there is no {program}", pytrace=False)
    ran: dict[tuple[str, bool], dict[str, dict[str, Any]]] = {}

    def results(server: str, streaming: bool) -> dict[str, dict[str, Any]]:
        if (server, streaming) not in ran:
            ours = {"KUBECONFIG": str(kubeconfigs[server]), "KUBE_FEATURE_WatchListClient": str(streaming).lower()}
            done = subprocess.run(
                [str(program), *([] if streaming else ["-only", "informer"])],
                env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", **ours},
                capture_output=True,
                text=True,
                timeout=RUN_TIMEOUT_S,
            )
            assert done.returncode == 0, done.stderr
            ran[server, streaming] = {line["check"]: line for line in map(json.loads, done.stdout.splitlines())}
        return ran[server, streaming]

    return results


def test_there_are_enough_checks_and_no_two_of_one_name() -> None:
    assert len(NAMES) >= FEWEST
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("server", SERVERS)
def test_the_program_tells_of_every_check_that_its_sources_name(run: Run, server: str) -> None:
    assert set(run(server, True)) == set(NAMES)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("name", NAMES)
def test_with_client_go(run: Run, name: str, server: str) -> None:
    told = run(server, True)[name]
    assert told["ok"], told.get("why")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("name", INFORMERS)
def test_without_streaming_lists(run: Run, name: str, server: str) -> None:
    told = run(server, False)[name]
    assert told["ok"], told.get("why")
