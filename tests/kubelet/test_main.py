"""The program's own words and exit codes; that it works is proven in `real/`."""

from pathlib import Path

import pytest

from applecart.kubelet.main import run


def test_a_wrong_flag_is_a_sentence_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--max-pods=many"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("tart-kubelet: --max-pods 'many'")
    assert "Traceback" not in said


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


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: a, user: {}}]}"
    )
    flags = [*folders(tmp_path), f"--kubeconfig={kubeconfig}", f"--state-dir={tmp_path / 'file' / 'state'}"]
    assert run(flags) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "file" / "state") in said
    assert "Traceback" not in said
