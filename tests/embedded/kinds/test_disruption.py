"""An eviction is a deletion of the Pod it names, and its disruption budget is asked first."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from applecart.api.containers import Container
from applecart.api.meta import Key, LabelSelector, ObjectMeta
from applecart.api.pods import Eviction, Pod, PodSpec
from applecart.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.kinds.disruption import (
    DISRUPTED_MAX,
    DisruptionBudgetStrategy,
    charged_budget,
    delete_options,
    ignores_budgets,
    mark_evicted,
)
from applecart.embedded.kinds.names import MOST_REQUIREMENTS, MOST_VALUES
from applecart.embedded.refusals import Refusal
from applecart.embedded.server.deletion import DeleteOptions, refuse_unmet
from applecart.embedded.server.server import running_api
from applecart.kube.client import Client
from applecart.kube.codec import encode_object
from applecart.kube.patch import Merge, Strategic
from applecart.kube.paths import object_path
from applecart.kube.transport import Request
from tests.embedded.kinds.documents import ENTRIES, pod
from tests.embedded.memory_log import MemoryLog

KEYS = TokenKeys(ec.generate_private_key(ec.SECP256R1()))
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def eviction(**members: Any) -> dict[str, Any]:
    return {"metadata": {"name": "runner"}, **members}


def test_an_eviction_without_options_deletes_as_usual() -> None:
    assert delete_options("runner", eviction(), []) == {}


def test_options_are_those_of_the_deletion() -> None:
    asked = {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}}
    assert delete_options("runner", eviction(deleteOptions=asked), []) == asked


@pytest.mark.parametrize(("inside", "outside"), [([], ["All"]), (["All"], []), (["All"], ["All"])])
def test_a_dry_run_may_be_asked_for_on_either_side(inside: list[str], outside: list[str]) -> None:
    assert delete_options("runner", eviction(deleteOptions={"dryRun": inside}), outside) == {"dryRun": ["All"]}


def test_two_different_dry_runs_are_refused() -> None:
    with pytest.raises(Refusal, match=r"Non-matching dry-run options in request and content: \[All\] and \[Some\]"):
        delete_options("runner", eviction(deleteOptions={"dryRun": ["Some"]}), ["All"])


def test_an_eviction_of_another_pod_is_refused() -> None:
    with pytest.raises(Refusal, match="name in URL does not match name in Eviction object"):
        delete_options("other", eviction(), [])


def test_an_evicted_pod_says_why_it_goes() -> None:
    before = pod()
    (condition,) = mark_evicted(before, NOW)["status"]["conditions"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    assert "status" not in before


def test_an_eviction_of_an_earlier_pod_is_a_conflict() -> None:
    obj, kind = pod(meta={"uid": "u2", "resourceVersion": "7"}), ENTRIES["v1", "Pod"]
    assert refuse_unmet(kind, obj, DeleteOptions(uid="u2", resource_version="7")) is None
    refusal = refuse_unmet(kind, obj, DeleteOptions(uid="u1"))
    assert refusal is not None
    assert refusal.message == (
        'Operation cannot be fulfilled on Pod "runner": the UID in the precondition (u1) does not match the UID in record '
        "(u2). The object might have been deleted and then recreated"
    )
    refusal = refuse_unmet(kind, obj, DeleteOptions(uid="u2", resource_version="6"))
    assert refusal is not None
    assert "the ResourceVersion in the precondition" in refusal.message


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_runs_nothing_asks_no_budget(phase: str) -> None:
    assert ignores_budgets({**pod(), "status": {"phase": phase}})
    assert not ignores_budgets(running())
    assert ignores_budgets({**running(), "metadata": {"name": "runner", "deletionTimestamp": "2026-01-01T00:00:00Z"}})


def running(*, ready: str = "True", **labels: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {**pod(meta={"labels": labels}), "status": {"phase": "Running", "conditions": conditions}}


def budget(selector: Any = None, *, allowed: int = 1, generation: int = 2, policy: str = "", **status: Any) -> dict[str, Any]:
    spec = {"selector": {} if selector is None else selector, **({"unhealthyPodEvictionPolicy": policy} if policy else {})}
    counts = {"disruptionsAllowed": allowed, "observedGeneration": 2, **status}
    return {"metadata": {"name": "budget", "generation": generation}, "spec": spec, "status": counts}


def test_an_eviction_is_charged_to_the_budget_and_the_last_one_says_so() -> None:
    before = budget(allowed=2)
    charged = charged_budget(running(), [before], NOW)
    assert charged is not None
    assert charged["status"]["disruptionsAllowed"] == 1
    assert charged["status"]["disruptedPods"] == {"runner": "2026-01-02T03:04:05Z"}
    assert "conditions" not in charged["status"]
    assert before == budget(allowed=2)
    spent = charged_budget(running(), [charged], NOW)
    assert spent is not None
    (condition,) = spent["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")
    assert condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    said = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    known = charged_budget(running(), [budget(allowed=1, conditions=[said])], NOW)
    assert known is not None
    assert known["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("selector", "is_guarded"),
    [
        ({}, True),
        ({"matchLabels": {"a": "b"}}, True),
        ({"matchLabels": {"a": "c"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Odd"}]}, False),
    ],
)
def test_a_budget_guards_the_pods_it_selects(selector: dict[str, Any], is_guarded: bool) -> None:
    assert (charged_budget(running(a="b"), [budget(selector)], NOW) is not None) is is_guarded


@pytest.mark.parametrize(
    ("requirements", "values", "said"),
    [
        (MOST_REQUIREMENTS, 1, []),
        (MOST_REQUIREMENTS + 1, 1, ["spec.selector: Too many: 101: must have at most 100 requirements in all"]),
        (2, MOST_VALUES + 1, ["spec.selector: Too many: 1001: must have at most 1000 values in all"]),
    ],
)
def test_a_selector_that_would_keep_the_controller_busy_is_refused(requirements: int, values: int, said: list[str]) -> None:
    """Each Pod is held against it: one of 9,000 requirements among 600 Pods kept the event loop for 370 ms."""
    asked = {"operator": "NotIn", "values": [f"v{number}" for number in range(values)]}
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", **asked}] * (requirements - 1)}
    errors = DisruptionBudgetStrategy().validate(budget(selector))
    assert [str(error) for error in errors] == said


def test_a_budget_without_a_selector_guards_nothing() -> None:
    without = budget()
    del without["spec"]["selector"]
    assert charged_budget(running(), [without], NOW) is None


@pytest.mark.parametrize(
    ("policy", "healthy", "desired", "is_free"),
    [("", 1, 1, True), ("", 0, 1, False), ("", 0, 0, False), ("IfHealthyBudget", 0, 1, False), ("AlwaysAllow", 0, 1, True)],
)
def test_a_pod_that_is_not_ready_goes_when_its_budget_is_healthy_or_says_so(
    policy: str, healthy: int, desired: int, is_free: bool
) -> None:
    guard = budget(allowed=0, policy=policy, currentHealthy=healthy, desiredHealthy=desired)
    if is_free:
        assert charged_budget(running(ready="False"), [guard], NOW) is None
    else:
        with pytest.raises(Refusal):
            charged_budget(running(ready="False"), [guard], NOW)


@pytest.mark.parametrize(
    ("guard", "code", "said"),
    [
        (budget(generation=3), 429, "is still being processed by the server."),
        (budget(allowed=-1), 403, "pdb disruptions allowed is negative"),
        (budget(disruptedPods=dict.fromkeys(map(str, range(DISRUPTED_MAX + 1)), "")), 403, "DisruptedPods map too big"),
        (budget(allowed=0, desiredHealthy=2, currentHealthy=1), 429, "needs 2 healthy pods and has 1 currently"),
    ],
)
def test_a_budget_that_allows_nothing_says_why(guard: dict[str, Any], code: int, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        charged_budget(running(), [guard], NOW)
    assert caught.value.code == code
    assert said in str(caught.value.document())


def test_a_budget_may_count_so_many_evicted_pods_and_no_more() -> None:
    full = budget(allowed=1, disruptedPods=dict.fromkeys(map(str, range(DISRUPTED_MAX)), ""))
    charged = charged_budget(running(), [full], NOW)
    assert charged is not None
    assert len(charged["status"]["disruptedPods"]) == DISRUPTED_MAX + 1


def test_two_budgets_of_one_pod_let_nobody_evict_it() -> None:
    with pytest.raises(Refusal, match="This pod has more than one PodDisruptionBudget"):
        charged_budget(running(), [budget(), budget()], NOW)


async def test_two_evictions_at_once_never_spend_the_same_disruption(clock: Clock) -> None:
    """The second one decides before the first is on disk."""
    async with running_api(MemoryLog(), clock, KEYS) as api:
        client = Client(api.transport(), clock)
        names = [f"pod-{number}" for number in range(8)]
        ready = Strategic({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        for name in names:
            container = (Container(name="runner", image="image"),)
            await client.create(Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(containers=container)))
            await client.patch_status(Pod, Key("default", name), ready)
        spec = PodDisruptionBudgetSpec(min_available=5, selector=LabelSelector())
        guard = await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="guard", namespace="default"), spec=spec))
        allowed = Merge({"status": {"disruptionsAllowed": 3, "observedGeneration": 1}})
        await client.patch_status(PodDisruptionBudget, guard.key, allowed)
        evictions = [Eviction(metadata=ObjectMeta(name=name, namespace="default")) for name in names]
        requests = [
            Request("POST", object_path(Pod.resource, one.key, "eviction"), body=encode_object(one)) for one in evictions
        ]
        answers = await asyncio.gather(*(client.transport.send(request) for request in requests))
        assert sorted(answer.status for answer in answers) == [201] * 3 + [429] * 5
        status = (await client.get(PodDisruptionBudget, guard.key)).status
        assert (status.disruptions_allowed, len(status.disrupted_pods)) == (0, 3)
        assert len(await client.list(Pod)) == 5
