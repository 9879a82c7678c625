"""What a regular pass removes: only what is ours, useless and not running."""

from datetime import timedelta

import pytest
from hypothesis import given, settings

from applecart.api.names import golden_vm
from applecart.kubelet.garbage.in_use import names_in_use
from applecart.kubelet.garbage.plan import DeleteVm, Plan, plan_pass
from applecart.kubelet.garbage.scene import PodHere, Scene
from applecart.kubelet.garbage.wants import wants
from applecart.kubelet.golden_marks import golden_mark
from applecart.kubelet.scratch_vm import VM_PREFIX
from applecart.tart.mac import Process
from applecart.tart.marks import GoldenMark, Mark, PodMark, ScratchMark
from tests.kubelet.garbage.scenes import NOW, REPOSITORY, ago, cached, digest, golden, pod_vm, scene, scenes, vm


def removed(plan: Plan) -> list[str]:
    return [step.vm.name if isinstance(step, DeleteVm) else step.name for step in plan.deletions]


# VMs


def test_the_vm_of_a_pod_that_is_gone_goes() -> None:
    plan = plan_pass(scene(vms=(pod_vm("gone"), pod_vm("here")), pods=(PodHere("here", f"{REPOSITORY}:15"),)))
    assert removed(plan) == ["ci-gone"]
    assert "Pod ci/gone (gone) is not on this host" in plan.deletions[0].because


def test_a_vm_that_was_just_cloned_is_held_by_its_journal_entry() -> None:
    """Incident 28: the collector listed Pods, then a VM was cloned for a new one and deleted as an orphan."""
    assert removed(plan_pass(scene(vms=(pod_vm("new"),), held=frozenset({"new"})))) == []
    assert removed(plan_pass(scene(vms=(pod_vm("new"),)))) == ["ci-new"]


def test_a_pod_with_the_name_of_a_dead_one_does_not_keep_its_vm() -> None:
    plan = plan_pass(scene(vms=(pod_vm("old", "web-0"),), pods=(PodHere("new", f"{REPOSITORY}:15"),)))
    assert removed(plan) == ["ci-web-0"]


def test_a_vm_whose_removal_failed_before_goes_once_its_entry_is_gone() -> None:
    """Weakness 16: a failed delete left a record that protected the VM for ever; here the mark outlives the record."""
    stuck = scene(vms=(pod_vm("u1"),), held=frozenset({"u1"}))
    assert removed(plan_pass(stuck)) == []
    assert removed(plan_pass(scene(vms=stuck.vms))) == ["ci-u1"]


def test_a_vm_without_a_mark_never_goes() -> None:
    """Weakness 26, incident 27: a builder's stopped VM matches no Pod by name, and was deleted while it was pushed."""
    names = ("macos-builder", "tuist-golden-0123456789abcdef", "ci-job")
    assert removed(plan_pass(scene(vms=tuple(vm(name) for name in names)))) == []


def test_an_orphan_that_runs_is_reported_and_left_alone() -> None:
    plan = plan_pass(scene(vms=(pod_vm("gone"),), named_by_processes=frozenset({"ci-gone"})))
    assert removed(plan) == []
    assert "ci-gone is an orphan" in plan.notices[0]


def test_when_nobody_can_tell_what_runs_nothing_goes() -> None:
    """Incident 25: a probe that failed counts as running."""
    everything = scene(
        vms=(pod_vm("gone"), golden("a", 100), golden("b", 100), vm(f"{VM_PREFIX}1", ScratchMark(ago(5)))),
        images=(cached("c"),),
        pulled=frozenset({digest("c")}),
        named_by_processes=None,
    )
    assert removed(plan_pass(everything)) == []


def test_a_longer_name_that_runs_does_not_spare_a_shorter_orphan() -> None:
    """Incident 26: searching for a part of a command line took `job-2` for `job` and pinned the orphan."""
    used = names_in_use([Process(7, "x", "/usr/local/bin/tart run ci-job-2 --no-graphics --dir env:/var/ci-job:ro")])
    both = scene(vms=(pod_vm("u1", "job"), pod_vm("u2", "job-2")), named_by_processes=used)
    assert removed(plan_pass(both)) == ["ci-job"]


@pytest.mark.parametrize("command", ["tart run X", "/opt/tart push X ghcr.io/a/b:c", "tart clone X Y", "tart export X f"])
def test_whatever_a_process_does_with_a_vm_it_is_in_use(command: str) -> None:
    assert "X" in names_in_use([Process(1, "", command)])


