"""What to do when a VM could not be made: how soon to try again, when to give up, and what the Pod's status says meanwhile.

A pure table from the class of an error. What can never work fails at once; what somebody may mend is tried at a pace that
fits it and fails after a time; what is the control plane's fault never counts against the Pod (I12). The next attempt has a
time that is written down (I10), so an agent that restarts does not begin from the shortest wait again.
"""

import errno
from datetime import datetime, timedelta
from random import Random

import msgspec

from applecart.api.pods import FAILED
from applecart.api.reasons import StatusReason
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ControlPlaneFault, DeadlineExceeded, Permanent, Unreachable
from applecart.kube.backoff import Backoff
from applecart.kube.errors import ApiError
from applecart.kubelet.entry import Exit, Trouble
from applecart.kubelet.golden_making import VmInTheWay
from applecart.kubelet.guest.config_sources import MissingConfig
from applecart.kubelet.pods.support import UnsupportedPod
from applecart.secrets import redact
from applecart.tart import failures

NEVER_RAN_CODE = 255  # of a container that never started: not 0, and no shell's signal
KILLED_CODE = 137  # of any container that was ended from outside: 128 and the number of SIGKILL
LONGEST_SENTENCE_CHARS = 2000
_MINUTE_S = 60.0


class FailureClass(msgspec.Struct, frozen=True):
    failure: str  # the word in the journal, in logs and in metrics
    reason: StatusReason
    pace: Backoff
    give_up_after_s: float | None  # since the first failure of this class in a row; None is never


_AT_ONCE = Backoff(1.0, 1.0)  # not waited for: what gives up after 0 s is not tried again
CLASSES = (
    FailureClass("unsupported", reasons.UNSUPPORTED_POD, _AT_ONCE, 0.0),
    FailureClass("bad-image", reasons.INVALID_IMAGE, _AT_ONCE, 0.0),
    FailureClass("permanent", reasons.CREATE_FAILED, _AT_ONCE, 0.0),
    # Somebody may be about to create it.
    FailureClass("config", reasons.CONFIG_ERROR, Backoff(5.0, 120.0), 30 * _MINUTE_S),
    # A new tag or credential appears within minutes or not at all.
    FailureClass("registry-refused", reasons.PULL_FAILED, Backoff(15.0, 120.0), 10 * _MINUTE_S),
    # Asking sooner makes a rate limit last longer.
    FailureClass("registry-busy", reasons.PULL_FAILED, Backoff(30.0, 300.0), 60 * _MINUTE_S),
    # Garbage collection runs every five minutes.
    FailureClass("no-space", reasons.HOST_DISK_FULL, Backoff(30.0, 300.0), 20 * _MINUTE_S),
    # The login window is kicked at most every five minutes.
    FailureClass("no-gui-session", reasons.VM_NEEDS_GUI_SESSION, Backoff(30.0, 120.0), 10 * _MINUTE_S),
    # A VM that ends makes room at any moment.
    FailureClass("too-many-vms", reasons.TOO_MANY_VMS, Backoff(5.0, 30.0), 30 * _MINUTE_S),
    # Only a person can remove it; one who is called at night needs a while, and the Pod should then go on by itself.
    FailureClass("vm-in-the-way", reasons.VM_IN_THE_WAY, Backoff(10.0, 300.0), 240 * _MINUTE_S),
    FailureClass("tart", reasons.CREATE_FAILED, Backoff(5.0, 120.0), 60 * _MINUTE_S),
    FailureClass("control-plane", reasons.CONTROL_PLANE, Backoff(1.0, 30.0), None),
)
_BY_WORD = {known.failure: known for known in CLASSES}
# The first that fits counts, so a class stands before those it inherits from.
_BY_ERROR: tuple[tuple[type[Exception], str], ...] = (
    (MissingConfig, "config"),
    (ApiError, "control-plane"),
    (UnsupportedPod, "unsupported"),
    (failures.BadImage, "bad-image"),
    (Permanent, "permanent"),
    (failures.RegistryRefused, "registry-refused"),
    (failures.ImageMissing, "registry-refused"),
    (failures.RegistryBusy, "registry-busy"),
    (failures.NoSpace, "no-space"),
    (failures.NoGuiSession, "no-gui-session"),
    (failures.TooManyVms, "too-many-vms"),
    (VmInTheWay, "vm-in-the-way"),
    (failures.TartFailed, "tart"),
    (failures.TartHung, "tart"),
    (ControlPlaneFault, "control-plane"),
    (Unreachable, "control-plane"),
    (DeadlineExceeded, "control-plane"),
)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def classify(error: BaseException) -> FailureClass:
    """What nobody foresaw counts as trouble with Tart: it is tried again, and not for ever."""
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return _BY_WORD["no-space"]
    return _BY_WORD[next((word for kind, word in _BY_ERROR if isinstance(error, kind)), "tart")]


def next_trouble(previous: Trouble | None, error: BaseException, now: datetime, chance: Random) -> Trouble:
    """After one more failure. Another class of failure begins to count anew."""
    found = classify(error)
    is_same = previous is not None and previous.failure == found.failure
    count = previous.failures + 1 if previous is not None and is_same else 1
    since = min(previous.since, now) if previous is not None and is_same else now
    wait_s = found.pace.wait_s(count, chance)
    if isinstance(error, ApiError) and error.retry_after_s is not None:
        wait_s = min(max(wait_s, error.retry_after_s), found.pace.longest_s)
    return Trouble(
        failure=found.failure,
        reason=found.reason.name,
        sentence=redact(str(error) or type(error).__name__)[:LONGEST_SENTENCE_CHARS],
        failures=count,
        since=since,
        next_attempt_at=now + timedelta(seconds=wait_s),
    )


def gives_up(trouble: Trouble, now: datetime) -> bool:
    limit_s = _class_of(trouble).give_up_after_s
    return limit_s is not None and (now - trouble.since).total_seconds() >= limit_s


def wait_s(trouble: Trouble, now: datetime) -> float:
    """Until the next attempt; bounded, because the wall clock may have been set back since it was written."""
    return min(max(0.0, (trouble.next_attempt_at - now).total_seconds()), _class_of(trouble).pace.longest_s)


def given_up(trouble: Trouble, now: datetime) -> Exit:
    """The end of a Pod whose VM could not be made."""
    message = trouble.sentence
    if trouble.failures > 1:
        minutes = int((now - trouble.since).total_seconds() // _MINUTE_S)
        message = f"given up after {trouble.failures} attempts in {minutes} minutes: {message}"
    return never_ran(trouble.reason, message, now)


def never_ran(reason: str, message: str, now: datetime) -> Exit:
    return Exit(FAILED, reason, message, reason, NEVER_RAN_CODE, finished_at=now)


def ended_by_us(reason: str, message: str, since: datetime) -> Exit:
    """Of a VM that the agent ends, from that time on."""
    return Exit(FAILED, reason, message, reason, KILLED_CODE, KILLED_CODE - 128, since)


def _class_of(trouble: Trouble) -> FailureClass:
    """Of a word in the journal, perhaps written by another version."""
    return _BY_WORD.get(trouble.failure, _BY_WORD["tart"])
