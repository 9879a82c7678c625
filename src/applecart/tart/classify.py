"""What a Tart command that failed means. Pure: exit code and text in, one of `failures.py` out.

Absence is only what Tart says in so many words, with its code and the name that was asked for: any other failure must never
read as "there is no such VM", or a clone would replace one that runs. Text nobody knows is a `TartFailed`.
"""

import re

from applecart.errors import ApplecartError
from applecart.secrets import redact
from applecart.tart.failures import (
    ImageMissing,
    NoAddress,
    NoGuiSession,
    NoSpace,
    RegistryBusy,
    RegistryRefused,
    TartFailed,
    TartRefused,
    TooManyVms,
    VmAlreadyRunning,
    VmMissing,
    VmNotRunning,
)
from applecart.tart.mac import Ended
from applecart.tart.screen_password import without_screen_password

QUOTED_CHARS = 300  # of Tart's text; an event or a status must stay readable
LOOKED_AT_CHARS = 16 << 10  # for the 300 that are quoted, with room for white space and for the longest secret
VM_STATE_CODE = 2  # missing, not running and already running share it
USAGE_CODE = 64
REGISTRY_OPS = ("pull", "push")

_MISSING = re.compile(r'the specified VM "([^"\n]*)" does not exist')
_NO_SPACE = re.compile(r"isn['’]t enough (?:free )?space|database or disk is full|no space left on device", re.IGNORECASE)  # noqa: RUF001
_NO_SESSION = re.compile(r"VZErrorDomain Code=-9\b|Failed to create new HostKey", re.IGNORECASE)
_TOO_SMALL = re.compile(r"LessThanMinimalResourcesError|VM should have .{0,64} at minimum")
_TOO_MANY = re.compile(r"exceeds the system limit", re.IGNORECASE)
_STATUS = re.compile(r"(?:\bcode: |\bHTTP(?:/[\d.]+)?(?: status(?: code)?)?:? |\bstatus code:? )(\d{3})\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"\bunauthorized\b|\bforbidden\b|(?<!permission )\bdenied\b|\bkeychain\b|\bAuthFailed\b|invalid credentials", re.IGNORECASE
)
_UNKNOWN = re.compile(r"manifest[ _]unknown|name[ _]unknown|\bnot found\b", re.IGNORECASE)
_BUSY = re.compile(
    r"\btoo many requests\b|\btoomanyrequests\b|service unavailable|bad gateway|gateway time-?out", re.IGNORECASE
)
_GUEST_ERROR = re.compile(r"guest has stopped the virtual machine due to error: *(.*)")
_NO_AGENT = re.compile(r"using its control socket\b|is the Tart Guest Agent running\?")


def failure(op: str, target: str, ended: Ended) -> ApplecartError:
    """`target` is the VM or the image as it was handed to Tart."""
    text = f"{ended.err.decode('utf-8', 'replace')}\n{ended.out.decode('utf-8', 'replace')}"
    return _judge(op, target, ended.code, text)


def start_failure(log_tail: str, code: int | None, vm: str = "?") -> ApplecartError:
    """Of a `tart run` that ended at once; its words are at the end of its log."""
    if code == 0 and (said := guest_error(log_tail)):
        return TartFailed(f"VM {vm} stopped at once: {said}", code=0)
    return _judge("run", vm, 1 if code is None else code, log_tail)


def exec_failure(vm: str, ended: Ended) -> ApplecartError | None:
    """None when the guest's command ran, whatever its code. A guest can print anything: nothing it says makes its VM absent."""
    text = (ended.err + ended.out).decode("utf-8", "replace").strip()
    if ended.code == VM_STATE_CODE and text in (f'VM "{vm}" is not running', f'the specified VM "{vm}" does not exist'):
        return VmNotRunning(f"VM {vm} does not run, so nothing can be run in it", ended.code)
    if ended.code == 1 and _NO_AGENT.search(text):
        return TartFailed(f"VM {vm} does not answer: its guest agent does not run (yet): {quoted(text)}", ended.code)
    return None