def test_two_pods_with_long_names_never_share_a_vm() -> None:
    """Incident 29: names cut at 63 characters collided, and one Pod's teardown took the other's VM."""
    first, second = (pod_vm(uid, f"runner-{'x' * 60}-{end}", "tuist-runners") for uid, end in (("dead", "a"), ("alive", "b")))
    assert first.name != second.name
    both = scene(vms=(first, second), pods=(PodHere("alive", f"{REPOSITORY}:15"),))
    assert removed(plan_pass(both)) == [first.name]


def test_a_scratch_vm_goes_after_an_hour() -> None:
    old, fresh = vm(f"{VM_PREFIX}1", ScratchMark(ago(1.5))), vm(f"{VM_PREFIX}2", ScratchMark(ago(0.5)))
    assert removed(plan_pass(scene(vms=(old, fresh)))) == [f"{VM_PREFIX}1"]


@pytest.mark.parametrize(
    "mark",
    [
        PodMark("gone", "ci", "job", f"{REPOSITORY}:15", digest("a"), ago(1)),
        PodMark("gone", "", "debug-copy", f"{REPOSITORY}:15", digest("a"), ago(1)),
        PodMark("gone", "NOT", "a/name", f"{REPOSITORY}:15", digest("a"), ago(1)),
        ScratchMark(ago(5)),
    ],
)
def test_a_mark_in_a_vm_of_another_name_proves_nothing(mark: Mark) -> None:
    """I3: a person exports the VM of a failing job and imports it as `debug-copy`; our mark goes with it."""
    assert removed(plan_pass(scene(vms=(vm("debug-copy", mark),)))) == []


# Goldens


def test_a_golden_stays_a_day_after_it_was_last_used_then_goes_oldest_first() -> None:
    vms = (golden("a", 30), golden("b", 23), golden("c", 50))
    assert removed(plan_pass(scene(vms=vms))) == [golden_vm(digest("c")), golden_vm(digest("a"))]


def test_the_last_golden_stays_and_it_is_the_most_recently_used() -> None:
    """Weakness 25: what was kept depended on the order of hashes, so it could be the useless one."""
    vms = (golden("a", 100), golden("b", 30), golden("c", 50))
    assert removed(plan_pass(scene(vms=vms))) == [golden_vm(digest("a")), golden_vm(digest("c"))]


@pytest.mark.parametrize(
    "pod",
    [
        PodHere("u", digest("a")),
        PodHere("u", f"{REPOSITORY}:15"),
        PodHere("u", f"{REPOSITORY}:other", digest("a")),
        PodHere("u", f"{REPOSITORY}:15", is_ended=True),
    ],
)
def test_a_golden_that_a_pod_wants_stays_however_the_pod_spells_it(pod: PodHere) -> None:
    vms = (golden("a", 100, f"{REPOSITORY}:15"), golden("b", 1))
    plan = plan_pass(scene(vms=vms, pods=(pod,)))
    assert removed(plan) == []
    assert [touch.vm for touch in plan.touches] == [golden_vm(digest("a"))]


def test_a_golden_that_was_booted_by_hand_is_spared_while_it_runs() -> None:
    """Incident 25: one that was booted for a benchmark was deleted under it."""
    vms = (golden("a", 100), golden("b", 1))
    assert removed(plan_pass(scene(vms=vms, named_by_processes=frozenset({golden_vm(digest("a"))})))) == []
    assert removed(plan_pass(scene(vms=vms))) == [golden_vm(digest("a"))]


def test_a_golden_being_cloned_from_is_spared() -> None:
    vms = (golden("a", 100), golden("b", 1))
    assert removed(plan_pass(scene(vms=vms, busy_vms=frozenset({golden_vm(digest("a"))})))) == []


def test_a_golden_mark_in_a_folder_of_another_name_proves_nothing() -> None:
    copied = vm("my-experiment", GoldenMark(digest("a"), (), ago(100), ago(100)))
    assert removed(plan_pass(scene(vms=(copied, golden("b", 1))))) == []


def test_a_broken_golden_that_nobody_wants_goes_at_once() -> None:
    vms = (golden("a", 0, is_whole=False), golden("b", 1))
    assert removed(plan_pass(scene(vms=vms))) == [golden_vm(digest("a"))]


# Images


