"""How a VM ended: what its process, its guest and its log say, put together and written down before anything is removed.

A `tart run` that failed before its guest began has used no disk, so it raises and is tried again with a new clone; everything
else is an end. Guest files are read the careful way and only here, while they still exist.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from applecart.api.pods import Pod
from applecart.kubelet.entry import Entry, Exit, Stage
from applecart.kubelet.guest.exit_report import LOG_FILE, read_report, resolve_exit
from applecart.kubelet.guest.guest_files import read_tail
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.host import Host
from applecart.observe.logs import logger
from applecart.secrets import redact
from applecart.tart.classify import start_failure
from applecart.tart.mac import RunEnd

START_WINDOW = timedelta(seconds=15)  # a start that fails does so within a second; a loaded host is slower
LOG_TAIL_BYTES = 16 << 10  # Tart prints a few lines, also when it fails
LOG_LINES = 20
KEPT_LOG_BYTES = 4 << 20  # of a guest's own log
UNRECORDED = RunEnd(None, None)

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    host: Host

    def record(self, entry: Entry, end: RunEnd | None, because: Exit | None = None) -> Entry:
        """The end in the journal. `because` is the agent's own reason to end the VM; a guest that reported speaks first."""
        share = GuestShare(self.host.userdata, entry.vm, self.host.files)
        with share.masked(entry.secret_names):
            return self._record(entry, end, because, share.status_folder)

    def _record(self, entry: Entry, end: RunEnd | None, because: Exit | None, status: Path) -> Entry:
        report = read_report(status)
        if because is None or report.code is not None:
            now = self.host.clock.now()
            found = resolve_exit(end or UNRECORDED, report, self._last_lines(entry), entry.started_at, now)
        else:
            found = because
        self._keep_guest_log(entry, status)
        about = log.bind(entry.key, uid=entry.uid, vm=entry.vm)
        if report.log:
            about.info("runner log", text=redact("\n".join(report.log)))
        about.info("a VM ended", phase=found.phase, reason=found.container_reason, code=found.code)
        return self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.ENDED, exit=found, trouble=None))

    def refuse_false_start(self, pod: Pod, entry: Entry, end: RunEnd) -> None:
        """Raises when the VM never began: then its disk is as good as new, and it is made again."""
        if not end.code or end.code >= 128 or entry.booted_at is not None:
            return
        took = (end.at or self.host.clock.now()) - (entry.started_at or self.host.clock.now())
        if took > START_WINDOW:
            return
        failure = start_failure("\n".join(self._last_lines(entry)), end.code, entry.vm)
        self.host.metrics.boot_refused(pod)
        self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.CLONING))
        raise failure

    def _last_lines(self, entry: Entry) -> tuple[str, ...]:
        """What `tart run` printed last."""
        try:
            with open(self.host.logs / f"{entry.vm}.log", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
                return tuple(file.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:])
        except OSError:
            return ()

    def _keep_guest_log(self, entry: Entry, status: Path) -> None:
        """For `kubectl logs` after the share is gone."""
        found = read_tail(status, LOG_FILE, KEPT_LOG_BYTES)
        if found is not None:
            text = redact(found.data.decode("utf-8", "replace"))
            self.host.files.write(self.host.logs / f"{entry.vm}.guest.log", text.encode())
