"""Every failure has a class, a pace and an end, and the control plane's faults never end a Pod."""

import errno
import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.reasons import kubelet as reasons
from applecart.errors import BadInput, ControlPlaneFault, DeadlineExceeded, Permanent, Transient, Unreachable
from applecart.kube.errors import Conflict, Forbidden, Invalid, NotFound, ServerFault, Status, TooManyRequests, Unauthorized
from applecart.kubelet.entry import Trouble
from applecart.kubelet.golden_making import VmInTheWay
from applecart.kubelet.guest.config_sources import MissingConfig
from applecart.kubelet.pods import trouble
from applecart.kubelet.pods.support import UnsupportedPod
from applecart.kubelet.pods.trouble import CLASSES, classify, given_up, gives_up, never_ran, next_trouble, wait_s
from applecart.secrets import Secret
from applecart.tart import failures
from tests.secret_guard import SecretGuard

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATUS = Status(message="no", code=500)
MINUTE = 60.0

TABLE = [
    (UnsupportedPod("x"), "unsupported", 0.0),
    (failures.BadImage("x"), "bad-image", 0.0),
    (failures.TartRefused("x"), "permanent", 0.0),
    (BadInput("x"), "permanent", 0.0),
    (Permanent("x"), "permanent", 0.0),
    (MissingConfig("x"), "config", 30 * MINUTE),
    (failures.RegistryRefused("x"), "registry-refused", 10 * MINUTE),
    (failures.ImageMissing("x"), "registry-refused", 10 * MINUTE),
    (failures.RegistryBusy("x"), "registry-busy", 60 * MINUTE),
    (failures.NoSpace("x"), "no-space", 20 * MINUTE),
    (OSError(errno.ENOSPC, "full"), "no-space", 20 * MINUTE),
    (failures.NoGuiSession("x"), "no-gui-session", 10 * MINUTE),
    (failures.TooManyVms("x"), "too-many-vms", 30 * MINUTE),
    (VmInTheWay("x"), "vm-in-the-way", 240 * MINUTE),
    (failures.TartHung("x"), "tart", 60 * MINUTE),
    (failures.PullStalled("x"), "tart", 60 * MINUTE),
    (failures.TartFailed("x"), "tart", 60 * MINUTE),
    (failures.VmMissing("x"), "tart", 60 * MINUTE),
    (failures.NoAddress("x"), "tart", 60 * MINUTE),
    (Transient("x"), "tart", 60 * MINUTE),
    (OSError(errno.EACCES, "not ours"), "tart", 60 * MINUTE),
    (KeyError("a bug of ours"), "tart", 60 * MINUTE),
    (ControlPlaneFault("x"), "control-plane", None),
    (Unreachable("x"), "control-plane", None),
    (DeadlineExceeded("x"), "control-plane", None),
    (ServerFault(STATUS, "GET"), "control-plane", None),
    (TooManyRequests(STATUS, "GET"), "control-plane", None),
    (Conflict(STATUS, "PATCH"), "control-plane", None),
    (Unauthorized(STATUS, "GET"), "control-plane", None),
    (Forbidden(STATUS, "GET"), "control-plane", None),
    (NotFound(STATUS, "GET"), "control-plane", None),
    (Invalid(STATUS, "PATCH"), "control-plane", None),
]
ERRORS = st.sampled_from([error for error, _, _ in TABLE])


@pytest.mark.parametrize(("error", "word", "give_up_after_s"), TABLE, ids=lambda each: type(each).__name__)
def test_every_error_has_its_class(error: BaseException, word: str, give_up_after_s: float | None) -> None:
    """Weakness 5: a bad reference, a wrong password, a missing Secret and a lost session all looked alike, for ever."""
    assert (classify(error).failure, classify(error).give_up_after_s) == (word, give_up_after_s)


def every_subclass(kind: type[Exception]) -> set[type[Exception]]:
    return {kind} | {found for sub in kind.__subclasses__() for found in every_subclass(sub)}


def test_no_failure_of_tart_is_taken_for_the_control_planes() -> None:
    known = {kind for kind in every_subclass(Exception) if kind.__module__ == failures.__name__}
    assert len(known) > 10
    assert all(classify(kind("x")).give_up_after_s is not None for kind in known)


def test_every_reason_is_a_word_and_every_class_is_known_by_one() -> None:
    assert len({known.failure for known in CLASSES}) == len(CLASSES)
    assert all(known.reason.name.isalnum() and known.reason.name[0].isupper() for known in CLASSES)


def chance(seed: int = 0) -> random.Random:
    return random.Random(seed)


def test_what_can_never_work_fails_at_once() -> None:
    found = next_trouble(None, failures.BadImage("no reference"), NOON, chance())
    assert gives_up(found, NOON)
    end = given_up(found, NOON)
    assert (end.phase, end.reason, end.message, end.code) == ("Failed", "InvalidImageName", "no reference", 255)


