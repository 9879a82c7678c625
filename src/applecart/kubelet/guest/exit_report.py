"""How a guest ended: what it reported itself, what its hypervisor says, and which of them to believe.

A guest halts on every path, and Tart then exits with 0 whatever happened inside, so the guest's own report comes first. One
that is torn, out of range or not a number is no report; a wrong 0 would hide a failure. An end that nobody reported is never
called a success unless the hypervisor saw a clean halt, and even then its reason says that the outcome is unknown. The report
must be read before the VM's folders go.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from applecart.api.pods import FAILED, SUCCEEDED
from applecart.api.reasons import kubelet as reasons
from applecart.kubelet.entry import Exit
from applecart.kubelet.guest.guest_files import GuestFile, read_tail
from applecart.kubelet.guest.printed import fit_to_show
from applecart.tart.mac import RunEnd

CODE_FILE = "runner-rc"
LOG_FILE = "runner.log"
LARGEST_CODE = 255
CODE_BYTES = 16  # three digits and a line end; more is no code
LOG_BYTES = 64 << 10  # of the end of the guest's log: enough to see why, little enough to log
LOG_LINES = 200
UNKNOWN_CODE = 255  # of an end without a code: not 0, and no shell's signal
FIRST_SIGNAL_CODE = 128  # a program killed by signal N has code 128 + N
LAST_SIGNAL = 64
LONGEST_MESSAGE_CHARS = 2000  # people read the beginning; the whole log is elsewhere

_CODE = re.compile(rb"(0|[1-9][0-9]{0,2})[ \t\r\n]*")
_GUEST_ERROR = re.compile(r"virtual machine due to error|network attachment .*disconnected with error")  # Tart then exits 0


class ExitReport(msgspec.Struct, frozen=True):
    """What the guest left in its `status` folder."""

    code: int | None = None  # None: unreported
    reported_at: datetime | None = None
    log: tuple[str, ...] = ()


def read_report(status_folder: Path) -> ExitReport:
    found = read_tail(status_folder, CODE_FILE, CODE_BYTES)
    code = parse_code(found)
    log = read_tail(status_folder, LOG_FILE, LOG_BYTES)
    return ExitReport(code, found.modified_at if found and code is not None else None, last_lines(log))


def parse_code(file: GuestFile | None) -> int | None:
    """A whole number from 0 to 255; anything else is unreported."""
    found = _CODE.fullmatch(file.data) if file is not None and file.is_whole else None
    code = int(found[1]) if found else None
    return code if code is not None and code <= LARGEST_CODE else None


def last_lines(file: GuestFile | None) -> tuple[str, ...]:
    """The last lines of a log."""
    return tuple(file.whole_lines.decode("utf-8", "replace").splitlines()[-LOG_LINES:]) if file is not None else ()


def guest_error(vm_log: Iterable[str]) -> str:
    """The last line in which Tart says that the guest stopped because of an error; empty when none does."""
    return next((line.strip() for line in reversed(list(vm_log)) if _GUEST_ERROR.search(line)), "")


def resolve_exit(end: RunEnd, report: ExitReport, vm_log: tuple[str, ...], started_at: datetime | None, now: datetime) -> Exit:
    """What the Pod's status will say. `vm_log` is what `tart run` printed last, in this run."""
    finished_at = _finished_at(end, report, started_at, now)
    if report.code is not None:
        return _reported(report.code, finished_at)
    reason = reasons.RUN_FAILED.name
    if end.code:
        signal = end.code - FIRST_SIGNAL_CODE if 0 < end.code - FIRST_SIGNAL_CODE <= LAST_SIGNAL else 0
        how = f"was killed by signal {signal}" if signal else f"exited with code {end.code}"
        return _failed(
            reason, _with_log(f"tart run {how} and the guest reported nothing", vm_log), end.code, signal, finished_at
        )
    error = guest_error(vm_log)
    if error:
        return _failed(reason, f"the guest stopped because of an error: {error}", UNKNOWN_CODE, 0, finished_at)
    reason = reasons.RUN_EXITED.name
    if end.code is None:
        message = "the VM ended while nobody watched and the guest reported nothing; how its job went is unknown"
        return _failed(reason, message, UNKNOWN_CODE, 0, finished_at)
    message = "the VM halted cleanly and the guest reported nothing; how its job went is unknown"
    return Exit(SUCCEEDED, reason, message, reason, 0, finished_at=finished_at)


def _reported(code: int, finished_at: datetime) -> Exit:
    if code == 0:
        return Exit(SUCCEEDED, "", "", reasons.COMPLETED.name, 0, finished_at=finished_at)
    return Exit(FAILED, "", f"the guest reported exit code {code}", reasons.ERROR.name, code, finished_at=finished_at)


def _failed(reason: str, message: str, code: int, signal: int, finished_at: datetime) -> Exit:
    return Exit(FAILED, reason, fit_to_show(message)[:LONGEST_MESSAGE_CHARS], reason, code, signal, finished_at)


def _with_log(message: str, vm_log: tuple[str, ...]) -> str:
    """The last lines matter most, so the cut is made at their beginning."""
    text = fit_to_show("\n".join(line for line in vm_log if line.strip()))
    return f"{message}; it printed last:\n{text[-LONGEST_MESSAGE_CHARS // 2 :]}" if text else message


def _finished_at(end: RunEnd, report: ExitReport, started_at: datetime | None, now: datetime) -> datetime:
    """Jobs are billed until here. The guest chooses the time of its report, so one outside of the VM's life is not believed."""
    if end.at is not None:
        return end.at
    said = report.reported_at
    return said if said is not None and (started_at is None or started_at <= said) and said <= now else now
