"""`applecart api start`: it says that it serves when it does, ends when told, and says in a sentence why it cannot start."""

import base64
import os
import random
import re
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.cli.api.folders import make_folder
from tests.cli.commands import SERVES, WAIT_S, done, read_until, refused, running, running_api

LIMIT_BYTES = 20_000  # a request log of some lines fits below, and what a first start writes does not
URL = re.compile(r"https://127\.0\.0\.1:\d+")


def start(data: Path, *more: str) -> tuple[str, ...]:
    return ("api", "start", "--data", str(data), "--port", "0", *more)


def get(data: Path, path: str) -> bytes:
    """As the holder of the kubeconfig that the server wrote."""
    config = yaml.safe_load((data / "admin.kubeconfig").read_text())
    server, admin = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]
    context = ssl.create_default_context(cafile=str(data / "pki" / "ca.crt"))
    pair = data.parent / f"{data.name}.pem"
    pair.write_bytes(b"".join(base64.b64decode(admin[f"client-{name}-data"]) for name in ("certificate", "key")))
    context.load_cert_chain(pair)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(f"{server}{path}", timeout=WAIT_S) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    return body


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_says_what_to_export_and_ends_in_order_when_told(number: signal.Signals, tmp_path: Path) -> None:
    data = tmp_path / "made by it"
    with running(*start(data)) as process:
        text = read_until(process, SERVES)
        assert "Kubernetes API v1.36.3+embedded" in text
        assert f"export KUBECONFIG='{data}/admin.kubeconfig'" in text
        assert "kubectl get namespaces" in text
        assert "garbage collector" in text
        assert b"+embedded" in get(data, "/version")
        process.send_signal(number)
        assert process.wait(WAIT_S) == 0
        assert process.stdout
        assert process.stdout.read() == ""
    assert not (data / "address").exists()
    assert not (data / "store.db-wal").exists(), "a stop in order leaves one whole file"


def test_only_its_owner_may_read_what_it_writes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_api(data) as process:
        process.terminate()
        process.wait(WAIT_S)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in data.rglob("*") if file.is_file()}
    assert modes["admin.kubeconfig"] == 0o600
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_without_controllers_none_run(tmp_path: Path) -> None:
    with running(*start(tmp_path, "--no-controllers")) as process:
        assert "controllers beside it" not in read_until(process, SERVES)


def test_what_runs_in_it_is_measured_and_a_part_of_its_readiness(tmp_path: Path) -> None:
    """A controller that was down was a line in the log and on no page."""
    with running_api(tmp_path / "data"):
        page = get(tmp_path / "data", "/metrics")
        for series in (
            b'applecart_task_restarts_total{task="definitions"}',
            b'applecart_task_restarts_total{task="compaction"}',
            b'workqueue_depth{name="garbage collector"}',
            b'applecart_wait_count{wait="task down"}',
            b"process_start_time_seconds",
        ):
            assert b"\n" + series in page, page.decode()
        # Right after the start its first lists may not be complete.
        assert re.search(rb"^\[[+-]\]controllers ", get(tmp_path / "data", "/readyz?verbose"), flags=re.MULTILINE)


def test_a_second_server_on_the_folder_is_refused_with_the_first_ones_process(tmp_path: Path) -> None:
    with running_api(tmp_path) as process:
        said = refused(*start(tmp_path))
        assert f"is in use by another server (process {process.pid}); stop it" in said
        assert b"+embedded" in get(tmp_path, "/version"), "the first one goes on"


def test_the_lock_of_a_killed_process_stops_nobody(tmp_path: Path) -> None:
    with running_api(tmp_path) as process:
        process.kill()
        process.wait(WAIT_S)
    assert (tmp_path / "lock").read_text() == str(process.pid)
    with running_api(tmp_path):
        assert b"+embedded" in get(tmp_path, "/version")


def test_a_taken_port_is_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("api", "start", "--data", str(tmp_path), "--port", str(port))
    assert f"cannot listen on 127.0.0.1:{port}" in said


def test_a_folder_below_a_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    said = refused(*start(tmp_path / "a-file" / "data"))
    assert "cannot be used as a data folder (Not a directory); name another with --data" in said


