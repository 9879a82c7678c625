"""The program's own words and exit codes; that it works is proven in `real/`."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from applecart.kubelet import main
from applecart.kubelet.main import _until_told, run
from applecart.kubelet.only_agent import only_agent


def test_a_wrong_flag_is_a_sentence_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--max-pods=many"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("tart-kubelet: --max-pods 'many'")
    assert "Traceback" not in said


class Panic(BaseException):
    """As Rust makes them."""


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (None, "the agent ended although nobody asked it to"),
        (asyncio.CancelledError(), "unexpected StrayCancellation: it was cancelled from within"),
        (Panic("a bug"), "unexpected Panic: a bug"),
    ],
)
@pytest.mark.real_time
def test_an_agent_that_ends_by_itself_ends_with_a_sentence_and_code_1(
    end: BaseException | None, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended with 0, as if it had been asked to stop, or with a traceback."""

    async def ends() -> None:
        if end is not None:
            raise end

    async def serve(*_: object) -> None:
        await _until_told(asyncio.create_task(ends()))

    monkeypatch.setattr(main, "serve", serve)
    assert run(["--node-name=mac-1"]) == 1
    assert f"tart-kubelet: {sentence}" in capsys.readouterr().err


def test_an_unknown_flag_points_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--no-such-flag"]) == 2
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_end_well(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run([flag])
    assert ended.value.code == 0
    assert "tart-kubelet" in capsys.readouterr().out


def folders(tmp_path: Path) -> list[str]:
    named = [f"--{name}-dir={tmp_path / name}" for name in ("state", "userdata", "vm-log", "vnc-control")]
    return [*named, f"--tart-home={tmp_path / 'tart'}", "--node-name=mac-1", "--node-ip=127.0.0.1"]


def test_a_kubeconfig_that_is_not_there_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*folders(tmp_path), f"--kubeconfig={tmp_path / 'none'}"]) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "none") in said
    assert "Traceback" not in said


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Of an agent whose API is away."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: a, user: {}}]}"
    )
    return [*folders(tmp_path), f"--kubeconfig={kubeconfig}"]


def test_a_folder_that_cannot_be_made_is_a_sentence(
    tmp_path: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run([*flags, f"--state-dir={tmp_path / 'file' / 'state'}"]) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "file" / "state") in said
    assert "Traceback" not in said


def test_a_second_agent_in_one_state_folder_is_a_sentence_that_names_the_first(
    tmp_path: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two agents tore down each other's VMs, and each told the Pods of the other that an earlier VM still runs."""
    (tmp_path / "state").mkdir()
    with only_agent(tmp_path / "state"):
        assert run(flags) == 2
    said = capsys.readouterr().err
    assert f"--state-dir {tmp_path / 'state'} is in use by another tart-kubelet (process {os.getpid()}); stop it first" in said


def test_a_page_that_cannot_be_served_names_its_flag(
    tmp_path: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run([*flags, "--metrics-bind-address=0", f"--health-probe-bind-address={where}"]) == 2
    said = capsys.readouterr().err
    assert f"cannot serve health on {where}" in said
    assert "with --health-probe-bind-address" in said
