"""What a regular pass removes, and why.

Only what bears our mark or stands in our ledger is ever planned (I3), never anything a process names, never what a living Pod
needs. VMs go when their Pod and its journal entry are gone, goldens a day after the last Pod wanted them, images when nobody
wants them. Reads no disk and no clock; `collect.py` carries it out, `pressure.py` decides when the disk is short.
"""

from datetime import timedelta
from typing import Literal

import msgspec

from applecart.kubelet.garbage.own_marks import pod_mark, scratch_mark
from applecart.kubelet.garbage.scene import Scene
from applecart.kubelet.garbage.wants import Wants, wants
from applecart.kubelet.golden_marks import golden_mark
from applecart.tart.cached_images import CachedImage
from applecart.tart.home import LocalVm
from applecart.tart.marks import GoldenMark, Mark, PodMark

GOLDEN_RETENTION = timedelta(hours=24)  # a pool that is rolled back or rests over night finds its golden again
SCRATCH_RETENTION = timedelta(hours=1)  # a scratch boot takes minutes; one this old was left by a crash
TOUCH_EVERY = timedelta(hours=1)  # a wanted golden's clock is kept this fresh; finer would only wear the disk

Kind = Literal["vm", "golden", "scratch", "image", "userdata", "log"]


class DeleteVm(msgspec.Struct, frozen=True):
    """Delete this VM if it still bears the mark we judged it by."""

    vm: LocalVm
    mark: Mark
    because: str

    @property
    def kind(self) -> Kind:
        return "vm" if isinstance(self.mark, PodMark) else "golden" if isinstance(self.mark, GoldenMark) else "scratch"


class DeleteImage(msgspec.Struct, frozen=True):
    name: str  # repository@sha256:..., with every tag that leads to it
    because: str
    kind: Kind = "image"


class TouchGolden(msgspec.Struct, frozen=True):
    """A Pod wants it: its retention begins anew."""

    vm: str


class Plan(msgspec.Struct, frozen=True):
    deletions: tuple[DeleteVm | DeleteImage, ...] = ()
    touches: tuple[TouchGolden, ...] = ()
    notices: tuple[str, ...] = ()  # what is ours and useless, but runs


def plan_pass(scene: Scene) -> Plan:
    wanted = wants(scene.pods, scene)
    candidates = [*_orphans(scene), *_scratches(scene)]
    notices = [
        f"VM {step.vm.name} is an orphan ({step.because}) but runs, so it is left alone"
        for step in candidates
        if scene.is_in_use(step.vm.name)
    ]
    vms = [step for step in candidates if not scene.is_in_use(step.vm.name)]
    expired = _goldens(scene, wanted)
    going = {step.vm.name for step in expired}
    kept = {mark.digest for vm, mark in goldens(scene) if vm.name not in going}
    # An image stays as long as its golden: without it a Pod that names a tag would pull all of it to learn that nothing
    # changed, and nothing would be won, because the two share their blocks.
    images = [step for step in unwanted_images(scene, wanted) if step.name not in kept]
    return Plan((*vms, *images, *expired), _touches(scene, wanted), tuple(notices))


def goldens(scene: Scene) -> list[tuple[LocalVm, GoldenMark]]:
    """Least recently used first."""
    found = [(vm, mark) for vm in scene.vms if (mark := golden_mark(vm)) is not None]
    return sorted(found, key=lambda pair: (pair[1].used_at, pair[0].name))


def is_removable(scene: Scene, golden: LocalVm) -> bool:
    return not scene.is_in_use(golden.name) and golden.name not in scene.busy_vms


def unwanted_images(scene: Scene, wanted: Wants) -> list[DeleteImage]:
    """Of those this agent pulled; least recently used first."""
    ours = [image for image in scene.images if image.name in scene.pulled and not _is_image_in_use(scene, image)]
    return [
        DeleteImage(image.name, "no Pod on this host wants it")
        for image in sorted(ours, key=lambda image: (image.used_at, image.name))
        if image.name not in wanted
    ]


def _is_image_in_use(scene: Scene, image: CachedImage) -> bool:
    names = (image.name, *(f"{image.repository}:{tag}" for tag in image.tags))
    return image.name in scene.busy_images or any(scene.is_in_use(name) for name in names)


def _orphans(scene: Scene) -> list[DeleteVm]:
    alive = {pod.uid for pod in scene.pods} | scene.held
    return [
        DeleteVm(vm, mark, f"Pod {mark.namespace}/{mark.name} ({mark.uid}) is not on this host any more")
        for vm in scene.vms
        if (mark := pod_mark(vm)) is not None and mark.uid not in alive
    ]


def _scratches(scene: Scene) -> list[DeleteVm]:
    return [
        DeleteVm(vm, mark, "its boot check is long over")
        for vm in scene.vms
        if (mark := scratch_mark(vm)) is not None and scene.now - mark.made_at > SCRATCH_RETENTION
    ]


def _goldens(scene: Scene, wanted: Wants) -> list[DeleteVm]:
    found = goldens(scene)
    broken = [
        DeleteVm(vm, mark, "it lacks files of a VM")
        for vm, mark in found
        if not vm.is_whole and mark.digest not in wanted and is_removable(scene, vm)
    ]
    whole = [(vm, mark) for vm, mark in found if vm.is_whole]
    expired = [
        DeleteVm(vm, mark, f"no Pod wanted it since {mark.used_at:%Y-%m-%d %H:%M} UTC")
        for vm, mark in whole
        if scene.now - mark.used_at > GOLDEN_RETENTION and mark.digest not in wanted and is_removable(scene, vm)
    ]
    # A host without any golden starts its next Pod with a pull, so the most recently used one always stays.
    return [*broken, *expired[: max(0, len(whole) - 1)]]


def _touches(scene: Scene, wanted: Wants) -> tuple[TouchGolden, ...]:
    return tuple(
        TouchGolden(vm.name) for vm, mark in goldens(scene) if mark.digest in wanted and scene.now - mark.used_at > TOUCH_EVERY
    )