def test_the_image_of_a_pod_that_names_a_tag_stays() -> None:
    """Incident 23: Pods use tags and listings show digests, so the image of every living Pod went at every pass."""
    pods = (PodHere("u", f"{REPOSITORY}:15"),)
    images = (cached("a", 1, "15"), cached("b"), cached("c", 1, "14"))
    plan = plan_pass(scene(images=images, pods=pods, pulled=frozenset(map(digest, "abc"))))
    assert removed(plan) == [digest("b"), digest("c")]


def test_a_tag_that_leads_nowhere_yet_keeps_its_whole_repository() -> None:
    pods = (PodHere("u", f"{REPOSITORY}:new"),)
    assert removed(plan_pass(scene(images=(cached("a"),), pods=pods, pulled=frozenset({digest("a")})))) == []


def test_an_image_with_two_tags_is_deleted_once() -> None:
    """Weakness 25: a row per tag and one per digest made every second delete fail."""
    image = cached("a", 1, "15", "latest")
    assert removed(plan_pass(scene(images=(image,), pulled=frozenset({digest("a")})))) == [digest("a")]


def test_an_image_that_somebody_else_pulled_never_goes() -> None:
    assert removed(plan_pass(scene(images=(cached("a"),)))) == []


def test_an_image_being_pulled_or_used_by_a_process_is_spared() -> None:
    ours = {"images": (cached("a", 1, "15"),), "pulled": frozenset({digest("a")})}
    assert removed(plan_pass(scene(**ours, busy_images=frozenset({digest("a")})))) == []
    assert removed(plan_pass(scene(**ours, named_by_processes=frozenset({f"{REPOSITORY}:15"})))) == []
    assert removed(plan_pass(scene(**ours))) == [digest("a")]


def test_an_image_stays_with_its_golden_and_goes_before_it() -> None:
    """Incident 21: between two Pods of a pool nobody wants the image; without it the next one pulls 40 GB again."""
    ours = {"images": (cached("a", 1, "15"),), "pulled": frozenset({digest("a")})}
    assert removed(plan_pass(scene(**ours, vms=(golden("a", 2), golden("b", 1))))) == []
    expired = plan_pass(scene(**ours, vms=(golden("a", 30), golden("b", 1))))
    assert removed(expired) == [digest("a"), golden_vm(digest("a"))]


# For any state


@given(scenes)
@settings(max_examples=500)
def test_no_plan_touches_what_is_not_ours_runs_or_is_needed_by_a_living_pod(state: Scene) -> None:
    assert_safe(state, plan_pass(state))


@given(scenes)
def test_no_plan_removes_anything_twice_or_every_golden(state: Scene) -> None:
    names = removed(plan_pass(state))
    assert len(names) == len(set(names))
    whole = {vm.name for vm in state.vms if vm.is_whole and golden_mark(vm)}
    assert not whole or whole - set(names)


@given(scenes)
def test_a_pass_is_settled_after_it_was_carried_out(state: Scene) -> None:
    import msgspec

    names = set(removed(plan_pass(state)))
    after = msgspec.structs.replace(
        state,
        vms=tuple(vm for vm in state.vms if vm.name not in names),
        images=tuple(image for image in state.images if image.name not in names),
    )
    assert removed(plan_pass(after)) == []


def assert_safe(state: Scene, plan: Plan) -> None:
    living = wants((pod for pod in state.pods if not pod.is_ended), state)
    alive = {pod.uid for pod in state.pods} | state.held
    for step in plan.deletions:
        if isinstance(step, DeleteVm):
            assert step.vm.mark is not None
            assert step.mark == step.vm.mark
            assert state.named_by_processes is not None
            assert step.vm.name not in state.named_by_processes
            if isinstance(step.mark, PodMark):
                assert step.mark.uid not in alive
                assert step.vm.name == f"{step.mark.namespace}-{step.mark.name}"
            if isinstance(step.mark, ScratchMark):
                assert step.vm.name.startswith(VM_PREFIX)
            if isinstance(step.mark, GoldenMark):
                assert step.mark.digest not in living
                assert step.vm.name not in state.busy_vms
        else:
            assert step.name in state.pulled
            assert step.name not in living
            assert step.name not in state.busy_images


def test_a_clock_that_was_set_back_deletes_nothing() -> None:
    early = scene(vms=(golden("a", 100), golden("b", 1)), now=NOW - timedelta(days=30))
    assert removed(plan_pass(early)) == []
