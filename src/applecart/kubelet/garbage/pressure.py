"""What goes next when the disk is short: one step at a time, each decided on the state after the last.

An image goes before the golden that was cloned from it, because the two share their blocks and the golden alone frees nothing.
What no Pod wants goes first, then what only ended Pods want; what a living Pod wants never goes, since it would be pulled back
into the same full disk. What was half fetched and no Pod waits for goes before any of them. The caller measures and looks again
between two steps.
"""

from contextlib import suppress

from applecart.kubelet.garbage.plan import DeleteImage, DeleteVm, goldens, is_removable, unwanted_images
from applecart.kubelet.garbage.scene import Scene
from applecart.kubelet.garbage.wants import Wants, wants
from applecart.tart.failures import BadImage
from applecart.tart.images import parse

FREE_FLOOR_PERCENT = 15.0  # below it the host collects at once; DiskPressure is only declared below 10


def is_short(scene: Scene) -> bool:
    """Pressure is only claimed when it was measured."""
    return scene.free_percent is not None and scene.free_percent < FREE_FLOOR_PERCENT


def next_step(scene: Scene, failed: frozenset[str], *, is_starved: bool = False) -> DeleteImage | DeleteVm | None:
    """`failed` are names that could not be deleted in this run; `is_starved` means that a pull or clone found no room, so
    everything unwanted goes whatever the disk says."""
    by_all = wants(scene.pods, scene)
    if (is_starved or is_short(scene)) and (step := _least_wanted(scene, by_all, failed, is_starved)):
        return step
    by_living = wants((pod for pod in scene.pods if not pod.is_ended), scene)
    return _least_wanted(scene, by_living, failed, is_starved) if is_short(scene) else None


def needed_downloads(scene: Scene) -> frozenset[str]:
    """The images whose unfinished pull a Pod will come back for, as Tart is asked for them."""
    found = set()
    for pod in scene.pods:
        with suppress(BadImage):
            if not pod.is_ended:
                found.add(parse(pod.image).pull_name)
    return frozenset(found)


def _least_wanted(scene: Scene, wanted: Wants, failed: frozenset[str], is_starved: bool) -> DeleteImage | DeleteVm | None:
    images = [step for step in unwanted_images(scene, wanted) if step.name not in failed]
    if images:
        return images[0]
    found = [(vm, mark) for vm, mark in goldens(scene) if vm.is_whole]
    # A host without any golden starts cold, so one stays; but not in the way of the one that a Pod waits for.
    if len(found) <= 1 and not is_starved:
        return None
    why = "no Pod needs it and the disk is short"
    free = [
        DeleteVm(vm, mark, why)
        for vm, mark in found
        if mark.digest not in wanted and is_removable(scene, vm) and vm.name not in failed
    ]
    return free[0] if free else None
