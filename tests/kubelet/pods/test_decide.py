"""The order of looks at a Pod, for every combination of what the API and the journal may say."""

import itertools

import pytest

from applecart.api import finalizers
from applecart.api.meta import ObjectMeta
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED, Pod, PodStatus
from applecart.clock import EPOCH
from applecart.kubelet.entry import Exit, JournalEntry, Stage
from applecart.kubelet.pods.decide import Act, next_act

EXIT = Exit("Succeeded", "TartRunExited", "", "Completed", 0)
STAGES = [None, *Stage]
PHASES = ["", PENDING, RUNNING, SUCCEEDED, FAILED]


def pod(phase: str, *, is_guarded: bool, is_deleted: bool) -> Pod:
    meta = ObjectMeta(
        name="job-1",
        namespace="ci",
        uid="u1",
        finalizers=(finalizers.VM_CLEANUP,) if is_guarded else (),
        deletion_timestamp=EPOCH if is_deleted else None,
    )
    return Pod(metadata=meta, status=PodStatus(phase=phase))


def entry(stage: Stage | None) -> JournalEntry | None:
    if stage is None:
        return None
    has_ended = stage in (Stage.ENDED, Stage.PUBLISHED, Stage.REMOVED)
    exit = EXIT if has_ended else None
    return JournalEntry(uid="u1", namespace="ci", name="job-1", vm="ci-job-1", stage=stage, accepted_at=EPOCH, exit=exit)


@pytest.mark.parametrize(("phase", "stage"), list(itertools.product(PHASES, STAGES)))
@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("is_unsupported", [True, False])
def test_deletion_comes_before_everything_else(phase: str, stage: Stage | None, is_guarded: bool, is_unsupported: bool) -> None:
    """Incident 1: 504 finished Pods stayed Terminating because "it has ended" was asked before "is it being deleted"."""
    deleted = pod(phase, is_guarded=is_guarded, is_deleted=True)
    assert next_act(deleted, entry(stage), is_unsupported) is Act.FINISH_DELETION


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_finished_pod_is_never_given_a_vm(phase: str, stage: Stage | None, is_guarded: bool) -> None:
    """Incident 2: a Pod that had ended was met by an agent that remembered nothing of it, and booted a second time."""
    act = next_act(pod(phase, is_guarded=is_guarded, is_deleted=False), entry(stage), is_unsupported=False)
    assert act is (Act.NOTHING if stage in (None, Stage.REMOVED) else Act.CLEAR_AWAY)


@pytest.mark.parametrize("phase", ["", PENDING, RUNNING])
@pytest.mark.parametrize("stage", [Stage.ENDED, Stage.PUBLISHED, Stage.REMOVED])
def test_an_end_that_the_api_does_not_hold_is_published_however_far_the_host_is(phase: str, stage: Stage) -> None:
    """Weakness 8: the end was torn down before it was durable, and a Pod that still said Running was booted again."""
    assert next_act(pod(phase, is_guarded=True, is_deleted=False), entry(stage), is_unsupported=False) is Act.PUBLISH_END


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_made_before_the_finalizer_is_there(stage: Stage | None) -> None:
    assert next_act(pod(PENDING, is_guarded=False, is_deleted=False), entry(stage), is_unsupported=False) is Act.GUARD


def test_a_pod_that_can_never_work_gets_no_finalizer() -> None:
    """Incident 16: a Pod with two containers was tried every 30 seconds forever."""
    assert next_act(pod(PENDING, is_guarded=False, is_deleted=False), None, is_unsupported=True) is Act.REFUSE


@pytest.mark.parametrize("stage", [None, Stage.ACCEPTED, Stage.CLONING, Stage.CLONED, Stage.BOOTING, Stage.RUNNING])
def test_a_pod_whose_vm_has_not_ended_lives(stage: Stage | None) -> None:
    assert next_act(pod(RUNNING, is_guarded=True, is_deleted=False), entry(stage), is_unsupported=False) is Act.LIVE
