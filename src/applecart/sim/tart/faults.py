"""Switchable faults: `faults.json` in the home says which command goes wrong, how and when, and which guests misbehave.

A fault strikes before a command has done anything, after it has done everything, or during its work: then it holds the locks
that Tart holds there, and leaves half of what it makes or removes. How often each has struck is kept beside the simulation's
own files, so that `times` also counts across processes; writing `faults.json` anew starts over. What cannot be meant is refused
with a sentence, because a fault that silently never strikes proves nothing.
"""

import signal
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from applecart.sim.tart.arguments import VERBS
from applecart.sim.tart.guest_rules import Rule
from applecart.sim.tart.host_facts import Seconds
from applecart.sim.tart.json_file import load, save
from applecart.sim.tart.store import Store

Kind = Literal["hang", "fail", "crash", "no-space", "slow", "kill-agent"]
When = Literal["before", "during", "after"]
SIGTRAP = 5  # how a Swift program dies of its own mistakes

DURING = ("clone", "delete", "pull", "run")  # the commands whose work can be struck in the middle
_HOST_PROGRAMS = ("ifconfig", "killall", "launchctl", "ps", "sudo", "sw_vers", "sysctl", "tailscale", "true", "uname")
_CACHE_PROGRAMS = ("chmod", "cp", "curl", "ditto", "hdiutil", "stat")
PROGRAMS = frozenset({"*", *VERBS, *_HOST_PROGRAMS, *_CACHE_PROGRAMS})

_ENDING = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 SYS PIPE ALRM TERM XCPU XFSZ VTALRM PROF"
ENDING_SIGNALS = frozenset(int(signal.Signals[f"SIG{name}"]) for name in _ENDING.split())  # on macOS and on Linux


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    on: str  # the verb, or `*`
    kind: str  # one of `Kind`
    vm: str = "*"  # a glob; any of the command's names may match
    when: str = "before"  # one of `When`
    times: Annotated[int, Meta(ge=1)] | None = 1  # None: always
    code: Annotated[int, Meta(ge=1, le=255)] = 1  # of `fail`
    text: str = ""  # of `fail` and `no-space`
    signal: int = SIGTRAP  # of `crash`
    bytes_per_s: Annotated[int, Meta(ge=1)] = 10**6  # of `slow`, for pull and push
    seconds: Seconds = 0.0  # of `slow`, for every command
    with_grandchild: bool = False  # of `hang`: one that holds the output open

    def __post_init__(self) -> None:
        if self.on not in PROGRAMS:
            raise ValueError(f"nothing is called {self.on!r}; `on` is `*` or one of {', '.join(sorted(PROGRAMS - {'*'}))}")
        for field, value, known in (("kind", self.kind, get_args(Kind)), ("when", self.when, get_args(When))):
            if value not in known:
                raise ValueError(f"`{field}` is one of {', '.join(known)}, not {value!r}")
        if self.when == "during" and self.on not in ("*", *DURING):
            raise ValueError(f"{self.on} cannot be struck `during` its work; only {', '.join(DURING)} can")
        if self.signal not in ENDING_SIGNALS:
            raise ValueError(f"signal {self.signal} ends no process; a crash is one of {sorted(ENDING_SIGNALS)}")


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    faults: list[Fault] = []
    guests: list[Rule] = []  # after those of `sim/guests.json`, so that they win


class _Struck(msgspec.Struct):
    of: str = ""  # which faults.json was counted
    times: dict[str, int] = {}


def read_faults(store: Store) -> Faults | None:
    return load(store.home / "faults.json", Faults)


def due(store: Store, verb: str, names: Sequence[str], when: When) -> Fault | None:
    """The first fault for this moment, counted as having struck."""
    found = read_faults(store)
    if found is None:
        return None
    version = sha256(msgspec.json.encode(found)).hexdigest()
    counted = store.sim / "faults-struck.json"
    struck = load(counted, _Struck) or _Struck()
    if struck.of != version:
        struck = _Struck(of=version, times={})
    for number, fault in enumerate(found.faults):
        so_far = struck.times.get(str(number), 0)
        if fault.when == when and _is_about(fault, verb, names) and (fault.times is None or so_far < fault.times):
            struck.times[str(number)] = so_far + 1
            save(counted, struck)
            return fault
    return None


def _is_about(fault: Fault, verb: str, names: Sequence[str]) -> bool:
    return fault.on in (verb, "*") and (fault.vm == "*" or any(fnmatchcase(name, fault.vm) for name in names))
