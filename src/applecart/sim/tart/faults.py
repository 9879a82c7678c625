"""Switchable faults: `faults.json` in the home says which command goes wrong, and how.

A fault strikes before a command has done anything or after it has done everything. How often each has struck is kept beside
the simulation's own files, so that `times` also counts across processes; writing `faults.json` anew starts over.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Literal

import msgspec

from applecart.sim.tart.json_file import load, save
from applecart.sim.tart.store import Store

Kind = Literal["hang", "fail", "crash", "no-space", "slow", "kill-agent"]
When = Literal["before", "after"]
SIGTRAP = 5  # how a Swift program dies of its own mistakes


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    on: str  # the verb, or `*`
    kind: Kind
    vm: str = "*"  # a glob; any of the command's names may match
    when: When = "before"
    times: int | None = 1  # None: always
    code: int = 1  # of `fail`
    text: str = ""  # of `fail` and `no-space`
    signal: int = SIGTRAP  # of `crash`
    bytes_per_s: int = 10**6  # of `slow`, for pull and push
    seconds: float = 0.0  # of `slow`, for every command
    with_grandchild: bool = False  # of `hang`: one that holds the output open


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    faults: list[Fault] = []


class _Struck(msgspec.Struct):
    of: str = ""  # which faults.json was counted
    times: dict[str, int] = {}


def strike(store: Store, verb: str, names: Sequence[str], when: When) -> Fault | None:
    """The first fault that is due, counted as having struck."""
    path = store.home / "faults.json"
    found = load(path, Faults)
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
