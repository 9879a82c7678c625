"""Building a set, with a stand-in for Go that writes small files and remembers what it built."""

import subprocess
import sys
from pathlib import Path

import pytest
from applecart.cli.binaries import FOLDERS, binaries_folder
from tests.kubernetes import build
from tests.kubernetes.recipe import CLIENT_GO_CHECKS, checks_folder, folder, missing, programs

# `go env`, `go mod download -json` and `go build -o FILE PACKAGE`, as far as build.py uses them.
STAND_IN = """#!{python}
import json, os, sys
from pathlib import Path

here = Path({here!r})
arguments = sys.argv[1:]
if arguments[0] == "env":
    print("go1.26.8")
elif arguments[0] == "mod":
    print(json.dumps({{"Dir": str(here / "module")}}))
else:
    package = arguments[-1]
    with (here / "built").open("a") as built:
        built.write(package + "\\n")
    if (here / "broken").exists() and package.endswith((here / "broken").read_text()):
        Path(arguments[arguments.index("-o") + 1]).write_text("half")
        sys.exit("# some/package\\nsome/package/file.go:1:1: undefined: x")
    Path(arguments[arguments.index("-o") + 1]).write_text("program")
"""


class Go:
    """What the stand-in did and shall do."""

    def __init__(self, here: Path) -> None:
        self.here = here

    @property
    def built(self) -> list[str]:
        record = self.here / "built"
        return record.read_text().split() if record.exists() else []

    def break_package(self, ending: str) -> None:
        (self.here / "broken").write_text(ending)

    def repair(self) -> None:
        (self.here / "broken").unlink()


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    here = tmp_path / "go"
    bases = here / "module" / "core" / "config" / "crd" / "bases"
    bases.mkdir(parents=True)
    (bases / "machines.yaml").write_text("kind: CustomResourceDefinition\n")
    (bases / "machines.yaml").chmod(0o444)
    program = here / "go"
    program.write_text(STAND_IN.format(python=sys.executable, here=str(here)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.setenv("APPLECART_CACHE", str(tmp_path / "cache"))
    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)
    return Go(here)


def packages(kube: str) -> list[str]:
    """Of the set, and of the checks that follow it."""
    return [program.package for program in [*programs(kube), CLIENT_GO_CHECKS]]


def test_a_set_is_built_whole_and_its_folder_is_the_last_line(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--kube", "1.33"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == str(folder("1.33"))
    found = binaries_folder()
    assert found == folder("1.33").parent / "1.33", "where applecart up finds it"
    assert found.resolve() == folder("1.33").resolve()
    assert go.built == packages("1.33")
    assert missing("1.33") == []
    assert "kube-apiserver v1.33.13: built in" in printed.err
    assert (folder("1.33") / "cluster-api-crds" / "machines.yaml").read_text() == "kind: CustomResourceDefinition\n"


def test_nothing_but_the_set_is_left_in_its_folder(go: Go) -> None:
    build.main([])
    names = {path.name for path in folder().iterdir()}
    assert names == {*(program.name for program in programs("1.36")), "cluster-api-crds"}


def test_the_checks_are_built_beside_the_set_and_only_once(go: Go) -> None:
    build.main([])
    assert (checks_folder() / "client-go-checks").read_text() == "program"
    before = go.built
    build.main(["--kube", "1.33"])
    assert go.built[len(before) :] == [program.package for program in programs("1.33")]


def test_checks_that_cannot_be_built_are_named(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    build.main([])
    (checks_folder() / "client-go-checks").unlink()
    go.break_package(".")
    assert build.main([]) == 1
    assert "client-go-checks v0.36.3 cannot be built" in capsys.readouterr().err.splitlines()[-1]


def test_a_complete_set_is_not_built_again_and_needs_no_go(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    build.main([])
    first = go.built
    monkeypatch.setenv("PATH", "")
    assert build.main([]) == 0
    assert go.built == first


def test_only_what_is_missing_is_built(go: Go) -> None:
    build.main([])
    before = len(go.built)
    (folder() / "kubectl").unlink()
    build.main([])
    assert go.built[before:] == ["k8s.io/kubernetes/cmd/kubectl"]


def test_a_failing_build_ends_in_one_sentence_and_leaves_no_half_program(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    go.break_package("kube-scheduler")
    assert build.main([]) == 1
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert last.startswith("make kube-binaries: kube-scheduler v1.36.3 cannot be built: some/package/file.go:1:1")
    assert printed.out == ""
    assert not (folder() / "kube-scheduler").exists()
    go.repair()
    assert build.main([]) == 0
    assert missing() == []


def test_programs_of_the_person_are_taken_and_the_rest_is_built(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).write_text("theirs")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert build.main([]) == 0
    assert {name: (folder() / name).read_text() for name in ("etcd", "kubectl", "kube-scheduler")} == {
        "etcd": "theirs",
        "kubectl": "theirs",
        "kube-scheduler": "program",
    }
    assert "k8s.io/kubernetes/cmd/kube-apiserver" not in go.built
    assert f"kube-apiserver: taken from KUBEBUILDER_ASSETS ({assets / 'kube-apiserver'})" in capsys.readouterr().err


def test_a_program_that_left_the_persons_folder_is_built(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "etcd").write_text("theirs")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    build.main([])
    (tmp_path / "assets" / "etcd").unlink()
    assert missing() == ["etcd"]
    assert build.main([]) == 0
    assert (folder() / "etcd").read_text() == "program"


def test_two_runs_at_once_build_each_program_once(go: Go) -> None:
    runs = [
        subprocess.Popen([sys.executable, build.__file__], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert {out.splitlines()[-1] for out, _ in answers} == {str(folder())}
    assert sorted(go.built) == sorted(packages("1.36"))


def test_a_cache_that_cannot_be_written_is_named(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("APPLECART_CACHE", str(tmp_path / "file"))
    assert build.main([]) == 1
    assert f"{tmp_path / 'file'}" in capsys.readouterr().err


def test_an_unknown_minor_ends_in_one_sentence(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--kube", "1.2"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
