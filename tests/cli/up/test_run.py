"""`applecart up`: it starts what it says, says what to type, and stops cleanly."""

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands import SERVES, WAIT_S, done, read_until, refused, running, running_api
from tests.kube.kubeconfigs import kubeconfig as document
from tests.kube.kubeconfigs import write
from tests.kubernetes.cluster import FullCluster

PAGES = re.compile(r"http://127\.0\.0\.1:(\d+)/metrics")
API = re.compile(r"https://127\.0\.0\.1:\d+")
KUBECONFIG = re.compile(r"export KUBECONFIG=(\S+)")
SWEEPS = 'applecart_task_restarts_total{task="stuck Pods"}'  # there as soon as it runs


@contextmanager
def running_up(data: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with running("up", "--port", "0", "--data", str(data), *arguments) as process:
        yield process


def page(text: str, path: str) -> tuple[int, str]:
    found = PAGES.search(text)
    assert found
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{found[1]}{path}", timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def kubeconfig(text: str) -> str:
    found = KUBECONFIG.search(text)
    assert found
    return found[1]


def test_it_runs_our_own_api_with_controllers_and_kinds_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    with running_up(tmp_path) as process:
        text = read_until(process, SERVES)
        assert "(our own API server, in this process)" in text
        assert "garbage collector" in text
        assert "scheduler" in text
        assert "RunnerPool" in text
        assert "mac-1, mac-2, mac-3 (simulated; each Pod becomes a simulated VM)" in text
        assert re.search(r"\n  \S*kubectl run hello ", text)
        assert page(text, "/healthz")[0] == 200
        assert page(text, "/readyz") == (200, "ok: api\nok: manager\nok\n")
        metrics = page(text, "/metrics")[1]
        assert 'applecart_informer_objects{kind="runnerpools.tuist.dev",scope=""} 0.0' in metrics
        assert 'applecart_informer_objects{kind="nodes",scope=""} 3.0' in metrics
        assert f"{SWEEPS} 0.0" in metrics
        for task in ("compaction", "checkpoints", "definitions", "scheduler"):  # of the API as well as of the manager
            assert f'applecart_task_restarts_total{{task="{task}"}} 0.0' in metrics
        assert 'scheduler_pending_pods{queue="unschedulable"} 0.0' in metrics
        assert done("connection", "--kubeconfig", kubeconfig(text)).returncode == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert done("connection", "--kubeconfig", kubeconfig(text)).returncode == 1, "the API has ended with it"


def test_what_was_created_is_there_after_the_next_start(tmp_path: Path) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: kept\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: kept}\nspec: {containers: [{name: c, image: i}]}\n"
    stream = f"{namespace}---\n{pod}"  # nobody makes a ServiceAccount, so a Pod needs none
    with running_up(tmp_path, "--no-controllers") as process:
        text = read_until(process, SERVES)
        assert "controllers  none (switched off)" in text
        assert re.search(r"\n  \S*kubectl get crds\n", text)
        assert "simulated" not in text, "nobody would place a Pod on them"
        assert done("api", "import", "--kubeconfig", kubeconfig(text), stdin=stream).returncode == 0
        url = API.search(text)
        process.kill()
    with running_up(tmp_path, "--no-controllers") as process:
        text = read_until(process, SERVES)
        assert url
        assert url[0] in text, "kubeconfigs and tokens that were handed out go on working"
        ended = done("api", "import", "--kubeconfig", kubeconfig(text), stdin=stream)
        assert ended.stdout == "2 were there already\n"


def test_a_second_one_on_the_same_data_is_a_sentence_that_says_how_to_end_the_first(tmp_path: Path) -> None:
    """It advised another port for its page, with which it then said that the folder is in use."""
    with running_up(tmp_path) as first:
        found = PAGES.search(read_until(first, SERVES))
        assert found
        for port in (found[1], "0"):
            said = refused("up", "--port", port, "--data", str(tmp_path))
            assert f"applecart already runs on {tmp_path} (process {first.pid}); use that one, " in said
            assert f"end it with: kill {first.pid}, or" in said


def test_a_manifest_that_a_person_has_edited_is_kept(tmp_path: Path) -> None:
    for _ in range(2):
        with running_up(tmp_path, "--macs", "1") as process:
            assert f"example      {tmp_path}/hello.yaml" in read_until(process, SERVES)
        text = (tmp_path / "hello.yaml").read_text()
        assert text.startswith("# A job that ends by itself")
        (tmp_path / "hello.yaml").write_text(f"{text}# mine\n")
    assert text.endswith("# mine\n")


def test_a_taken_port_is_a_sentence(tmp_path: Path) -> None:
    with running_up(tmp_path / "first") as first:
        found = PAGES.search(read_until(first, "pages"))
        assert found
        said = refused("up", "--port", found[1], "--data", str(tmp_path / "second"))
    assert re.search(r"cannot serve metrics on 127\.0\.0\.1:\d+ .*; choose another address or port", said)


