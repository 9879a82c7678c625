"""`applecart up`: it starts what it says, says what is missing, and stops cleanly."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from applecart.cli.up import Options, chosen_api, make_data_folder
from applecart.errors import BadInput

WAIT_S = 60
PAGES = re.compile(r"http://127\.0\.0\.1:(\d+)/metrics")


def options(**given: object) -> Options:
    known: dict[str, object] = {
        "api": "auto",
        "binaries": None,
        "kubeconfig": None,
        "context": None,
        "data": Path("unused"),
        "port": 0,
    }
    return Options(**{**known, **given})  # type: ignore[arg-type]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).touch()
    return tmp_path


def test_without_anything_named_there_is_no_api() -> None:
    """Also with a kubeconfig in its usual place: a cluster that nobody named must not be touched."""
    assert chosen_api(options()) == "none"


def test_a_named_kubeconfig_or_context_means_that_cluster(programs: Path) -> None:
    assert chosen_api(options(kubeconfig="some/file", binaries=programs)) == "external"
    assert chosen_api(options(context="ci")) == "external"
    assert chosen_api(options(api="external")) == "external"


def test_a_folder_with_the_programs_is_used(programs: Path) -> None:
    assert chosen_api(options(binaries=programs)) == "binaries"
    assert chosen_api(options(binaries=programs, api="binaries", kubeconfig="some/file")) == "binaries"


def test_a_folder_that_lacks_a_program_is_refused_by_name(programs: Path) -> None:
    (programs / "etcd").unlink()
    with pytest.raises(BadInput, match="has no etcd; name another folder or run make kube-binaries"):
        chosen_api(options(binaries=programs))


def test_binaries_without_a_folder_says_what_to_give() -> None:
    with pytest.raises(BadInput, match="give --binaries, or run make kube-binaries"):
        chosen_api(options(api="binaries"))


@pytest.mark.parametrize("below", ["a-file", "a-file/deeper"])
def test_a_data_folder_that_cannot_be_written_is_a_sentence(below: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(BadInput, match=r"--data .*a-file.* cannot be written .*; name another folder"):
        make_data_folder(tmp_path / below)


@contextmanager
def running_up(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a person runs it, ended for certain."""
    command = [sys.executable, "-m", "applecart", "up", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout
    text = ""
    for line in process.stdout:
        text += line
        if words in line:
            return text
    pytest.fail(f"it ended before saying {words!r}:\n{text}")


def page(text: str, path: str) -> tuple[int, str]:
    found = PAGES.search(text)
    assert found
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{found[1]}{path}", timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_without_an_api_it_serves_its_pages_says_what_is_missing_and_ends_on_ctrl_c() -> None:
    with running_up() as process:
        text = read_until(process, "serves its metrics and health only")
        assert "make kube-binaries" in text
        assert page(text, "/healthz")[0] == 200
        assert page(text, "/readyz") == (503, "not ok: api: no Kubernetes API is configured\nnot ok\n")
        assert "applecart_wait_oldest_seconds" in page(text, "/metrics")[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0


def test_a_taken_port_is_a_sentence() -> None:
    with running_up() as first:
        found = PAGES.search(read_until(first, "serves its metrics"))
        assert found
        done = subprocess.run(
            [sys.executable, "-m", "applecart", "up", "--port", found[1]],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert re.search(r"cannot serve metrics on 127\.0\.0\.1:\d+ .*; choose another address or port", done.stderr)


@pytest.mark.kubernetes
def test_with_the_programs_it_runs_an_api_with_our_kinds_and_stops_it_again(kube_programs: Path, tmp_path: Path) -> None:
    with running_up("--binaries", str(kube_programs), "--data", str(tmp_path)) as process:
        text = read_until(process, "Ctrl-C stops it")
        assert "kinds    ScalewayAppleSiliconMachine" in text
        assert page(text, "/readyz") == (200, "ok: caches\nok\n")
        assert 'applecart_objects{kind="runnerpools.tuist.dev"} 0.0' in page(text, "/metrics")[1]
        shown = next(line for line in text.splitlines() if "get crds" in line).split()
        listed = subprocess.run(shown, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout
        assert "runnerpools.tuist.dev" in listed
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    refused = subprocess.run(shown, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert refused.returncode != 0, "the API server it started is gone"


@pytest.mark.kubernetes
def test_an_api_server_that_dies_ends_it_with_a_sentence(kube_programs: Path, tmp_path: Path) -> None:
    with running_up("--binaries", str(kube_programs), "--data", str(tmp_path)) as process:
        read_until(process, "Ctrl-C stops it")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            if "etcd" not in Path(f"/proc/{child}/cmdline").read_text().split("\0")[0]:
                subprocess.run(["kill", "-9", child], check=True)
        assert process.stdout
        text = process.stdout.read()
        assert process.wait(WAIT_S) == 1
    assert "applecart: kube-apiserver ended with signal 9" in text
    assert "Traceback" not in text
