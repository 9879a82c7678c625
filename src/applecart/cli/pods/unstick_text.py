"""How `applecart pods unstick` says what it found and what it did. Pure: values in, lines out."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from applecart.api.pods import Pod
from applecart.cli.pods.survey import Scope, Survey
from applecart.kube.auth.expiry import spoken_age
from applecart.kube.stuck_pods import Keep, ReleaseOutcome, Unstick

HEADINGS = ("POD", "NODE", "PHASE", "DEADLINE", "BECAUSE")
MOST_TROUBLES = 20  # one fault usually strikes all Pods alike, and the first sentences tell it


def findings(found: Survey, scope: Scope, now: datetime) -> str:
    """The dry run."""
    lines = []
    if found.plan:
        lines += [f"{_pods(len(found.plan))} can be freed:", *table(found.plan, now)]
    else:
        lines += [f"No Pod {scope} is stuck on our finalizer."]
    if found.kept:
        lines += ["", f"{_pods(len(found.kept))} left alone:", *table(found.kept, now)]
    if found.living:
        lines += ["", f"{_pods(found.living)} not being deleted, left alone."]
    if found.notice:
        lines += ["", f"Note: {found.notice}."]
    return "\n".join(lines)


def table(verdicts: Sequence[Unstick | Keep], now: datetime) -> list[str]:
    rows = [HEADINGS, *(_row(verdict, now) for verdict in verdicts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def results(outcomes: Iterable[ReleaseOutcome], remaining: Sequence[Pod], took_s: float) -> str:
    """What was done, and what is still there."""
    done = list(outcomes)
    freed = sum(outcome.released for outcome in done)
    failed = [f"{outcome.key} was not freed: {outcome.because}" for outcome in done if not outcome.released]
    there = [f"{pod.key} is still there: {_why_there(pod)}" for pod in remaining]
    counts = f"{freed} of {_pods(len(done))} freed, {freed - len(remaining)} gone, in {took_s:.1f} s"
    return "\n".join((*_first(failed), *_first(there), counts))


def _row(verdict: Unstick | Keep, now: datetime) -> tuple[str, ...]:
    pod = verdict.pod
    at = pod.metadata.deletion_timestamp
    because = verdict.because
    if isinstance(verdict, Unstick) and verdict.others:
        because += f" (stays until {', '.join(verdict.others)} goes too)"
    return (str(pod.key), pod.spec.node_name or "-", pod.status.phase or "-", spoken_age(at, now) if at else "-", because)


def _why_there(pod: Pod) -> str:
    if pod.metadata.finalizers:
        return f"held by {', '.join(pod.metadata.finalizers)}"
    return f"no finalizer holds it; the agent of Node {pod.spec.node_name or '(none)'} has to end it"


def _first(sentences: Sequence[str]) -> Iterable[str]:
    more = len(sentences) - MOST_TROUBLES
    return (*sentences[:MOST_TROUBLES], *((f"and {more} more like these",) if more > 0 else ()))


def _pods(count: int) -> str:
    return f"{count} Pod" if count == 1 else f"{count} Pods"
