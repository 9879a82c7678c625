"""Which VMs are goldens: those whose mark says so, makes sense, and gives the VM the name it has.

A mark in a folder of another name was copied there by somebody, and one that no agent of ours could have written proves nothing
either; such a VM is left alone (I3).
"""

from applecart.api.names import golden_vm
from applecart.errors import Permanent
from applecart.tart.home import LocalVm
from applecart.tart.images import parse
from applecart.tart.marks import GoldenMark


def golden_mark(vm: LocalVm) -> GoldenMark | None:
    return (
        vm.mark if isinstance(vm.mark, GoldenMark) and _makes_sense(vm.mark) and golden_vm(vm.mark.digest) == vm.name else None
    )


def _makes_sense(mark: GoldenMark) -> bool:
    try:
        return parse(mark.digest).digest_name == mark.digest and all(parse(image) for image in mark.images)
    except Permanent:
        return False
