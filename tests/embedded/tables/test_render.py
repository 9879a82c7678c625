"""Tables and metadata as they are sent."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.tables.built_in import table_of
from applecart.embedded.tables.render import (
    TableWriter,
    partial_metadata,
    read_include_object,
    table_document,
)
from tests.embedded.tables.documents import documents

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "creationTimestamp": "2026-06-01T11:00:00Z"},
    "status": {"phase": "Failed"},
}
PODS = table_of("", "pods")


def document(*objects: dict[str, Any], **more: Any) -> Any:
    return json.loads(table_document(PODS, objects, NOW, {"resourceVersion": "7"}, **more))


def test_a_table_has_its_columns_and_a_row_for_each_object() -> None:
    table = document(POD)
    assert list(table) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (table["kind"], table["apiVersion"], table["metadata"]) == ("Table", "meta.k8s.io/v1", {"resourceVersion": "7"})
    assert table["columnDefinitions"][0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "Name of the object, unique within its namespace and kind.",
        "priority": 0,
    }
    (row,) = table["rows"]
    assert row["cells"][:3] == ["p", "0/0", "Failed"]
    assert row["conditions"][0]["type"] == "Completed"
    expected = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": POD["metadata"]}
    assert row["object"] == expected


@pytest.mark.parametrize(("include", "expected"), [("None", None), ("Object", POD)])
def test_a_row_carries_what_was_asked_for(include: Any, expected: Any) -> None:
    assert document(POD, include_object=include)["rows"][0]["object"] == expected


def test_a_table_without_columns_says_null_and_an_empty_one_has_no_rows() -> None:
    assert document(POD, with_columns=False)["columnDefinitions"] is None
    assert document()["rows"] == []


def test_the_older_version_is_the_same_document_under_its_name() -> None:
    older = document(POD, version="v1beta1")
    assert older["apiVersion"] == older["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


@given(st.lists(documents(2), max_size=3), st.sampled_from(["Metadata", "Object", "None"]), st.booleans())
def test_the_pieces_of_a_table_make_the_whole(objects: list[dict[str, Any]], include: Any, with_columns: bool) -> None:
    writer = TableWriter(PODS, NOW, include)
    pieces = writer.head({}, with_columns=with_columns)
    for number, obj in enumerate(objects):
        pieces += (writer.SEPARATOR if number else b"") + writer.row(obj)
    pieces += writer.TAIL
    assert pieces == table_document(PODS, objects, NOW, {}, include_object=include, with_columns=with_columns)
    assert len(json.loads(pieces)["rows"]) == len(objects)


def test_metadata_alone_has_the_name_of_its_kind() -> None:
    assert partial_metadata(POD) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": POD["metadata"],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "Metadata"), ("", "Metadata"), ("Metadata", "Metadata"), ("Object", "Object"), ("None", "None")],
)
def test_the_parameter_says_what_a_row_carries(text: str | None, expected: str) -> None:
    assert read_include_object(text) == expected


def test_any_other_parameter_is_refused_with_the_real_text() -> None:
    with pytest.raises(Refusal) as caught:
        read_include_object("Bad")
    assert (caught.value.code, caught.value.message) == (
        400,
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bad": '
        "must be 'Metadata', 'Object', 'None', or empty",
    )
