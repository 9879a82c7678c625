"""The sentences."""

from applecart.embedded.controllers.scheduler import messages


def test_reasons_are_counted_and_sorted_as_text() -> None:
    reasons = ["node(s) had untolerated taint(s)", *["Insufficient memory"] * 10, "Insufficient cpu", "Insufficient cpu"]
    text = messages.unschedulable(12, reasons, 3, may_preempt=True)
    assert text == (
        "0/12 nodes are available: 1 node(s) had untolerated taint(s), 10 Insufficient memory, 2 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/12 nodes are available: "
        "3 No preemption victims found for incoming pod, 9 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_must_not_preempt_is_told_so() -> None:
    text = messages.unschedulable(1, ["Too many pods"], 1, may_preempt=False)
    never = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert text == f"0/1 nodes are available: 1 Too many pods. {never}"


def test_without_nodes_there_is_nothing_to_count() -> None:
    assert messages.unschedulable(0, [], 0, may_preempt=True) == "no nodes available to schedule pods"
    assert messages.refused_everywhere(0, "whatever", may_preempt=True) == "no nodes available to schedule pods"


def test_a_pod_that_no_node_could_take_says_what_it_asked() -> None:
    text = messages.refused_everywhere(3, "pod affinity terms conflict", may_preempt=True)
    assert text.startswith("0/3 nodes are available: pod affinity terms conflict. no new claims")
    assert text.endswith("preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
