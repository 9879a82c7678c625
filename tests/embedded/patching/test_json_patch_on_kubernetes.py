"""JSON patches and merge patches beside a real API server."""

from typing import Any

import pytest

from tests.embedded.patching.json_patch_cases import ACCEPTED, JSON_PATCH_SUBJECT, REFUSED
from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.shapes import probe
from tests.embedded.patching.steps import SUBJECTS, Step, assert_equal, ours, really

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]

MERGE_PATCHES: list[Any] = [
    {},
    {"spec": {"title": None, "size": 2}},
    {"spec": {"free": {"new": {"a": None, "b": [{"c": None, "d": 1}, None]}}}},
    {"spec": {"free": {"map": [1, {"a": None}]}}},
    {"spec": {"free": {"list": {"a": None, "b": 1}}}},
    {"spec": {"free": {"list": [{"a": None, "b": 1}]}}},
    {"spec": {"free": {"text": {"a": {"b": None}}, "map": {"in": None, "deep": {"x": None}}}}},
    {"spec": {"free": None}},
    [],
    5,
    "text",
]


@pytest.mark.parametrize("number", range(len(ACCEPTED) + len(REFUSED)))
def test_a_json_patch_comes_out_as_on_a_real_server(number: int, real_api: RealApi, namespace: str) -> None:
    compare(real_api, namespace, "ConfigMap", JSON_PATCH_SUBJECT, Step("json", (ACCEPTED + REFUSED)[number]))


@pytest.mark.parametrize("patch", MERGE_PATCHES, ids=str)
def test_a_merge_patch_comes_out_as_on_a_real_server(patch: Any, real_api: RealApi, namespace: str) -> None:
    free = {"map": {"in": 1, "out": {"a": 1}}, "list": [1, 2], "text": "t"}
    compare(real_api, namespace, "Probe", probe(size=1, title="t", free=free), Step("merge", patch))


def compare(real_api: RealApi, namespace: str, kind: str, body: dict[str, Any], step: Step) -> None:
    subject = SUBJECTS[kind]
    live = really(real_api, subject, namespace, "subject", Step("create", body)).document
    expected = really(real_api, subject, namespace, "subject", step)
    got = ours(subject, live, step)
    if got.document:
        got.document.pop("ignored", None)  # decoding drops what the kind does not have
    assert_equal(got, expected, with_owners=False)
    if kind == "Probe" and got.document and expected.document:
        assert got.document["spec"] == expected.document["spec"]
