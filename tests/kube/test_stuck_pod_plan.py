"""Which Pods lose our finalizer without their agent, and which never do."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED, UNKNOWN, Pod
from applecart.clock import EPOCH
from applecart.kube.stuck_pod_plan import AGENT_PATIENCE, Cause, Keep, Unstick, judge, plan_unstick, suspected_nodes
from tests.kube.stuck import THEIRS, held_pod

NOW = EPOCH
GONE = frozenset({"mac-gone"})
PHASES = (PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN, "")


@pytest.mark.parametrize("phase", PHASES)
def test_a_pod_whose_node_is_gone_qualifies_whatever_its_phase(phase: str) -> None:
    """Weakness 17: four Pods stayed Terminating for a day because only the agent of a Node that was deleted could free them."""
    verdict = judge(held_pod(on="mac-gone", phase=phase), GONE, NOW)
    assert isinstance(verdict, Unstick)
    assert verdict.cause is Cause.NODE_GONE
    assert verdict.because == "its Node mac-gone does not exist"


def test_a_pod_that_never_had_a_node_qualifies() -> None:
    verdict = judge(held_pod(on="", phase=PENDING), frozenset(), NOW)
    assert isinstance(verdict, Unstick)
    assert verdict.cause is Cause.NEVER_PLACED


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED])
def test_a_pod_that_ended_on_a_living_node_qualifies_when_asked_for_and_only_after_the_agents_time(phase: str) -> None:
    """Incident 1: 504 Pods that had ended kept the finalizer for days, because their agents had stopped looking at them."""
    patience_s = AGENT_PATIENCE.total_seconds()
    late, early = (held_pod(phase=phase, deleted_s_ago=patience_s + more_s) for more_s in (1, 0))
    verdict = judge(late, GONE, NOW, finished_too=True)
    assert isinstance(verdict, Unstick)
    assert verdict.because == f"it is {phase}, and the agent of Node mac-1 did not let it go"
    assert judge(early, GONE, NOW, finished_too=True) == Keep(early, "the agent of Node mac-1 still has time to let it go")
    assert judge(late, GONE, NOW) == Keep(late, "the agent of Node mac-1 lets it go")


def test_the_grace_period_counts_because_the_api_adds_it_to_the_deletion_time() -> None:
    inside_its_grace = held_pod(deleted_s_ago=-600, grace_s=900)
    assert plan_unstick([inside_its_grace], GONE, NOW, finished_too=True) == []


@pytest.mark.parametrize("phase", [PENDING, RUNNING, UNKNOWN, ""])
def test_a_pod_that_may_run_on_a_living_node_never_qualifies(phase: str) -> None:
    pod = held_pod(phase=phase, deleted_s_ago=10 * 86_400)
    assert judge(pod, GONE, NOW, finished_too=True) == Keep(pod, "its VM may still run on Node mac-1; the agent there ends it")


@pytest.mark.parametrize(
    ("finalizers", "on", "because"),
    [
        ((THEIRS,), "mac-gone", f"it waits for {THEIRS}, which is not ours"),
        ((THEIRS, "b/c"), "", f"it waits for {THEIRS}, b/c, which are not ours"),
        ((), "mac-1", "it has no finalizer of ours; Node mac-1 ends it"),
        ((), "", "it has no finalizer of ours"),
        ((VM_CLEANUP + "-2",), "mac-gone", f"it waits for {VM_CLEANUP}-2, which is not ours"),
    ],
)
def test_a_pod_without_our_finalizer_is_nobody_of_ours(finalizers: tuple[str, ...], on: str, because: str) -> None:
    pod = held_pod(on=on, finalizers=finalizers)
    assert judge(pod, GONE, NOW, finished_too=True) == Keep(pod, because)


def test_what_others_hold_is_named_in_the_plan() -> None:
    verdict = judge(held_pod(on="", finalizers=("a/b", VM_CLEANUP, THEIRS)), GONE, NOW)
    assert isinstance(verdict, Unstick)
    assert verdict.others == ("a/b", THEIRS)


@pytest.mark.parametrize("node_names", [None, set()], ids=["failed list", "empty list"])
def test_without_a_list_of_nodes_nobody_is_suspected(node_names: set[str] | None) -> None:
    assert suspected_nodes([held_pod()], node_names) == set()


def test_only_nodes_of_pods_that_we_hold_are_suspected() -> None:
    pods = [
        held_pod("held", on="mac-gone"),
        held_pod("lives", on="mac-1"),
        held_pod("unplaced", on=""),
        held_pod("theirs", on="mac-2", finalizers=(THEIRS,)),
        held_pod("running", on="mac-3", deleted_s_ago=None),
    ]
    assert suspected_nodes(pods, {"mac-1"}) == {"mac-gone"}


PODS = st.builds(
    held_pod,
    on=st.sampled_from(["", "mac-1", "mac-gone"]),
    phase=st.sampled_from(PHASES),
    deleted_s_ago=st.none() | st.floats(-1e6, 1e6),
    grace_s=st.integers(0, 10_000),
    finalizers=st.lists(st.sampled_from([VM_CLEANUP, THEIRS, "a/b"]), unique=True).map(tuple),
)


@given(PODS, st.booleans())
def test_whatever_qualifies_is_being_deleted_and_ours_and_has_no_running_vm(pod: Pod, finished_too: bool) -> None:
    for step in plan_unstick([pod], GONE, NOW, finished_too=finished_too):
        assert step.pod.is_being_deleted
        assert VM_CLEANUP in step.pod.metadata.finalizers
        assert set(step.others) == set(pod.metadata.finalizers) - {VM_CLEANUP}
        assert step.pod.spec.node_name in ("", "mac-gone") or (finished_too and pod.is_terminal)


@given(PODS, st.booleans(), st.floats(0, 1e6))
def test_a_later_look_never_spares_what_an_earlier_one_would_have_freed(pod: Pod, finished_too: bool, later_s: float) -> None:
    later = NOW + timedelta(seconds=later_s)
    first = plan_unstick([pod], GONE, NOW, finished_too=finished_too)
    assert first == [] or plan_unstick([pod], GONE, later, finished_too=finished_too) == first


@given(PODS)
def test_asking_for_less_never_frees_more(pod: Pod) -> None:
    asked = plan_unstick([pod], GONE, NOW, finished_too=True)
    assert all(step in asked for step in plan_unstick([pod], GONE, NOW))
    assert all(step in plan_unstick([pod], GONE, NOW) for step in plan_unstick([pod], frozenset(), NOW))
