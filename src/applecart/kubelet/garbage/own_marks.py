"""Which VMs are a Pod's or a scratch VM: those whose mark gives the VM the name it has.

`tart rename`, and `tart export` with `tart import`, carry the mark along onto a VM that a person wanted to keep. Under another
name than its own a mark therefore proves nothing, and the VM is left alone (I3); `golden_marks.py` says the same of goldens.
"""

from applecart.api.names import pod_vm
from applecart.errors import BadInput
from applecart.kubelet.scratch_vm import VM_PREFIX
from applecart.tart.home import LocalVm
from applecart.tart.marks import PodMark, ScratchMark


def pod_mark(vm: LocalVm) -> PodMark | None:
    return vm.mark if isinstance(vm.mark, PodMark) and _name_of(vm.mark) == vm.name else None


def scratch_mark(vm: LocalVm) -> ScratchMark | None:
    return vm.mark if isinstance(vm.mark, ScratchMark) and vm.name.startswith(VM_PREFIX) else None


def _name_of(mark: PodMark) -> str | None:
    try:
        return pod_vm(mark.namespace, mark.name)
    except BadInput:
        return None  # no agent of ours wrote it
