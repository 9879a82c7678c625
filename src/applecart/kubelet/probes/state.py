"""What the answers to a guest's probes mean: pure counting, as a kubelet counts, and the health that follows.

A guest begins alive and not ready. An answer that could not be had because of the host (`UNKNOWN`: Tart did not work) makes
a guest unready, which harms nobody, but never ends it: a fault of the host must not end a job (I7, I12).
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from applecart.kubelet.probes.checks import Kind, Plan


class ProbeResult(StrEnum):
    PASSED = "passed"
    FAILED = "failed"  # the guest answered wrongly, or not in time
    UNKNOWN = "unknown"  # the guest could not be asked


class Answer(msgspec.Struct, frozen=True):
    outcome: ProbeResult
    text: str = ""  # bounded and redacted


class ProbeState(msgspec.Struct, frozen=True):
    """One probe so far. `is_good` is what it says of the guest now, which takes a threshold of equal answers to change."""

    is_good: bool
    in_a_row: int = 0
    passed: bool = False  # what those in a row were
    last: Answer | None = None

    @classmethod
    def first(cls, kind: Kind, was_good: bool = False) -> "ProbeState":
        """`was_good`: the API still says so from before a restart of the agent, which is no reason to doubt the guest."""
        return cls(is_good=was_good or kind is Kind.LIVENESS)

    def after(self, answer: Answer, plan: Plan) -> "ProbeState":
        if answer.outcome is ProbeResult.UNKNOWN and plan.kind is not Kind.READINESS:
            return msgspec.structs.replace(self, last=answer)
        passed = answer.outcome is ProbeResult.PASSED
        in_a_row = self.in_a_row + 1 if passed is self.passed else 1
        decides = in_a_row >= (plan.successes if passed else plan.failures)
        return ProbeState(passed if decides else self.is_good, in_a_row, passed, answer)

    def ends_guest(self, plan: Plan) -> bool:
        """Enough failures of a probe that is allowed to end the guest."""
        return plan.kind is not Kind.READINESS and not self.passed and self.in_a_row >= plan.failures


class Health(msgspec.Struct, frozen=True):
    """What the probes say of a guest. One that is not `alive` is ended; it is not restarted, because a VM runs once."""

    ready: bool
    alive: bool
    started: bool
    sentence: str = ""  # why it is not ready or not alive; of the worst probe
    grace_s: int | None = None  # how long it may take to end, where the probe that ends it says so


def health(probes: Iterable[tuple[Plan, ProbeState]]) -> Health:
    """Without any probe a guest is ready as soon as it has an address."""
    started = ready = True
    waits = ""
    for plan, state in probes:
        if state.ends_guest(plan):
            return Health(False, False, False, _ending(plan, state), plan.grace_s)
        if plan.kind is not Kind.LIVENESS and not state.is_good:
            ready = False
            started = started and plan.kind is not Kind.STARTUP
            waits = waits or _waiting(plan, state)
    return Health(ready, True, started, waits)


def unhealthy_event(plan: Plan, answer: Answer) -> str:
    """The text of the Warning `Unhealthy`, in the words of a kubelet."""
    name = plan.kind.capitalize()
    if answer.outcome is ProbeResult.UNKNOWN:
        return f"{name} probe errored and resulted in unknown state: {answer.text}"
    return f"{name} probe failed: {answer.text}"


def _ending(plan: Plan, state: ProbeState) -> str:
    last = state.last.text if state.last else ""
    times = "once" if state.in_a_row == 1 else f"{state.in_a_row} times in a row"
    return f"the {plan.kind} probe failed {times}; the last answer was: {last}"


def _waiting(plan: Plan, state: ProbeState) -> str:
    if state.last is None:
        return f"the {plan.kind} probe has not been answered yet"
    if state.last.outcome is ProbeResult.PASSED:
        return f"the {plan.kind} probe passed {state.in_a_row} of {plan.successes} times"
    word = "failed" if state.last.outcome is ProbeResult.FAILED else "could not be asked"
    return f"the {plan.kind} probe {word}; the last answer was: {state.last.text}"
