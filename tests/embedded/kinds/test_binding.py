"""A Pod is bound once, by one binding that is about it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from applecart.embedded.kinds.binding import bind, validate_binding
from applecart.embedded.refusals import Refusal
from tests.embedded.kinds.documents import created, pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BINDING = {"metadata": {"name": "runner"}, "target": {"kind": "Node", "name": "mac-1"}}


def waiting(**spec: Any) -> dict[str, Any]:
    return created(pod(**spec), "ns")


def refusal_of(obj: dict[str, Any], binding: dict[str, Any]) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        bind(obj, binding, NOW)
    return caught.value.code, caught.value.message


def test_binding_sets_the_node_and_says_when() -> None:
    before = waiting()
    bound = bind(before, BINDING, NOW)
    assert bound["spec"]["nodeName"] == "mac-1"
    assert bound["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-02T03:04:05Z"}
    ]
    assert "nodeName" not in before["spec"]
    assert "conditions" not in before["status"]


def test_a_failed_attempt_before_is_replaced() -> None:
    obj = waiting()
    other = {"type": "Ready", "status": "False"}
    obj["status"] |= {
        "nominatedNodeName": "mac-2",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, other],
    }
    status = bind(obj, BINDING, NOW)["status"]
    assert [one["status"] for one in status["conditions"]] == ["True", "False"]
    assert "reason" not in status["conditions"][0]
    assert "nominatedNodeName" not in status


def test_a_scheduler_may_leave_notes() -> None:
    binding = {**BINDING, "metadata": {"name": "runner", "annotations": {"a": "b"}, "labels": {"c": "d"}}}
    meta = bind(created(pod(meta={"labels": {"x": "y"}}), "ns"), binding, NOW)["metadata"]
    assert (meta["annotations"], meta["labels"]) == ({"a": "b"}, {"x": "y", "c": "d"})


def test_a_second_binding_is_a_conflict() -> None:
    text = 'Operation cannot be fulfilled on pods/binding "runner": pod runner is already assigned to node "mac-1"'
    assert refusal_of(bind(waiting(), BINDING, NOW), BINDING) == (409, text)


def test_a_gated_pod_cannot_be_bound() -> None:
    text = 'Operation cannot be fulfilled on pods/binding "runner": pod runner has non-empty .spec.schedulingGates'
    assert refusal_of(waiting(schedulingGates=[{"name": "a"}]), BINDING) == (409, text)


def test_a_deleting_pod_cannot_be_bound() -> None:
    obj = waiting()
    obj["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    text = 'Operation cannot be fulfilled on pods/binding "runner": pod runner is being deleted, cannot be assigned to a host'
    assert refusal_of(obj, BINDING) == (409, text)


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_binding_of_another_pod_of_that_name_is_a_conflict(field: str) -> None:
    code, text = refusal_of(waiting(), {**BINDING, "metadata": {"name": "runner", field: "other"}})
    assert code == 409
    assert 'on pods "runner": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/runner' in text


@pytest.mark.parametrize(
    ("binding", "code", "message"),
    [
        ({"metadata": {"name": "x"}}, 400, "name in URL does not match name in Binding object"),
        ({"metadata": {"name": "runner"}}, 400, "target.name: Required value"),
        (
            {"metadata": {"name": "runner"}, "target": {"kind": "Pod"}},
            400,
            '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
        ),
    ],
)
def test_a_binding_that_is_none_is_refused(binding: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(Refusal) as caught:
        validate_binding("runner", binding)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_good_binding_passes() -> None:
    validate_binding("runner", BINDING)
    validate_binding("runner", {**BINDING, "target": {"name": "mac-1"}})