def attempts(error: Exception, until_s: float) -> list[Trouble]:
    """What an agent lives through that does nothing but fail."""
    seen: list[Trouble] = []
    now, last = NOON, None
    while (now - NOON).total_seconds() < until_s:
        last = next_trouble(last, error, now, chance(len(seen)))
        seen.append(last)
        if gives_up(last, now):
            break
        now += timedelta(seconds=wait_s(last, now))
    return seen


@pytest.mark.parametrize(("error", "word", "give_up_after_s"), TABLE, ids=lambda each: type(each).__name__)
def test_a_pod_that_only_fails_is_failed_in_time_unless_the_control_plane_is_to_blame(
    error: Exception, word: str, give_up_after_s: float | None
) -> None:
    """Weaknesses 5 and 7: nothing was ever given up."""
    seen = attempts(error, 24 * 60 * MINUTE)
    end = seen[-1]
    took_s = (end.next_attempt_at - NOON).total_seconds()
    if give_up_after_s is None:
        assert took_s >= 24 * 60 * MINUTE
    else:
        assert gives_up(end, end.next_attempt_at)
        assert took_s <= give_up_after_s + 2 * classify(error).pace.longest_s
        assert len(seen) <= 100


def test_a_message_says_how_often_and_how_long_it_was_tried() -> None:
    last = attempts(failures.ImageMissing("registry.example/macos:15 is not there"), 60 * MINUTE)[-1]
    end = given_up(last, NOON + timedelta(minutes=11))
    assert end.reason == "ErrImagePull"
    assert end.message.endswith(f"{last.failures} attempts in 11 minutes: registry.example/macos:15 is not there")


@given(st.lists(ERRORS, min_size=1, max_size=30), st.integers(0, 100))
def test_waits_are_bounded_and_a_new_class_begins_anew(errors: list[Exception], seed: int) -> None:
    now, last = NOON, None
    for error in errors:
        known = classify(error)
        found = next_trouble(last, error, now, chance(seed))
        assert 0 < wait_s(found, now) <= known.pace.longest_s
        if last is None or last.failure != known.failure:
            assert (found.failures, found.since) == (1, now)
            assert wait_s(found, now) <= known.pace.first_s
        else:
            assert (found.failures, found.since) == (last.failures + 1, last.since)
        now += timedelta(seconds=wait_s(found, now))
        last = found


@given(ERRORS, st.integers(1, 50), st.integers(0, 100))
def test_with_the_same_luck_a_later_failure_never_waits_shorter(error: Exception, failures: int, seed: int) -> None:
    before = next_trouble(None, error, NOON, chance(seed))
    earlier = msgspec.structs.replace(before, failures=failures)
    later = msgspec.structs.replace(before, failures=failures + 1)
    waits = [wait_s(next_trouble(each, error, NOON, chance(seed)), NOON) for each in (earlier, later)]
    assert waits == sorted(waits)


@given(ERRORS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_is_given_up_stays_given_up(error: Exception, earlier_s: int, later_s: int) -> None:
    found = next_trouble(None, error, NOON, chance())
    first, second = sorted((earlier_s, later_s))
    assert not gives_up(found, NOON + timedelta(seconds=first)) or gives_up(found, NOON + timedelta(seconds=second))


def test_a_clock_that_was_set_back_makes_nobody_wait_for_hours() -> None:
    found = next_trouble(None, failures.TartFailed("x"), NOON, chance())
    yesterday = NOON - timedelta(days=1)
    assert wait_s(found, yesterday) <= 120.0
    again = next_trouble(found, failures.TartFailed("x"), yesterday, chance())
    assert again.since == yesterday


def test_a_server_that_says_when_is_not_asked_before() -> None:
    found = next_trouble(None, TooManyRequests(STATUS, "GET", retry_after_s=12.0), NOON, chance())
    assert wait_s(found, NOON) == 12.0
    forever = next_trouble(None, TooManyRequests(STATUS, "GET", retry_after_s=86400.0), NOON, chance())
    assert wait_s(forever, NOON) == 30.0


def test_a_word_of_another_version_in_the_journal_is_trouble_with_an_end() -> None:
    found = msgspec.structs.replace(next_trouble(None, KeyError(), NOON, chance()), failure="from the future")
    assert not gives_up(found, NOON)
    assert gives_up(found, NOON + timedelta(hours=1))


def test_a_sentence_is_cut_and_its_secrets_are_masked(secret_guard: SecretGuard) -> None:
    password = Secret("hunter2-hunter2")
    with secret_guard.looking_away():
        found = next_trouble(None, Transient(f"login with {password.reveal()} " + "x" * 9000), NOON, chance())
    assert found.sentence.startswith("login with ***")
    assert len(found.sentence) <= trouble.LONGEST_SENTENCE_CHARS


def test_a_failure_without_a_text_still_says_something() -> None:
    assert next_trouble(None, KeyError(), NOON, chance()).sentence == "KeyError"
    assert never_ran(reasons.CREATE_FAILED.name, "no", NOON).finished_at == NOON
