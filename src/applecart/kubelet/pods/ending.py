"""How a VM ended: what its process, its guest and its log say, put together and written down before anything is removed.

A `tart run` that failed before its guest began has used no disk, so it raises and is tried again with a new clone; everything
else is an end. Guest files are read the careful way and only here, while they still exist.
"""

from dataclasses import dataclass
from datetime import timedelta

import msgspec

from applecart.kubelet.entry import Entry, Exit, Stage
from applecart.kubelet.guest.exit_report import ExitReport, resolve_exit
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.host import Host
from applecart.observe.logs import logger
from applecart.tart.classify import guest_error, start_failure
from applecart.tart.mac import RunEnd

START_WINDOW = timedelta(seconds=15)  # a start that fails does so within a second; a loaded host is slower
LOG_TAIL_BYTES = 64 << 10

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    host: Host

    def record(self, entry: Entry, end: RunEnd | None, because: Exit | None = None) -> Entry:
        """The end in the journal. `because` is the agent's own reason to end the VM; a guest that reported speaks first."""
        report = self._report(entry)
        if because is None or report.code is not None:
            tail = self._log_tail(entry)
            now = self.host.clock.now()
            found = resolve_exit(end or RunEnd(None, None), report, guest_error(tail), self.log_path(entry), now)
        else:
            found = because
        self._keep_guest_log(entry, report)
        log.info("VM ended", object=entry.key, vm=entry.vm, phase=found.phase, code=found.code, reason=found.reason)
        return self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.ENDED, exit=found, trouble=None))

    def refuse_false_start(self, entry: Entry, end: RunEnd) -> None:
        """Raises when the VM never began: then its disk is as good as new, and it is made again."""
        if not end.code or end.code >= 128 or entry.booted_at is not None:
            return
        took = (end.at or self.host.clock.now()) - (entry.started_at or self.host.clock.now())
        if took > START_WINDOW or self._report(entry).code is not None:
            return
        failure = start_failure(self._log_tail(entry), end.code)
        self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.CLONING))
        raise failure

    def log_path(self, entry: Entry) -> str:
        return str(self.host.logs / f"{entry.vm}.log")

    def _report(self, entry: Entry) -> ExitReport:
        return GuestShare(self.host.userdata, entry.vm, self.host.files).exit_report()

    def _log_tail(self, entry: Entry) -> str:
        try:
            with open(self.log_path(entry), "rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - LOG_TAIL_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def _keep_guest_log(self, entry: Entry, report: ExitReport) -> None:
        """For `kubectl logs` after the share is gone."""
        if report.log:
            self.host.files.write(self.host.logs / f"{entry.vm}.guest.log", report.log)
