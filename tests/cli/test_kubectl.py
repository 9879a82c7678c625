"""The kubectl that a printed line names."""

from pathlib import Path

from applecart.cli.kubectl import kubectl_command


def program(folder: Path) -> Path:
    folder.mkdir()
    file = folder / "kubectl"
    file.touch(mode=0o755)
    return file


def test_the_one_on_the_path_goes_by_its_name(tmp_path: Path) -> None:
    built = program(tmp_path / "built")
    found = program(tmp_path / "bin")
    assert kubectl_command({"PATH": str(found.parent), "APPLECART_BINARIES": str(built.parent)}) == "kubectl"


def test_one_that_was_built_goes_by_its_path_quoted_for_a_shell(tmp_path: Path) -> None:
    built = program(tmp_path / "with space")
    assert kubectl_command({"PATH": "", "APPLECART_BINARIES": str(built.parent)}) == f"'{built}'"
    assert kubectl_command({"PATH": "", "KUBEBUILDER_ASSETS": str(built.parent)}) == f"'{built}'"


def test_where_none_is_found_the_person_is_trusted_to_have_one(tmp_path: Path) -> None:
    (tmp_path / "kubectl").touch(mode=0o644)
    assert kubectl_command({"PATH": "", "APPLECART_BINARIES": str(tmp_path)}) == "kubectl"
    assert kubectl_command({}) == "kubectl"