def test_a_folder_that_may_not_be_written_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o555)
    said = refused(*start(folder if os.getuid() else Path("/proc/self/fdinfo")))
    assert "cannot be used as a data folder (" in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--port", "70000"), "70000 is not in the range"),
        (("--port", "many"), "'many' is not a valid integer"),
        (("--host", "nope.invalid"), "--host nope.invalid is no address of this machine ("),
        (("--colour",), "No such option"),
    ],
)
def test_a_bad_flag_is_a_sentence(flags: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in refused("api", "start", "--data", str(tmp_path), *flags)


def test_without_a_folder_it_says_which_option_is_missing() -> None:
    assert "Missing option '--data'" in refused("api", "start")


def no_database(file: Path) -> None:
    file.write_bytes(b"this is no database at all, but it is long enough to be looked at" * 20)


def of_another_program(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE diary(day, text)")


def with_a_hole(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096 : len(content) - 4096] = random.Random(4).randbytes(len(content) - 8192)
    file.write_bytes(content)


def of_a_later_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA user_version=99")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (no_database, "is damaged (file is not a database); move it away and run: applecart api restore"),
        (of_another_program, "is a database of another program"),
        (with_a_hole, "is damaged ("),
        (of_a_later_version, "has layout 99"),
    ],
)
@pytest.mark.real_time
async def test_a_database_that_cannot_be_used_is_a_sentence(damage: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    await make_folder(tmp_path)
    damage(tmp_path / "store.db")
    assert said in refused(*start(tmp_path))


def test_a_host_that_others_reach_is_told_with_what_they_reach(tmp_path: Path) -> None:
    with running(*start(tmp_path, "--host", "0.0.0.0", "--name", "api.example.org", "--no-controllers")) as process:
        text = read_until(process, SERVES)
    assert re.search(r"notice: port \d+ of 0\.0\.0\.0 is reachable from other machines", text)
    assert "Secrets included" in text
    assert URL.search(text), "this machine itself goes by way of loopback"
    names = subprocess.run(
        ["openssl", "x509", "-in", str(tmp_path / "pki" / "server.crt"), "-noout", "-ext", "subjectAltName"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "DNS:api.example.org" in names


def test_a_disk_that_fails_ends_it_with_a_sentence(tmp_path: Path) -> None:
    """A disk without space, played by a limit on the size of files that the write-ahead log has passed already."""
    with running(*start(tmp_path, "--no-controllers")) as process:
        read_until(process, SERVES)
        subprocess.run(["prlimit", "--pid", str(process.pid), f"--fsize={LIMIT_BYTES}"], check=True)
        kubeconfig = str(tmp_path / "admin.kubeconfig")
        stream = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one-too-many\n"
        assert done("api", "import", "--kubeconfig", kubeconfig, stdin=stream).returncode == 1
        assert process.stdout
        text = process.stdout.read()
        assert process.wait(WAIT_S) == 1
    assert re.search(r"applecart: .*store\.db cannot be used \(.*\); check the disk, then start again", text)
    assert "Traceback" not in text
    with running_api(tmp_path):
        assert b"+embedded" in get(tmp_path, "/version")


@pytest.mark.kubernetes
def test_kubectl_works_with_what_it_prints_and_with_an_issued_kubeconfig(kube_programs: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"

    def kubectl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        ours = ["--kubeconfig", str(kubeconfig), "--cache-dir", str(tmp_path / "cache")]
        command = [str(kube_programs / "kubectl"), *ours, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)

    with running_api(data):
        admin, alice = data / "admin.kubeconfig", tmp_path / "alice.kubeconfig"
        assert "kube-system" in kubectl(admin, "get", "namespaces").stdout
        issued = done("api", "kubeconfig", "--data", str(data), "--user", "alice", "--group", "ops")
        alice.write_text(issued.stdout)
        assert "alice" in kubectl(alice, "auth", "whoami").stdout
        assert "Forbidden" in kubectl(alice, "get", "namespaces").stderr
        kubectl(admin, "create", "clusterrolebinding", "ops", "--clusterrole=view", "--group=ops")
        assert "kube-system" in kubectl(alice, "get", "namespaces").stdout
        waited = kubectl(admin, "wait", "--for=create", "serviceaccount/default", "--timeout=30s")
        assert waited.returncode == 0, "a controller gives every namespace its account"
