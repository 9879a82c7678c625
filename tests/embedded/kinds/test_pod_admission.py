"""What a new Pod gets from other objects."""

from typing import Any

import pytest

from applecart.embedded.kinds.pod_admission import admit_pod, admit_priority, admit_runtime_class, tolerate_lost_node
from applecart.embedded.refusals import Refusal
from tests.embedded.kinds.documents import Objects, core, grouped, pod


def priority_class(name: str, value: int, **members: Any) -> dict[str, Any]:
    return grouped("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **members)


def runtime_class(**members: Any) -> dict[str, Any]:
    return grouped("node.k8s.io/v1", "RuntimeClass", "tart", handler="tart", **members)


def refusal_of(admit: Any, document: dict[str, Any], *objects: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as caught:
        admit(document, Objects(*objects))
    assert caught.value.code == 403
    return caught.value.message


def test_without_classes_the_priority_is_zero() -> None:
    obj = pod()
    admit_priority(obj, Objects())
    assert (obj["spec"]["priority"], obj["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in obj["spec"]


def test_the_lowest_default_class_counts() -> None:
    obj = pod()
    classes = [priority_class("a", 7, globalDefault=True), priority_class("b", 5, globalDefault=True), priority_class("c", 1)]
    admit_priority(obj, Objects(*classes))
    assert (obj["spec"]["priorityClassName"], obj["spec"]["priority"]) == ("b", 5)


def test_a_named_class_gives_priority_and_policy() -> None:
    obj = pod(priorityClassName="a", priority=7)
    admit_priority(obj, Objects(priority_class("a", 7, preemptionPolicy="Never")))
    assert (obj["spec"]["priority"], obj["spec"]["preemptionPolicy"]) == (7, "Never")


def test_a_pod_may_not_choose_its_own_priority() -> None:
    assert refusal_of(admit_priority, pod(priority=5)) == (
        'pods "runner" is forbidden: the integer value of priority (5) must not be provided in pod spec; '
        "priority admission controller computed 0 from the given PriorityClass name"
    )


def test_an_unknown_class_is_named() -> None:
    text = 'pods "runner" is forbidden: no PriorityClass with name nope was found'
    assert refusal_of(admit_priority, pod(priorityClassName="nope")) == text


def test_a_runtime_class_adds_its_overhead_and_its_nodes() -> None:
    scheduling = {"nodeSelector": {"os": "darwin"}, "tolerations": [{"key": "mac", "operator": "Exists"}]}
    obj = pod(runtimeClassName="tart", nodeSelector={"a": "b"})
    admit_runtime_class(obj, Objects(runtime_class(overhead={"podFixed": {"memory": "1Gi"}}, scheduling=scheduling)))
    assert obj["spec"]["overhead"] == {"memory": "1Gi"}
    assert obj["spec"]["nodeSelector"] == {"a": "b", "os": "darwin"}
    assert obj["spec"]["tolerations"] == scheduling["tolerations"]


@pytest.mark.parametrize(
    ("spec", "members", "why"),
    [
        ({"runtimeClassName": "nope"}, {}, 'pod rejected: RuntimeClass "nope" not found'),
        ({"overhead": {"cpu": "1"}}, {}, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        (
            {"runtimeClassName": "tart", "overhead": {"cpu": "1"}},
            {"overhead": {"podFixed": {"cpu": "2"}}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "tart", "nodeSelector": {"os": "linux"}},
            {"scheduling": {"nodeSelector": {"os": "darwin"}}},
            "conflict: runtimeClass.scheduling.nodeSelector[os] = darwin; pod.spec.nodeSelector[os] = linux",
        ),
    ],
)
def test_what_contradicts_the_runtime_class_is_refused(spec: dict[str, Any], members: dict[str, Any], why: str) -> None:
    text = refusal_of(admit_runtime_class, pod(**spec), runtime_class(**members))
    assert text == f'pods "runner" is forbidden: {why}'


def test_lost_nodes_are_tolerated_for_five_minutes_and_only_once() -> None:
    spec: dict[str, Any] = {}
    tolerate_lost_node(spec)
    tolerate_lost_node(spec)
    assert [(one["key"], one["tolerationSeconds"]) for one in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_who_tolerates_everything_needs_nothing_more() -> None:
    spec = {"tolerations": [{"operator": "Exists"}]}
    tolerate_lost_node(spec)
    assert spec == {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize(
    ("account", "own", "pulled"),
    [
        (["a", "b"], [], ["a", "b"]),
        (["a", "b"], ["c"], ["c"]),
        ([], [], None),
    ],
)
def test_a_pod_that_names_no_pull_secrets_gets_those_of_its_account(
    account: list[str], own: list[str], pulled: list[str] | None
) -> None:
    """They were left out, so that a Pod could not pull from a private registry with its account's credential."""
    holder = core("ServiceAccount", "default", meta={"namespace": "ns"}, imagePullSecrets=[{"name": name} for name in account])
    obj = pod(meta={"namespace": "ns"}, imagePullSecrets=[{"name": name} for name in own])
    admit_pod(obj, Objects(holder), needs_service_account=True)
    names = [one["name"] for one in obj["spec"]["imagePullSecrets"]]
    assert (names or None) == pulled


def test_what_a_runtime_class_tolerates_comes_after_the_tolerations_of_every_pod() -> None:
    obj = pod(runtimeClassName="tart")
    scheduling = {"tolerations": [{"key": "vm", "operator": "Exists"}]}
    admit_pod(obj, Objects(runtime_class(scheduling=scheduling)), needs_service_account=False)
    assert [one["key"].rpartition("/")[2] for one in obj["spec"]["tolerations"]] == ["not-ready", "unreachable", "vm"]
