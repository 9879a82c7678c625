"""What goes when the disk is short, in which order, and what never goes."""

import msgspec
import pytest
from hypothesis import given, settings

from applecart.api.names import golden_vm
from applecart.kubelet.garbage.plan import DeleteVm, Plan
from applecart.kubelet.garbage.pressure import needed_downloads, next_step
from applecart.kubelet.garbage.scene import PodHere, Scene
from tests.kubelet.garbage.scenes import REPOSITORY, cached, digest, golden, scene, scenes
from tests.kubelet.garbage.test_plan import assert_safe


def steps(state: Scene, *, is_starved: bool = False) -> list[str]:
    """All steps that would be taken if the disk never became any emptier."""
    taken: list[str] = []
    while (step := next_step(state, frozenset(), is_starved=is_starved)) is not None:
        assert_safe(state, Plan((step,)))
        name = step.vm.name if isinstance(step, DeleteVm) else step.name
        assert name not in taken
        taken.append(name)
        state = msgspec.structs.replace(
            state,
            vms=tuple(vm for vm in state.vms if vm.name != name),
            images=tuple(image for image in state.images if image.name != name),
        )
    return taken


@pytest.mark.parametrize(("free", "goes"), [(14.9, True), (15.0, False), (80.0, False), (None, False)])
def test_a_fresh_golden_that_nobody_wants_goes_only_below_the_floor(free: float | None, goes: bool) -> None:
    state = scene(vms=(golden("a", 0.1), golden("b", 0)), free_percent=free)
    assert steps(state) == ([golden_vm(digest("a"))] if goes else [])


def test_an_image_goes_before_the_golden_made_from_it() -> None:
    """Incident 31: deleting goldens first freed only their names, because the image still held the blocks."""
    state = scene(
        vms=(golden("a", 3), golden("b", 2), golden("c", 1)),
        images=(cached("a", 1), cached("b", 5)),
        pulled=frozenset(map(digest, "ab")),
        free_percent=5.0,
    )
    assert steps(state) == [digest("b"), digest("a"), golden_vm(digest("a")), golden_vm(digest("b"))]


def test_goldens_of_ended_pods_go_last_and_those_of_living_ones_never() -> None:
    """Incident 30: goldens that nobody needed any more filled the disk until the host could not be configured."""
    pods = (PodHere("1", digest("a"), is_ended=True), PodHere("2", digest("b")))
    state = scene(
        vms=(golden("a", 90), golden("b", 99), golden("c", 1)),
        images=(cached("a"), cached("b")),
        pulled=frozenset(map(digest, "abc")),
        pods=pods,
        free_percent=1.0,
    )
    assert steps(state) == [golden_vm(digest("c")), digest("a"), golden_vm(digest("a"))]


def test_one_golden_stays_unless_a_pod_waits_for_room_for_another() -> None:
    state = scene(vms=(golden("a", 90),), free_percent=1.0)
    assert steps(state) == []
    assert steps(state, is_starved=True) == [golden_vm(digest("a"))]


def test_a_pull_without_room_takes_everything_unwanted_even_above_the_floor() -> None:
    pods = (PodHere("1", digest("b"), is_ended=True), PodHere("2", f"{REPOSITORY}:15"))
    vms = (golden("a", 0), golden("b", 0), golden("c", 0, f"{REPOSITORY}:15"))
    state = scene(vms=vms, free_percent=30.0, pods=pods)
    assert steps(state, is_starved=True) == [golden_vm(digest("a"))]


def test_what_could_not_be_deleted_is_not_tried_again() -> None:
    state = scene(vms=(golden("a", 3), golden("b", 2), golden("c", 1)), free_percent=1.0)
    step = next_step(state, frozenset({golden_vm(digest("a"))}))
    assert isinstance(step, DeleteVm)
    assert step.vm.name == golden_vm(digest("b"))


def test_what_was_half_fetched_is_needed_by_living_pods_alone() -> None:
    pods = (
        PodHere("1", REPOSITORY),
        PodHere("2", f"{REPOSITORY}:14@sha256:{'b' * 64}"),
        PodHere("3", f"{REPOSITORY}:13", is_ended=True),
        PodHere("4", "not an image"),
    )
    assert needed_downloads(scene(pods=pods)) == {f"{REPOSITORY}:latest", digest("b")}


@given(scenes)
@settings(max_examples=300)
def test_no_sequence_of_steps_touches_what_is_not_ours_runs_or_is_needed(state: Scene) -> None:
    steps(msgspec.structs.replace(state, free_percent=0.0), is_starved=True)


@given(scenes)
def test_no_step_is_taken_on_a_disk_with_room(state: Scene) -> None:
    assert steps(msgspec.structs.replace(state, free_percent=15.0)) == []
