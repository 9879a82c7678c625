"""How a VM ended: what its process, its guest and its log say, put together and written down before anything is removed.

A `tart run` that failed before its guest began has used no disk, so it raises and is tried again with a new clone; everything
else is an end. Guest files are read the careful way and only here, while they still exist. The guest's log is kept for people;
that it cannot be kept never holds up the end.
"""

import asyncio
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from applecart.api.pods import Pod
from applecart.kubelet.entry import Exit, JournalEntry, Stage
from applecart.kubelet.guest.exit_report import LOG_FILE, read_report, resolve_exit
from applecart.kubelet.guest.guest_files import read_tail
from applecart.kubelet.guest.printed import fit_to_show
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.booting import drop_run
from applecart.kubelet.pods.host import Host
from applecart.observe.logs import logger
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

    async def record(self, entry: JournalEntry, end: RunEnd | None, because: Exit | None = None) -> JournalEntry:
        """The end in the journal. `because`, or else what the entry says, is the agent's own reason to end the VM; a guest that
        reported speaks first, and a VM that had ended before there was that reason ended by itself."""
        share = GuestShare(self.host.userdata, entry.vm, self.host.files)
        with share.masked(entry.secret_names):
            await self._keep_guest_log(entry, share.status_folder)
            return self._record(entry, end, because, share.status_folder)

    def _record(self, entry: JournalEntry, end: RunEnd | None, because: Exit | None, status: Path) -> JournalEntry:
        report = read_report(status)
        because = because or entry.because
        at = end.at if end else None
        if because is None or report.code is not None or _is_before(at, because):
            now = self.host.clock.now()
            found = resolve_exit(end or UNRECORDED, report, self._last_lines(entry), entry.started_at, now)
        else:
            found = msgspec.structs.replace(because, finished_at=at or because.finished_at)
        about = log.bind(entry.key, uid=entry.uid, vm=entry.vm)
        if report.log:
            about.info("runner log", text=fit_to_show("\n".join(report.log)))
        about.info("a VM ended", phase=found.phase, reason=found.container_reason, code=found.code)
        return self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.ENDED, exit=found, trouble=None))

    def refuse_false_start(self, pod: Pod, entry: JournalEntry, end: RunEnd) -> None:
        """Raises when the VM never began: then its disk is as good as new, and it is made again."""
        if not end.code or end.code >= 128 or entry.booted_at is not None:
            return
        took = (end.at or self.host.clock.now()) - (entry.started_at or self.host.clock.now())
        if took > START_WINDOW:
            return
        failure = start_failure("\n".join(self._last_lines(entry)), end.code, entry.vm)
        self.host.metrics.boot_refused(pod)
        self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.CLONING, started_at=None))
        drop_run(self.host, entry)
        raise failure

    def _last_lines(self, entry: JournalEntry) -> tuple[str, ...]:
        """What `tart run` printed last."""
        try:
            with open(self.host.logs / f"{entry.vm}.log", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
                return tuple(file.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:])
        except OSError:
            return ()

    async def _keep_guest_log(self, entry: JournalEntry, status: Path) -> None:
        """For `kubectl logs` after the share is gone. Before the end is written down, so that a crash loses neither."""
        kept = kept_log(self.host, entry)
        if kept is None:
            return
        try:
            self.host.files.remove(kept)  # of an earlier Pod of this name
            found = read_tail(status, LOG_FILE, KEPT_LOG_BYTES)
            if found is not None:
                text = found.whole_lines.decode("utf-8", "replace")
                shown = await asyncio.to_thread(fit_to_show, text)  # a second of work; the heartbeat must not wait for it
                self.host.files.write(kept, shown.encode())
        except OSError as error:
            log.warning("the log of a guest cannot be kept", object=entry.key, vm=entry.vm, path=str(kept), why=str(error))


def _is_before(at: datetime | None, because: Exit) -> bool:
    return at is not None and because.finished_at is not None and at < because.finished_at


def kept_log(host: Host, entry: JournalEntry) -> Path | None:
    """Where the log of an ended guest is. None of one that never ran: a file of that name is of an earlier Pod."""
    return host.logs / f"{entry.vm}.guest.log" if entry.started_at is not None else None
