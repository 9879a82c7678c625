import json
from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.apply import ANNOTATIONS_LIMIT_BYTES, LAST_APPLIED, keep_last_applied, taken_over
from applecart.embedded.patching.field_set import path_text
from applecart.embedded.patching.values import copied
from tests.embedded.patching.json_values import JSON
from tests.embedded.patching.shapes import CONFIG_MAP, config_map


def remembering(last: Any, data: Any) -> dict[str, Any]:
    text = last if isinstance(last, str) else json.dumps(last)
    return config_map(data, annotations={LAST_APPLIED: text})


def shown(live: dict[str, Any] | None) -> list[str]:
    return [path_text(path) for path in taken_over(live, CONFIG_MAP, "v1").paths() if path[0] == "f:data"]


def test_kubectl_may_change_what_it_set_and_nobody_changed_since() -> None:
    live = remembering(config_map({"a": "1", "b": "1", "c": "1"}), {"a": "1", "b": "changed", "d": "1"})
    assert shown(live) == [".data.a"]


@pytest.mark.parametrize(
    "live",
    [
        None,
        config_map({"a": "1"}),
        config_map({"a": "1"}, annotations=None),
        config_map({"a": "1"}, annotations={LAST_APPLIED: 5}),
        remembering("", {"a": "1"}),
        remembering("{", {"a": "1"}),
        remembering("[1]", {"a": "1"}),
        remembering("[" * 10_000, {"a": "1"}),
        remembering({**config_map({"a": "1"}), "apiVersion": "v2"}, {"a": "1"}),
    ],
)
def test_without_a_usable_annotation_it_may_change_nothing(live: dict[str, Any] | None) -> None:
    assert shown(live) == []


def test_the_annotation_follows_what_is_applied() -> None:
    obj = remembering(config_map(), {"a": "1"})
    applied = config_map({"a": "2"}, annotations={LAST_APPLIED: "old", "x": "y"})
    before = copied(applied)
    keep_last_applied(obj, applied)
    text = obj["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(text) == config_map({"a": "2"}, annotations={"x": "y"})
    assert text.endswith("}\n")
    assert applied == before


def test_an_object_without_the_annotation_gets_none() -> None:
    obj = config_map({"a": "1"})
    keep_last_applied(obj, config_map({"a": "1"}))
    assert obj == config_map({"a": "1"})


def test_an_annotation_that_would_not_fit_is_dropped() -> None:
    obj = remembering(config_map(), {})
    keep_last_applied(obj, config_map({"a": "x" * ANNOTATIONS_LIMIT_BYTES}))
    assert obj["metadata"]["annotations"] == {}


@given(JSON)
def test_any_annotation_can_be_read(last: Any) -> None:
    taken_over(remembering(json.dumps(last), {"a": "1"}), CONFIG_MAP, "v1")
    if isinstance(last, dict):
        taken_over(remembering({**last, "apiVersion": "v1"}, {"a": "1"}), CONFIG_MAP, "v1")
