from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.applied_checks import refuse_unless_appliable, structure_problems
from applecart.embedded.refusals import Refusal
from tests.embedded.patching.json_values import JSON
from tests.embedded.patching.shapes import CONFIG_MAP, POD, PROBE, config_map, pod, probe

SPEC = PROBE.fields["spec"]


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"size": 1, "labels": None, "items": None, "free": [1], "unknown": {"a": 1}}, []),
        ({"labels": [1]}, [".labels: expected map, got array"]),
        ({"items": {"a": 1}}, [".items: expected list, got object"]),
        ({"size": {}}, [".size: expected scalar, got object"]),
        ({"labels": {"a": ["s3cret"]}}, [".labels.a: expected scalar, got array"]),
        ({"order": ["a", {}]}, [".order[1]: expected scalar, got object"]),
        ({"order": ["a", "a"]}, []),
        ({"tags": ["a", "b", "a"]}, ['.tags: duplicate entries for key [="a"]']),
        ({"tags": ["a", None]}, [".tags: element 1: associative list without keys has an element that's an explicit null"]),
        ({"items": ["x"]}, [".items: element 0: associative list with keys may not have non-map elements"]),
        (
            {"items": [{"name": "a"}, {"name": "a", "value": {}}]},
            ['.items: duplicate entries for key [name="a"]', '.items[name="a"].value: expected scalar, got object'],
        ),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            ['.ports: duplicate entries for key [port=1,protocol="TCP"]'],
        ),
    ],
)
def test_problems_name_their_place_and_show_no_value(spec: Any, problems: list[str]) -> None:
    assert structure_problems(spec, SPEC) == problems


@pytest.mark.parametrize(
    ("applied", "text"),
    [
        ({**config_map(), "apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
        ({**config_map(), "apiVersion": "apps/v1"}, "invalid object type: apps/v1, Kind=ConfigMap"),
        ({**config_map(), "kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"metadata": {}}, "invalid object type: /, Kind="),
        (config_map(managedFields=[]), "metadata.managedFields must be nil"),
        (config_map(managedFields="x"), "metadata.managedFields must be nil"),
        (
            {**config_map(), "metadata": 5},
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata: expected map, got number",
        ),
        (
            config_map([1], namespace="n"),
            "failed to create typed patch object (n/subject; /v1, Kind=ConfigMap): .data: expected map, got array",
        ),
    ],
)
def test_what_cannot_be_applied_is_a_bad_request(applied: dict[str, Any], text: str) -> None:
    with pytest.raises(Refusal) as refused:
        refuse_unless_appliable(applied, config_map(), CONFIG_MAP, "v1")
    assert (refused.value.code, refused.value.message) == (400, text)


def test_several_problems_are_listed() -> None:
    main = {"name": "main", "env": [{"name": "A"}, {"name": "A"}]}
    with pytest.raises(Refusal) as refused:
        refuse_unless_appliable(pod(main, main), None, POD, "v1")
    assert refused.value.message == (
        "failed to create typed patch object (/subject; /v1, Kind=Pod): errors:\n"
        '  .spec.containers[name="main"].env: duplicate entries for key [name="A"]\n'
        '  .spec.containers: duplicate entries for key [name="main"]\n'
        '  .spec.containers[name="main"].env: duplicate entries for key [name="A"]'
    )


def test_what_fits_the_shape_is_taken() -> None:
    applied = probe(items=[{"name": "a"}], tags=["x"])
    refuse_unless_appliable(applied, None, PROBE, applied["apiVersion"])
    refuse_unless_appliable(config_map({"a": "1"}, managedFields=None), config_map(), CONFIG_MAP, "v1")


@given(JSON)
def test_anything_can_be_checked(content: Any) -> None:
    assert all(isinstance(problem, str) for problem in structure_problems(content, PROBE))
