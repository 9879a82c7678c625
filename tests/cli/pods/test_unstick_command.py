"""`applecart pods unstick` as a person runs it: on real servers, at a terminal, with slips of the pen."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from applecart.api.core import Namespace
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node
from applecart.cli.main import run
from applecart.cli.pods import unstick as module
from applecart.clock import SystemClock
from applecart.kube.client import Client
from applecart.kube.connect import connect
from tests.cli.commands import WAIT_S, environment
from tests.cli.pods.fleet import KEPT, stuck_fleet
from tests.kube.embedded_backend import ServerThread
from tests.kube.kubeconfigs import kubeconfig, write
from tests.kube.stuck import let_go, names_in, store
from tests.kubernetes.cluster import FullCluster

HOW_MANY = 504  # as many as once were stuck
LATER_S = 120.0  # beyond the time an agent has

T = TypeVar("T")
Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--namespace", "ci", "--all-namespaces"], "give either --namespace or --all-namespaces"),
        (["--namespace", " "], "--namespace is empty; name one, or leave the option out"),
        (["--node", ""], "--node is empty; name one, or leave the option out"),
        (["--wait", "-1"], "-1.0 is not in the range"),
        (["--wait", "nan"], "--wait nan is no time"),
        (["--kubeconfig", "/nonexistent/file"], "/nonexistent/file"),
        (["--namespaces", "ci"], "No such option"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(arguments: list[str], sentence: str, capsys: Printed) -> None:
    assert run(["pods", "unstick", *arguments]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_an_api_that_is_away_is_a_sentence_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setattr("applecart.kube.client.retry_wait_s", lambda *_, **__: None)  # one attempt is enough of them
    file = write(tmp_path / "config", kubeconfig(cluster={"server": "https://127.0.0.1:1"}))
    assert run(["pods", "unstick", "--kubeconfig", str(file)]) == 1
    assert "is unreachable (connection refused)" in capsys.readouterr().err


class LaterClock(SystemClock):
    """Of a person who comes when the agents had their time."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=LATER_S)


def free_by_the_command(file: str, namespace: str, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    """504 Pods in a server of its own, by the command line and nothing else."""
    living = f"living-{namespace}"

    async def do(work: Callable[[Client], Awaitable[T]]) -> T:
        client = Client(connect(file, None, SystemClock(), environ={}), SystemClock())
        try:
            return await work(client)
        finally:
            await client.aclose()

    asyncio.run(do(lambda client: stuck_fleet(client, namespace, living, HOW_MANY)))
    unstick_it = ["pods", "unstick", "--kubeconfig", file, "--namespace", namespace]
    assert run(unstick_it) == 0
    assert f"{HOW_MANY // 2} Pods can be freed" in capsys.readouterr().out  # those of the living Node have time left
    monkeypatch.setattr(module, "SystemClock", LaterClock)
    assert run(unstick_it) == 0
    assert "504 Pods can be freed" in capsys.readouterr().out
    assert len(asyncio.run(do(lambda client: names_in(client, namespace)))) == HOW_MANY + 3
    assert run([*unstick_it, "--yes"]) == 0
    said = capsys.readouterr()
    assert "504 of 504 Pods freed, 504 gone" in said.out
    assert said.err == ""
    assert asyncio.run(do(lambda client: names_in(client, namespace))) == KEPT
    asyncio.run(do(lambda client: client.delete(Node, Key("", living))))
    asyncio.run(do(lambda client: let_go(client, Key(namespace, "theirs"))))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerThread]:
    """The embedded API behind HTTPS, with a namespace."""
    thread = ServerThread(tmp_path)
    thread.start()
    admin = Client(thread.server.running.transport(), SystemClock())
    thread.do(admin.create(Namespace(metadata=ObjectMeta(name="ci"))))
    yield thread
    thread.stop()


@pytest.mark.real_time
def test_the_command_frees_504_pods_of_the_embedded_api(
    server: ServerThread, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    free_by_the_command(str(server.server.folder.admin_kubeconfig), "ci", monkeypatch, capsys)


def is_asleep(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S"


def at_a_terminal(answer: str, *arguments: str, code: int = 0) -> str:
    """What a person sees who answers the prompt."""
    program = "import fcntl, sys, termios; from applecart.cli.main import main; fcntl.ioctl(0, termios.TIOCSCTTY, 0); main()"
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(), start_new_session=True
    ) as process:
        os.close(theirs)
        said = b""
        try:
            with suppress(OSError):  # how a terminal ends whose other side is closed
                while more := os.read(ours, 4096):
                    said += more
                    if said.endswith(b"[y/N]: "):
                        while not is_asleep(process.pid):  # a Ctrl-C between prompt and reading is seen after it
                            os.sched_yield()
                        os.write(ours, answer.encode())
            assert process.wait(WAIT_S) == code
        finally:
            process.kill()
    os.close(ours)
    return said.decode()


@pytest.mark.real_time
def test_at_a_terminal_a_person_is_asked_and_only_a_yes_counts(server: ServerThread, capsys: Printed) -> None:
    admin = Client(server.server.running.transport(), SystemClock())
    server.do(store(admin, "unplaced", namespace="ci", on="", phase="Pending"))
    file = str(server.server.folder.admin_kubeconfig)
    unstick_it = ("pods", "unstick", "--kubeconfig", file)
    assert run([*unstick_it]) == 0
    assert capsys.readouterr().out == "No Pod in namespace default is stuck on our finalizer.\n"  # that of the context
    for answer in ("\n", "n\n"):
        said = at_a_terminal(answer, *unstick_it, "--all-namespaces")
        assert f"Free them (1) at {server.server.url}? [y/N]:" in said
        assert "Nothing was changed" in said
    said = at_a_terminal("\x03", *unstick_it, "--all-namespaces", code=130)
    assert "Nothing was changed" not in said
    assert server.do(names_in(admin, "ci")) == {"unplaced"}
    said = at_a_terminal("y\n", *unstick_it, "--all-namespaces")
    assert "freeing 1 of 1" in said
    assert "1 of 1 Pod freed, 1 gone" in said
    assert server.do(names_in(admin, "ci")) == set()


@pytest.mark.kubernetes
def test_the_command_frees_504_pods_of_a_real_kubernetes(
    real_cluster: FullCluster, namespace: str, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    free_by_the_command(str(real_cluster.kubeconfig), namespace, monkeypatch, capsys)