def test_macs_in_a_named_cluster_are_refused(tmp_path: Path) -> None:
    said = refused("up", "--port", "0", "--data", str(tmp_path / "data"), "--kubeconfig", "some/file", "--macs", "2")
    assert "--macs simulates Macs in an API that is started here, never in a cluster you name" in said
    assert not (tmp_path / "data").exists()


def test_a_kubeconfig_that_is_not_there_is_a_sentence_and_nothing_is_started(tmp_path: Path) -> None:
    ended = done("up", "--port", "0", "--data", str(tmp_path / "data"), "--kubeconfig", str(tmp_path / "none"))
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists()


def test_why_a_named_cluster_does_not_answer_is_told_while_it_is_waited_for(tmp_path: Path) -> None:
    """It was said after a minute, when the client had given up twice."""
    file = write(tmp_path / "config", document(cluster={"server": "https://127.0.0.1:1"}))
    with running_up(tmp_path / "data", "--kubeconfig", str(file)) as process:
        text = read_until(process, "waiting for the API")
        assert "not ok: api: https://127.0.0.1:1 is unreachable (connection refused)" in page(text, "/readyz")[1]


def test_in_a_named_cluster_our_controllers_and_the_sweep_run_when_asked_for_and_under_their_lease(tmp_path: Path) -> None:
    with running_api(tmp_path / "api", "--no-controllers"):
        named = ("--kubeconfig", str(tmp_path / "api" / "admin.kubeconfig"))
        with running_up(tmp_path / "data", *named, "--controllers") as process:
            text = read_until(process, "took the lease")
            assert re.search(r"controllers  garbage collector, .*, scheduler\n", text)
            metrics = page(text, "/metrics")[1]
            assert 'leader_election_master_status{name="kube-system/applecart-controllers"} 1.0' in metrics
            assert f"{SWEEPS} 0.0" in metrics


@pytest.mark.kubernetes
def test_with_the_programs_it_runs_a_kube_apiserver_with_our_controllers(kube_programs: Path, tmp_path: Path) -> None:
    kubectl = str(kube_programs / "kubectl")
    with running_up(tmp_path, "--api", "binaries", "--binaries", str(kube_programs)) as process:
        text = read_until(process, SERVES)
        assert "(kube-apiserver and etcd, started here)" in text
        assert page(text, "/readyz") == (200, "ok: manager\nok\n")
        asked = [kubectl, "--kubeconfig", kubeconfig(text), "--cache-dir", str(tmp_path / "cache")]
        account = [*asked, "wait", "--for=create", "serviceaccount/default", "--timeout=30s"]
        subprocess.run(account, capture_output=True, text=True, timeout=WAIT_S, check=True)  # made by a controller of ours
        listed = subprocess.run([*asked, "get", "crds"], capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
        assert "runnerpools.tuist.dev" in listed
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    gone = subprocess.run([*asked, "get", "crds"], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert gone.returncode != 0, "the API server it started is gone"


@pytest.mark.kubernetes
def test_an_api_server_that_dies_ends_it_with_a_sentence(kube_programs: Path, tmp_path: Path) -> None:
    with running_up(tmp_path, "--api", "binaries", "--binaries", str(kube_programs)) as process:
        read_until(process, SERVES)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            if "etcd" not in Path(f"/proc/{child}/cmdline").read_text().split("\0")[0]:
                subprocess.run(["kill", "-9", child], check=True)
        assert process.stdout
        text = process.stdout.read()
        assert process.wait(WAIT_S) == 1
    assert "applecart: kube-apiserver ended with signal 9" in text
    assert "Traceback" not in text


@pytest.mark.kubernetes
def test_in_a_named_cluster_it_runs_no_controllers_and_installs_nothing(real_cluster: FullCluster, tmp_path: Path) -> None:
    with running_up(tmp_path / "data", "--kubeconfig", str(real_cluster.kubeconfig)) as process:
        text = read_until(process, "controllers")
        assert "(a cluster that was named)" in text
        assert "none (an external API has its own" in text
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        assert process.stdout
        assert "kinds" not in process.stdout.read()
    assert not (tmp_path / "data").exists()


@pytest.mark.kubernetes
def test_kubectl_works_with_what_it_prints(kube_programs: Path, tmp_path: Path) -> None:
    with running_up(tmp_path) as process:
        text = read_until(process, SERVES)
        asked = [str(kube_programs / "kubectl"), "--kubeconfig", kubeconfig(text), "--cache-dir", str(tmp_path / "cache")]
        listed = subprocess.run([*asked, "get", "crds"], capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
        assert "runnerpools.tuist.dev" in listed
        version = subprocess.run([*asked, "version"], capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
        assert "+embedded" in version
