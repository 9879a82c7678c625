"""Files beside the VMs: what was staged for a guest, and what `tart run` printed.

Staged files hold secrets, so they go as soon as no journal entry and no VM needs them, whether or not a VM was ever made. Logs
stay a week after their last line, and one that grows without end is emptied down to one older part. Pure; `collect.py` looks
once more whether somebody needs them by now, and acts.
"""

from datetime import timedelta
from pathlib import Path

import msgspec

from applecart.kubelet.garbage.plan import Kind
from applecart.kubelet.garbage.scene import Found, Scene

STAGED_GRACE = timedelta(minutes=10)  # for whoever stages files before writing them down
LOG_RETENTION = timedelta(days=7)  # long enough to ask on Monday about Friday's job
ALL_LOGS_BYTES = 2 << 30  # of VMs that are gone: 500 Pods a day with 4 MB each would fill 14 GB in a week
LARGEST_LOG_BYTES = 64 << 20  # `tart run` prints a few lines; this much is a guest's serial console gone wild
LOG_SUFFIX = ".log"
OLDER_SUFFIX = ".log.1"
GUEST_PART = ".guest"  # the guest's own log, kept after its share went


class RemoveUserdata(msgspec.Struct, frozen=True):
    path: Path
    because: str
    kind: Kind = "userdata"

    @property
    def vm(self) -> str:
        return self.path.name


class RemoveLog(msgspec.Struct, frozen=True):
    path: Path
    because: str
    kind: Kind = "log"

    @property
    def vm(self) -> str:
        return (vm_of_log(self.path.name) or "").removesuffix(GUEST_PART)


class RotateLog(msgspec.Struct, frozen=True):
    """Keep the end of it as the older part, and empty it in place: its writer goes on appending to the same file."""

    path: Path
    older: Path


Leftover = RemoveUserdata | RemoveLog | RotateLog


def plan_leftovers(scene: Scene) -> list[Leftover]:
    vms = {vm.name for vm in scene.vms} | scene.entry_vms  # also VMs that are not ours: their agent may need the files

    def is_needed(vm: str) -> bool:
        return vm in vms or scene.is_in_use(vm)

    stale: list[Leftover] = [
        RemoveUserdata(found.path, f"there is no VM {found.path.name} and no Pod that needs it")
        for found in scene.userdata
        if not is_needed(found.path.name) and scene.now - found.changed_at > STAGED_GRACE
    ]
    of_gone: list[Found] = []
    for found in scene.logs:
        vm = vm_of_log(found.path.name)
        if vm is None:
            continue
        is_of_gone = not is_needed(vm.removesuffix(GUEST_PART))
        if is_of_gone and scene.now - found.changed_at > LOG_RETENTION:
            stale.append(RemoveLog(found.path, f"nothing was written to it since {found.changed_at:%Y-%m-%d}"))
        elif found.size_bytes > LARGEST_LOG_BYTES and found.path.name.endswith(LOG_SUFFIX):
            stale.append(RotateLog(found.path, found.path.with_name(vm + OLDER_SUFFIX)))
        elif is_of_gone:
            of_gone.append(found)
    return [*stale, *_beyond_all(of_gone)]


def _beyond_all(logs: list[Found]) -> list[Leftover]:
    """The oldest of those that do not fit together."""
    going: list[Leftover] = []
    kept_bytes = 0
    for found in sorted(logs, key=lambda log: (log.changed_at, log.path), reverse=True):
        kept_bytes += found.size_bytes
        if kept_bytes > ALL_LOGS_BYTES:
            going.append(RemoveLog(found.path, f"logs of VMs that are gone take more than {ALL_LOGS_BYTES >> 30} GiB"))
    return going


def vm_of_log(name: str) -> str | None:
    """None for a file that is not a VM's log."""
    for suffix in (OLDER_SUFFIX, LOG_SUFFIX):
        if name.endswith(suffix) and not name.startswith("."):
            return name.removesuffix(suffix) or None
    return None
