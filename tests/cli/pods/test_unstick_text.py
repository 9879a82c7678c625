"""What a person reads: every row in its column, every count in words."""

from hypothesis import given
from hypothesis import strategies as st

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.cli.pods.survey import Scope, Survey
from applecart.cli.pods.unstick_text import HEADINGS, findings, results, table
from applecart.clock import EPOCH
from applecart.kube.stuck_pods import Cause, Keep, ReleaseOutcome, judge
from tests.kube.stuck import THEIRS, held_pod

TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=40)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8))
def test_columns_stand_below_their_headings(rows: list[tuple[str, str]]) -> None:
    lines = table([Keep(held_pod(name, on=node), "why") for name, node in rows], EPOCH)
    starts = [lines[0].index(heading) for heading in HEADINGS]
    for line, (name, node) in zip(lines[1:], rows, strict=True):
        cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
        assert cells == [f"test/{name}", node, "Succeeded", "60 min ago", "why"]


def test_a_pod_without_node_or_phase_has_dashes() -> None:
    (_, row) = table([judge(held_pod(on="", phase=""), set(), EPOCH)], EPOCH)
    assert row.split()[:3] == ["test/runner", "-", "-"]


def test_what_is_found_nowhere_is_said_with_where_was_looked() -> None:
    nothing = Survey(plan=[], kept=[], living=0, gone=frozenset())
    for scope, where in (
        (Scope("ci"), "in namespace ci"),
        (Scope(""), "in any namespace"),
        (Scope("", "mac-1"), "in any namespace on Node mac-1"),
    ):
        assert findings(nothing, scope, EPOCH) == f"No Pod {where} is stuck on our finalizer."


def test_what_is_still_there_is_told_with_what_holds_it() -> None:
    outcomes = [ReleaseOutcome(Key("test", name), f"uid-{name}", Cause.FINISHED, released=True) for name in ("a", "b", "c")]
    left = [held_pod("a", finalizers=(THEIRS, VM_CLEANUP)), held_pod("b", finalizers=())]
    assert results(outcomes, left, 0.25).splitlines() == [
        f"test/a is still there: held by {THEIRS}, {VM_CLEANUP}",
        "test/b is still there: no finalizer holds it; the agent of Node mac-1 has to end it",
        "3 of 3 Pods freed, 1 gone, in 0.2 s",
    ]
