"""Pods as the handlers see them: defaults, graceful deletion, selectors, status reports."""

import json
from typing import Any

import pytest

from applecart.embedded.kinds.pod import PodStrategy
from applecart.embedded.kinds.resources import qos_class
from tests.embedded.kinds import pod_cases
from tests.embedded.kinds.documents import container, created, decoded, pod, pod_with, updated

STRATEGY = PodStrategy()
NAMESPACE = "somewhere"


@pytest.mark.parametrize("label", pod_cases.CREATED)
def test_defaults_change_nothing_in_what_has_them(label: str) -> None:
    once = decoded(pod_cases.CREATED[label])
    twice = json.loads(json.dumps(once))
    STRATEGY.default(twice)
    assert twice == once


def test_a_new_pod_waits_and_knows_its_class() -> None:
    status = created({**pod(), "status": {"phase": "Running", "podIP": "1.1.1.1"}}, NAMESPACE)["status"]
    assert status == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_gated_pod_says_so() -> None:
    (condition,) = created(pod_cases.GATED, NAMESPACE)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"a.io/b": "1"}, {}, "BestEffort"),
        ({"cpu": "1", "memory": "1Gi"}, {}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1024Mi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1"}, "Burstable"),
        ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
        ({"cpu": "0", "memory": "0"}, {}, "BestEffort"),
    ],
)
def test_the_class_follows_requests_and_limits(limits: dict[str, str], requests: dict[str, str], expected: str) -> None:
    assert qos_class({"containers": [container(resources={"limits": limits, "requests": requests})]}) == expected


@pytest.mark.parametrize(
    ("node", "phase", "wanted_s", "asked_s", "expected_s"),
    [
        ("", "Pending", 30, None, 0),
        ("n", "Running", 30, None, 30),
        ("n", "Running", 30, 5, 5),
        ("n", "Running", 30, 0, 0),
        ("n", "Running", 30, -1, 1),
        ("n", "Succeeded", 30, 60, 0),
        ("n", "Failed", 30, None, 0),
    ],
)
def test_only_what_runs_is_deleted_gracefully(
    node: str, phase: str, wanted_s: int, asked_s: int | None, expected_s: int
) -> None:
    obj = {"spec": {"nodeName": node, "terminationGracePeriodSeconds": wanted_s}, "status": {"phase": phase}}
    assert STRATEGY.grace_period_s(obj, asked_s) == expected_s


def test_selectors_may_ask_for_what_the_rules_name() -> None:
    fields = STRATEGY.fields(created(pod(nodeName="n", hostNetwork=True), NAMESPACE))
    assert fields.keys() == STRATEGY.field_names
    assert (fields["spec.nodeName"], fields["status.phase"], fields["spec.hostNetwork"]) == ("n", "Pending", "true")


def test_the_spec_counts_generations_and_the_status_does_not() -> None:
    old = created(pod(), NAMESPACE)
    assert updated(pod_with(image="other:1"), old)["metadata"]["generation"] == 2
    reported = updated({**pod(), "status": {"phase": "Running"}}, created(pod(), NAMESPACE), "status")
    assert reported["metadata"]["generation"] == 1


def test_a_status_report_changes_labels_but_neither_spec_nor_owners() -> None:
    owner = {"apiVersion": "a.io/v1", "kind": "B", "name": "b", "uid": "c"}
    old = created(pod(meta={"ownerReferences": [owner]}), NAMESPACE)
    report = {**pod(restartPolicy="Never", meta={"labels": {"a": "b"}}), "status": {"phase": "Running"}}
    new = updated(report, old, "status")
    assert new["spec"] == old["spec"]
    assert new["metadata"]["ownerReferences"] == [owner]
    assert new["metadata"]["labels"] == {"a": "b"}
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}


def test_a_report_without_generations_keeps_those_that_were_observed() -> None:
    ready = {"type": "Ready", "status": "True"}
    old: dict[str, Any] = created(pod(), NAMESPACE)
    old["status"] |= {"observedGeneration": 3, "conditions": [{**ready, "observedGeneration": 3}]}
    new = updated({**pod(), "status": {"conditions": [ready]}}, old, "status")
    assert new["status"]["observedGeneration"] == 3
    assert new["status"]["conditions"][0]["observedGeneration"] == 3


@pytest.mark.parametrize(
    ("policy", "exit_code", "is_allowed"),
    [("Always", 0, True), ("Never", 1, False), ("OnFailure", 1, True), ("OnFailure", 0, False)],
)
def test_a_container_that_ended_for_good_never_runs_again(policy: str, exit_code: int, is_allowed: bool) -> None:
    old = created(pod(restartPolicy=policy), NAMESPACE)
    old["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": exit_code}}}]
    new = {**old, "status": {**old["status"], "containerStatuses": [{"name": "main", "state": {"running": {}}}]}}
    errors = [str(error) for error in STRATEGY.validate_status(new, old)]
    text = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    assert errors == ([] if is_allowed else [text])


def test_the_refusal_of_a_spec_change_shows_the_changed_lines() -> None:
    old = created(pod(), NAMESPACE)
    new = {**old, "spec": {**old["spec"], "hostname": "zz"}}
    (error,) = STRATEGY.validate_update(new, old)
    assert error.field == "spec"
    assert '\n+ "hostname": "zz",\n' in error.detail


def test_a_pod_whose_name_is_no_host_name_gets_advice() -> None:
    assert STRATEGY.warnings(pod("a")) == []
    assert STRATEGY.warnings(pod("a.b")) == [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
        "recommended: [must not contain dots]"
    ]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("nothing", []),
        ("node label", ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead']),
        ("aliases", ['spec.hostAliases[1].ip: duplicate ip "10.0.0.1"']),
        (
            "pull secrets",
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
        ),
        ("env extended", []),
    ],
)
def test_what_is_valid_but_odd_gets_advice(label: str, said: list[str]) -> None:
    assert STRATEGY.warnings(created(pod_cases.WARNED[label], NAMESPACE)) == said


def test_many_names_are_compared_once_each() -> None:
    """A Pod of an account with 40,000 pull secrets took nine seconds, which its warnings had spent on comparing them."""
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    secrets = [{"name": Name(number)} for number in range(100)]
    assert PodStrategy().warnings({"metadata": {"name": "p"}, "spec": {"imagePullSecrets": secrets}}) == []
    assert compared < 200


def test_an_affinity_that_would_keep_the_scheduler_busy_is_refused() -> None:
    """Every node is held against it: 9,000 terms kept the event loop for 270 ms."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"mac-{number}"]}]} for number in range(101)
    ]
    assert validate_affinity(terms[:100]) == []
    assert validate_affinity(terms) == ["spec.affinity.nodeAffinity: Too many: 101: must have at most 100 requirements in all"]


def validate_affinity(terms: list[dict[str, Any]]) -> list[str]:
    asking = pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    STRATEGY.default(asking)
    return [str(error) for error in STRATEGY.validate(asking)]
