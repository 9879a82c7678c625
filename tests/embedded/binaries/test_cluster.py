"""Starting a cluster whose programs misbehave: one sentence that names the program, and no process left. And its run folder:
private, complete, and kept over a restart as far as it must be.
"""

import asyncio
import socket
import ssl
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from applecart.clock import SystemClock
from applecart.embedded.binaries.cluster import ETCD, Options, RealCluster, free_ports, prepare_files
from applecart.errors import ApplecartError, BadInput, ControlPlaneFault, DeadlineExceeded
from tests.embedded.binaries.stand_ins import NEVER_READY, is_alive, put_program

pytestmark = pytest.mark.real_time
NOW = datetime(2026, 1, 1, tzinfo=UTC)

# Answers like etcd and the API server do when they are well: any request over TLS gets 200.
WELL = """
import re, ssl, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

given = dict(flag.split("=", 1) for flag in sys.argv[1:] if "=" in flag)
port = given.get("--secure-port") or re.search(r":(\\d+)$", given["--listen-client-urls"])[1]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(
    given.get("--tls-cert-file") or given["--cert-file"], given.get("--tls-private-key-file") or given["--key-file"]
)
server = ThreadingHTTPServer(("127.0.0.1", int(port)), Answer)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", flush=True)
server.serve_forever()
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return tmp_path / "programs"


def put_well(programs: Path, name: str) -> None:
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(f"#!{sys.executable}\n{WELL}")
    (programs / name).chmod(0o755)


async def failure_of(cluster: RealCluster) -> ApplecartError:
    with pytest.raises(ApplecartError) as caught:
        await cluster.start()
    assert cluster.pids == {}
    assert "\n" not in str(caught.value)
    return caught.value


async def test_a_program_that_ends_at_once_is_named_with_the_end_of_its_log(programs: Path, tmp_path: Path) -> None:
    put_program(programs, "etcd", "echo 'no space left on device' >&2; exit 3")
    error = await failure_of(RealCluster(programs, tmp_path / "run"))
    assert isinstance(error, ControlPlaneFault)
    log = tmp_path / "run" / "logs" / "etcd.log"
    assert str(error) == f"etcd ended with exit code 3; its log {log} ends with: no space left on device"


async def test_a_program_that_is_killed_is_named_with_the_signal(programs: Path, tmp_path: Path) -> None:
    put_program(programs, "etcd", "kill -9 $$")
    assert str(await failure_of(RealCluster(programs, tmp_path / "run"))).startswith("etcd ended with signal 9")


async def test_a_program_that_never_gets_ready_is_given_up_and_ended(programs: Path, tmp_path: Path) -> None:
    put_program(programs, "etcd", f"echo $$ > {tmp_path / 'pid'}; echo waiting for a quorum; {NEVER_READY}")
    cluster = RealCluster(programs, tmp_path / "run", Options(ready_timeout_s=1.0))
    error = await failure_of(cluster)
    assert isinstance(error, DeadlineExceeded)
    assert str(error).startswith("etcd is not ready after 1 s; its log ")
    assert str(error).endswith("ends with: waiting for a quorum")
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_a_missing_program_is_named(programs: Path, tmp_path: Path) -> None:
    error = await failure_of(RealCluster(programs, tmp_path / "run"))
    assert isinstance(error, BadInput)
    assert str(error) == f"{programs / 'etcd'} is missing or not executable; it is needed to start etcd"


async def test_etcd_is_stopped_when_the_api_server_does_not_start(programs: Path, tmp_path: Path) -> None:
    put_well(programs, "etcd")
    put_program(programs, "kube-apiserver", "echo 'Error: unknown flag' >&2; exit 1")
    error = await failure_of(RealCluster(programs, tmp_path / "run"))
    assert str(error).startswith("kube-apiserver ended with exit code 1")
    assert "serving" in (tmp_path / "run" / "logs" / "etcd.log").read_text()


async def test_a_cancelled_start_leaves_no_process(programs: Path, tmp_path: Path) -> None:
    put_program(programs, "etcd", NEVER_READY)
    cluster = RealCluster(programs, tmp_path / "run")
    starting = asyncio.ensure_future(cluster.start())
    while not cluster.pids:  # noqa: ASYNC110 - one turn of the loop at a time, until it has started something
        await asyncio.sleep(0)
    pid = cluster.pids[ETCD]
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not is_alive(pid)


async def test_a_program_that_ends_later_is_noticed_and_named(programs: Path, tmp_path: Path) -> None:
    put_well(programs, "etcd")
    put_well(programs, "kube-apiserver")
    async with RealCluster(programs, tmp_path / "run") as cluster:
        cluster.check()
        assert set(cluster.pids) == {"etcd", "kube-apiserver"}
        put_program(programs, "kube-scheduler", "exit 4")
        with pytest.raises(ControlPlaneFault, match="kube-scheduler ended with exit code 4"):
            await cluster.start_program("kube-scheduler", [], ("https://127.0.0.1:1/healthz",))
        cluster.check()  # it never was part of the cluster
    assert cluster.pids == {}


async def test_starting_what_runs_changes_nothing(programs: Path, tmp_path: Path) -> None:
    put_well(programs, "etcd")
    put_well(programs, "kube-apiserver")
    async with RealCluster(programs, tmp_path / "run", clock=SystemClock()) as cluster:
        before = cluster.pids
        await cluster.start_api_server()
        assert cluster.pids == before


def test_ports_are_free_and_all_different() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    with ExitStack() as held:
        for port in ports:
            held.enter_context(socket.socket()).bind(("127.0.0.1", port))


URL = "https://127.0.0.1:6443"


def test_everything_the_flags_name_exists_and_only_the_owner_may_enter(tmp_path: Path) -> None:
    files = prepare_files(tmp_path / "run", NOW)
    for name in files.trust.__slots__:
        pair = getattr(files.trust, name)
        assert pair.certificate.is_file(), name
        assert pair.key.is_file(), name
    assert files.folder.stat().st_mode & 0o777 == 0o700
    assert files.log("etcd").parent.is_dir()


def test_a_restart_keeps_what_others_hold_and_renews_the_rest(tmp_path: Path) -> None:
    first = prepare_files(tmp_path, NOW)
    trust = first.trust
    kept = [trust.authority.certificate, trust.authority.key, trust.token_keys.key, trust.etcd_authority.key]
    before = [path.read_bytes() for path in kept]
    second = prepare_files(tmp_path, NOW + timedelta(days=300))
    assert [path.read_bytes() for path in kept] == before
    server = x509.load_pem_x509_certificate(second.trust.server.certificate.read_bytes())
    assert server.not_valid_after_utc > NOW + timedelta(days=600)


def test_a_certificate_of_the_api_does_not_open_etcd(tmp_path: Path) -> None:
    files = prepare_files(tmp_path, NOW)
    etcd = x509.load_pem_x509_certificate(files.trust.etcd_authority.certificate.read_bytes())
    api = x509.load_pem_x509_certificate(files.trust.authority.certificate.read_bytes())
    assert etcd.public_key() != api.public_key()


def test_a_client_gets_a_pair_of_files_and_a_kubeconfig_that_agree(tmp_path: Path) -> None:
    files = prepare_files(tmp_path, NOW)
    client = files.write_client("ci", "ci-user", ("readers",), URL, NOW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(client.files.certificate, client.files.key)  # raises when they are not a pair
    assert client.kubeconfig == tmp_path / "ci.kubeconfig"
    assert URL in client.kubeconfig.read_text()
