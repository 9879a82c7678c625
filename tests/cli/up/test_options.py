"""Which API follows from what `applecart up` was told."""

from pathlib import Path

import pytest

from applecart.cli.up.options import Options, chosen_api, frees_stuck_pods, mac_count, refuse_unwritable
from applecart.errors import BadInput


def options(**given: object) -> Options:
    return Options(Path("unused"), **given)  # type: ignore[arg-type]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).touch()
    return tmp_path


def test_without_anything_named_it_is_our_own(programs: Path) -> None:
    """Also with a kubeconfig in its usual place: a cluster that nobody named must not be touched."""
    assert chosen_api(options()) == "embedded"
    assert chosen_api(options(binaries=programs)) == "embedded", "programs that lie around are no reason to run them"


def test_a_named_kubeconfig_or_context_means_that_cluster() -> None:
    assert chosen_api(options(kubeconfig="some/file")) == "external"
    assert chosen_api(options(context="ci")) == "external"
    assert chosen_api(options(api="external")) == "external"


@pytest.mark.parametrize("api", ["embedded", "binaries"])
def test_a_named_cluster_and_another_api_contradict_each_other(api: str) -> None:
    with pytest.raises(BadInput, match=f"which --api {api} does not use; leave one of them out"):
        chosen_api(options(api=api, kubeconfig="some/file"))


def test_a_folder_with_the_programs_is_used_when_asked_for(programs: Path) -> None:
    assert chosen_api(options(api="binaries", binaries=programs)) == "binaries"


def test_a_folder_that_lacks_a_program_is_refused_by_name(programs: Path) -> None:
    (programs / "etcd").unlink()
    with pytest.raises(BadInput, match="has no etcd; name another folder or run make kube-binaries"):
        chosen_api(options(api="binaries", binaries=programs))


def test_binaries_without_a_folder_says_what_to_give() -> None:
    with pytest.raises(BadInput, match="give --binaries, or run make kube-binaries"):
        chosen_api(options(api="binaries"))


@pytest.mark.parametrize(
    ("api", "given", "count"),
    [
        ("embedded", {}, 3),
        ("binaries", {}, 3),
        ("external", {}, 0),
        ("external", {"controllers": True}, 0),
        ("external", {"macs": 0}, 0),
        ("embedded", {"controllers": False}, 0),
        ("embedded", {"controllers": False, "macs": 2}, 2),
        ("embedded", {"macs": 0}, 0),
        ("binaries", {"macs": 10}, 10),
    ],
)
def test_there_are_three_macs_where_pods_can_be_placed_on_them(api: str, given: dict[str, object], count: int) -> None:
    assert mac_count(api, options(**given)) == count


def test_no_mac_is_simulated_in_a_named_cluster() -> None:
    with pytest.raises(BadInput, match="never in a cluster you name; leave it out"):
        mac_count("external", options(macs=1))


def test_a_data_folder_that_guests_could_not_share_is_refused_by_its_own_flag() -> None:
    with pytest.raises(BadInput, match=r"--data a:b: .*name another one, or give --macs 0"):
        mac_count("embedded", Options(Path("a:b")))
    assert mac_count("embedded", Options(Path("a:b"), macs=0)) == 0


@pytest.mark.parametrize(
    ("api", "controllers", "frees"),
    [
        ("embedded", None, True),
        ("binaries", None, True),
        ("external", None, False),
        ("external", True, True),
        ("embedded", False, False),
    ],
)
def test_stuck_pods_are_freed_where_our_controllers_may_run(api: str, controllers: bool | None, frees: bool) -> None:
    assert frees_stuck_pods(api, options(controllers=controllers)) is frees


@pytest.mark.parametrize("below", ["a-file", "a-file/deeper"])
def test_a_data_folder_that_cannot_be_written_is_a_sentence(below: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(BadInput, match=r"--data .*a-file.* cannot be written .*; name another folder"):
        refuse_unwritable(tmp_path / below)