def guest_error(log_tail: str) -> str | None:
    """Why the guest died, when it did: Tart ends with code 0 all the same."""
    found = _GUEST_ERROR.findall(log_tail)
    return quoted(found[-1]) or "no reason given" if found else None


def quoted(text: str) -> str:
    """Tart's words, fit for an event: the end of them, on one line, without secrets."""
    words = " ".join(without_screen_password(redact(_end_of(text))).split())
    return words if len(words) <= QUOTED_CHARS else "..." + words[-(QUOTED_CHARS - 3) :]


def _end_of(text: str) -> str:
    """As much as is looked at: what a guest prints must not stop the agent. A word that the cut splits may be half a secret."""
    if len(text) <= LOOKED_AT_CHARS:
        return text
    first, *rest = text[-LOOKED_AT_CHARS:].split(None, 1) or [""]
    return rest[0] if rest else first


def _judge(op: str, target: str, code: int, text: str) -> ApplecartError:
    said = quoted(text) or "it said nothing"
    if code == USAGE_CODE:
        return TartRefused(f"tart {op} refuses its arguments for {target}, and would again: {said}")
    if op == "set" and _TOO_SMALL.search(text):
        return TartRefused(f"VM {target} is smaller than its image allows; raise the Pod's resources: {said}")
    if code == VM_STATE_CODE and (state := _vm_state(op, target, text)):
        return state
    if _NO_SPACE.search(text):
        return NoSpace(f"the host's disk is full, so tart {op} of {target} failed: {said}", code)
    if _NO_SESSION.search(text):
        return NoGuiSession(f"VM {target} cannot run: nobody is logged in on the host's screen: {said}", code)
    if _TOO_MANY.search(text):
        return TooManyVms(f"VM {target} cannot run now: the host runs as many macOS guests as Apple allows: {said}", code)
    if f'VM "{target}" is running' in text:
        return VmAlreadyRunning(f"VM {target} runs, so tart {op} refused it: {said}", code)
    if "no IP address found" in text:
        return NoAddress(f"VM {target} has no address", code)
    speaks_to_registry = op in REGISTRY_OPS or (op == "clone" and "/" in target)  # no local VM has a slash in its name
    if speaks_to_registry and (answer := _registry_answer(op, target, code, text, said)):
        return answer
    if code > 128:
        return TartFailed(f"tart {op} of {target} was ended by signal {code - 128}: {said}", code)
    return TartFailed(f"tart {op} of {target} failed with code {code}: {said}", code)


def _vm_state(op: str, target: str, text: str) -> ApplecartError | None:
    if target in _MISSING.findall(text):
        return VmMissing(f"there is no VM {target}, so tart {op} did nothing", VM_STATE_CODE)
    if f'VM "{target}" is not running' in text:
        return VmNotRunning(f"VM {target} does not run, so tart {op} did nothing", VM_STATE_CODE)
    if f'VM "{target}" is already running' in text:
        return VmAlreadyRunning(f"VM {target} runs already, so tart {op} did nothing", VM_STATE_CODE)
    return None


def _registry_answer(op: str, target: str, code: int, text: str, said: str) -> ApplecartError | None:
    statuses = {int(status) for status in _STATUS.findall(text)}
    if 429 in statuses or any(500 <= status <= 599 for status in statuses) or _BUSY.search(text):
        return RegistryBusy(f"the registry of {target} limits our rate or is out of order: {said}", code)
    if statuses & {401, 403} or _REFUSED.search(text):
        return RegistryRefused(
            f"the registry of {target} does not let us in; check the image pull Secret and the image's name: {said}", code
        )
    if 404 in statuses or _UNKNOWN.search(text):
        return ImageMissing(f"the registry has no image {target}; check its name and tag: {said}", code)
    return None
