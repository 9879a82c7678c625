"""Which programs of a real Kubernetes are run, and which kubectl a printed line names."""

import os
from pathlib import Path

import pytest

from applecart.cli.binaries import binaries_folder, cache_root, kubectl_command

PROGRAMS = ("etcd", "kube-apiserver", "kubectl")


def program(folder: Path, name: str = "kubectl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.touch(mode=0o755)
    return file


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def built(cache: Path, minor: str, *names: str) -> Path:
    """As the builder leaves it: a folder, and a link with the minor's name."""
    real = cache / "kubernetes" / f"v{minor}.3-linux-0123456789ab"
    for name in names:
        program(real, name)
    link = cache / "kubernetes" / minor
    link.symlink_to(real)
    return link


def test_the_cache_is_the_users_unless_the_environment_names_another() -> None:
    assert cache_root({"XDG_CACHE_HOME": "/xdg", "APPLECART_CACHE": "/own"}) == Path("/own")
    assert cache_root({"XDG_CACHE_HOME": "/home/a/.cache"}) == Path("/home/a/.cache/applecart")
    assert cache_root({}) == Path.home() / ".cache" / "applecart"


def test_the_newest_whole_set_is_found_by_itself(cache: Path) -> None:
    environ = {"APPLECART_CACHE": str(cache)}
    assert binaries_folder(environ) is None
    built(cache, "1.9", *PROGRAMS)
    newest = built(cache, "1.36", *PROGRAMS)
    built(cache, "1.37", "etcd", "kubectl")  # still being built
    assert binaries_folder(environ) == newest
    assert kubectl_command({**environ, "PATH": ""}) == str(newest / "kubectl")


def test_a_cache_that_may_not_be_read_has_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`api start` of a service user with root's HOME ended over the name of kubectl in the line it prints."""
    built(cache, "1.36", *PROGRAMS)

    def refuse(self: Path, **_: bool) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert binaries_folder({"APPLECART_CACHE": str(cache)}) is None
    assert kubectl_command({"APPLECART_CACHE": str(cache)}) == "kubectl"


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with a user id of its own: no HOME, no line in passwd."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 54321)
    assert kubectl_command({"PATH": ""}) == "kubectl"


def test_a_folder_that_is_named_wins(cache: Path) -> None:
    built(cache, "1.36", *PROGRAMS)
    environ = {"APPLECART_CACHE": str(cache), "APPLECART_BINARIES": "mine", "KUBEBUILDER_ASSETS": "theirs"}
    assert binaries_folder(environ) == Path("mine")
    assert binaries_folder({**environ, "APPLECART_BINARIES": ""}) == Path("theirs")


def test_the_kubectl_on_the_path_goes_by_its_name(tmp_path: Path) -> None:
    there = program(tmp_path / "built")
    found = program(tmp_path / "bin")
    assert kubectl_command({"PATH": str(found.parent), "APPLECART_BINARIES": str(there.parent)}) == "kubectl"


def test_a_kubectl_that_was_built_goes_by_its_path_quoted_for_a_shell(tmp_path: Path) -> None:
    there = program(tmp_path / "with space")
    assert kubectl_command({"PATH": "", "APPLECART_BINARIES": str(there.parent)}) == f"'{there}'"
    assert kubectl_command({"PATH": "", "KUBEBUILDER_ASSETS": str(there.parent)}) == f"'{there}'"


def test_where_no_kubectl_is_found_the_person_is_trusted_to_have_one(tmp_path: Path) -> None:
    (tmp_path / "kubectl").touch(mode=0o644)
    assert kubectl_command({"PATH": "", "APPLECART_BINARIES": str(tmp_path)}) == "kubectl"
    assert kubectl_command({"APPLECART_CACHE": str(tmp_path)}) == "kubectl"
