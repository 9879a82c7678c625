"""Names and command lines of the sets; nothing is built here."""

import re
import shutil
from pathlib import Path

import pytest
from tests.kubernetes import recipe
from tests.kubernetes.recipe import BuildFailed, Program


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the Go modules that a test may change."""
    for module in ("v1.36", "v1.33", "etcd", "cluster-api", "clientgo"):
        shutil.copytree(recipe.HERE / module, tmp_path / "modules" / module)
    monkeypatch.setattr(recipe, "HERE", tmp_path / "modules")
    return tmp_path / "modules"


def program(name: str, kube: str = "1.36") -> Program:
    return next(program for program in recipe.programs(kube) if program.name == name)


def test_versions_come_from_the_go_mod_files() -> None:
    assert {kube: recipe.kube_version(kube) for kube in recipe.KUBES} == {"1.36": "v1.36.3", "1.33": "v1.33.13"}
    assert recipe.pinned_version("etcd", "go.etcd.io/etcd/server/v3") == "v3.6.16"
    assert recipe.pinned_version("cluster-api", recipe.CLUSTER_API) == "v1.14.2"


def test_a_go_mod_without_the_pin_is_named(modules: Path) -> None:
    (modules / "etcd" / "go.mod").write_text("module x\n\ngo 1.26.0\n")
    with pytest.raises(BuildFailed, match=r"etcd/go\.mod does not require go\.etcd\.io/etcd/server/v3"):
        recipe.folder("1.36")


@pytest.mark.parametrize("kube", recipe.KUBES)
def test_every_staging_module_is_replaced_by_the_release_of_the_same_patch(kube: str) -> None:
    text = (recipe.HERE / f"v{kube}" / "go.mod").read_text()
    staged = "v0" + recipe.kube_version(kube).removeprefix("v1")
    replaced = dict(re.findall(r"^\s+(k8s\.io/\S+) => \S+ (\S+)$", text, re.MULTILINE))
    assert set(replaced.values()) == {staged}
    assert set(re.findall(r"^\s+(k8s\.io/\S+) v0\.0\.0(?:\s|$)", text, re.MULTILINE)) <= set(replaced)
    assert {"k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/kubectl"} <= set(replaced)


def test_a_server_is_stamped_with_its_version() -> None:
    arguments = recipe.build_arguments(program("kube-apiserver", "1.33"))
    flags = arguments[arguments.index("-ldflags") + 1].split()
    stamped = "k8s.io/component-base/version"
    assert {f"{stamped}.gitVersion=v1.33.13", f"{stamped}.gitMajor=1", f"{stamped}.gitMinor=33"} <= set(flags)
    assert {"-s", "-w"} <= set(flags)
    assert {"-trimpath", "-mod=readonly"} <= set(arguments)


def test_a_set_needs_the_newest_go_that_any_of_its_modules_asks_for() -> None:
    assert recipe.go_needed(recipe.programs("1.33")) == recipe.go_needed(recipe.programs("1.36")) == (1, 26, 0)


def test_the_folder_is_in_the_cache_and_says_version_system_and_architecture() -> None:
    place = recipe.folder("1.36", {"APPLECART_CACHE": "/cache"})
    assert place.parent == Path("/cache/kubernetes")
    assert re.fullmatch(r"v1\.36\.3-(linux|darwin)-(amd64|arm64)-[0-9a-f]{12}", place.name)


def test_the_two_minors_have_folders_of_their_own() -> None:
    assert recipe.folder("1.36") != recipe.folder("1.33")


@pytest.mark.parametrize("file", ["v1.36/go.mod", "v1.36/go.sum", "etcd/go.sum", "etcd/main.go", "cluster-api/go.mod"])
def test_any_change_of_a_pin_or_a_checksum_gives_another_folder(modules: Path, file: str) -> None:
    before = recipe.folder("1.36", {})
    assert recipe.folder("1.36", {}) == before
    changed = modules / file
    changed.write_text(changed.read_text() + "\n// changed\n")
    assert recipe.folder("1.36", {}) != before


def test_a_change_of_the_other_minors_pins_changes_nothing(modules: Path) -> None:
    before = recipe.folder("1.36", {})
    (modules / "v1.33" / "go.sum").write_text("")
    assert recipe.folder("1.36", {}) == before


@pytest.mark.parametrize("file", ["clientgo/go.mod", "clientgo/go.sum", "clientgo/main.go"])
def test_a_change_of_the_checks_gives_them_another_folder_and_leaves_the_sets_alone(modules: Path, file: str) -> None:
    before, sets = recipe.checks_folder({}), [recipe.folder(kube, {}) for kube in recipe.KUBES]
    changed = modules / file
    changed.write_text(changed.read_text() + "\n// changed\n")
    assert recipe.checks_folder({}) != before
    assert [recipe.folder(kube, {}) for kube in recipe.KUBES] == sets


def test_the_checks_are_of_the_newest_minor_and_say_so() -> None:
    place = recipe.checks_folder({"APPLECART_CACHE": "/cache"})
    assert place.parent == Path("/cache/kubernetes")
    assert place.name.startswith("client-go-checks-v0" + recipe.kube_version(recipe.DEFAULT_KUBE).removeprefix("v1") + "-")


def test_programs_of_the_person_make_a_set_of_their_own(tmp_path: Path) -> None:
    assert recipe.folder("1.36", {"KUBEBUILDER_ASSETS": str(tmp_path)}) != recipe.folder("1.36", {})


def test_an_assets_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"KUBEBUILDER_ASSETS names .*/nowhere, which is not a folder"):
        recipe.assets_folder({"KUBEBUILDER_ASSETS": str(tmp_path / "nowhere")})


def test_a_minor_that_is_not_pinned_is_refused_with_those_that_are() -> None:
    with pytest.raises(BuildFailed, match=r"Kubernetes 1\.2 is not one .* 1\.36 or 1\.33"):
        recipe.folder("1.2")


def test_an_empty_cache_lacks_everything(tmp_path: Path) -> None:
    lacking = recipe.missing("1.36", {"APPLECART_CACHE": str(tmp_path)})
    assert set(lacking) == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "cluster-api-core",
        "cluster-api-crds",
    }
