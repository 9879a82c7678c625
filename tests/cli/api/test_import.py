"""What an import makes of a stream, before it speaks to any cluster."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import Key
from applecart.cli.api.portable import OWNERS
from applecart.cli.main import run
from applecart.errors import BadInput
from tests.cli.commands import refused

importing = import_module("applecart.cli.api.import_")


def document(name: str, owners: str | None = None, namespace: str = "ci", kind: str = "Wagon") -> dict[str, Any]:
    annotations = {"annotations": {"kept": "yes", OWNERS: owners}} if owners is not None else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace, **annotations}}


def test_noted_owners_are_taken_out_of_the_annotations_and_the_document_is_not_changed() -> None:
    given = document("one", '[{"apiVersion":"v1","kind":"Wagon","name":"owner"}]')
    found = importing.read(given, "stdin")
    assert found.owners == ({"apiVersion": "v1", "kind": "Wagon", "name": "owner"},)
    assert found.key == Key("ci", "one")
    assert found.document["metadata"]["annotations"] == {"kept": "yes"}
    assert OWNERS in given["metadata"]["annotations"]


@pytest.mark.parametrize("owners", ["", "{", "{}", "[1]", '"a"'])
def test_owners_that_cannot_be_read_are_refused_by_the_object(owners: str) -> None:
    with pytest.raises(BadInput, match=r"stdin: Wagon one has an annotation applecart\.dev/exported-owners"):
        importing.read(document("one", owners), "stdin")


@pytest.mark.parametrize("name", ["owner-here", "owner-nowhere"])
def test_an_owner_is_found_in_the_same_namespace_or_in_none(name: str) -> None:
    owner = f'[{{"apiVersion":"v1","kind":"Wagon","name":"{name}"}}]'
    objects = [
        importing.read(document("owned", owner), "stdin"),
        importing.read(document("owner-here", namespace="elsewhere"), "stdin"),
        importing.read(document("owner-here"), "stdin"),
        importing.read(document("owner-nowhere", namespace=""), "stdin"),
    ]
    assert importing.owner_positions(objects) == {0: [2 if name == "owner-here" else 3]}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
metadata = st.fixed_dictionaries(
    {"name": anything | st.just("one")},
    optional={"namespace": anything, "annotations": anything | st.fixed_dictionaries({OWNERS: anything})},
)


@given(st.fixed_dictionaries({}, optional={"apiVersion": anything, "kind": st.text(), "metadata": anything | metadata}))
def test_any_document_is_an_object_or_a_sentence(given: dict[str, Any]) -> None:
    try:
        found = importing.read(given, "stdin")
    except BadInput:
        return
    importing.owner_positions([found, found])


@pytest.mark.parametrize("text", ["", "---\n# nothing\n---\n"])
def test_a_stream_without_objects_is_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export that had failed was piped into it, and all looked well."""
    (tmp_path / "fleet.yaml").write_text(text)
    assert run(["api", "import", "--kubeconfig", "never-read", "--from", str(tmp_path / "fleet.yaml")]) == 1
    said = capsys.readouterr()
    assert f"{tmp_path / 'fleet.yaml'} holds no object" in said.err
    assert said.out == ""


def test_a_folder_is_no_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["api", "import", "--kubeconfig", "never-read", "--from", str(tmp_path)]) != 0
    assert "Is a directory" in capsys.readouterr().err


def test_a_stream_that_is_none_is_refused_before_a_cluster_is_asked() -> None:
    said = refused("api", "import", "--kubeconfig", "never-read", "--from", __file__)
    assert ", document 1: " in said
