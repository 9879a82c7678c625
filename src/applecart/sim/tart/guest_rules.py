"""How guests behave: `sim/guests.json` and `guests` in `faults.json`, rules of which the last that fits wins field by field.

A rule names VMs or images by glob. What a rule leaves open comes from the rule before it, then from the pace of the host. For
demos a guest also listens to three variables of its own environment.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from applecart.sim.tart.host_facts import Pace, Period, Seconds
from applecart.sim.tart.json_file import load

RUN_SECONDS = "APPLECART_SIM_RUN_SECONDS"
EXIT_CODE = "APPLECART_SIM_EXIT_CODE"
LOG = "APPLECART_SIM_LOG"
LONGEST_RUN_S = 30 * 86_400.0

Hostile = Literal["symlink", "fifo", "huge", "folder"]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One guest, settled."""

    boot_s: float
    shutdown_s: float
    log_every_s: float
    runs_s: float | None = None  # None: until somebody stops it
    exit_code: int | None = 0  # None: it reports none
    log: tuple[str, ...] = ()
    never_gets_ip: bool = False
    crashes_after_s: float | None = None
    crash_text: str = "Internal virtualization error. The virtual machine stopped unexpectedly."
    ignores_shutdown: bool = False
    no_agent: bool = False  # `tart exec` finds nobody
    network_is_dead: bool = False  # it has an address, and nothing reaches it
    disk_used_percent: int = 35
    writes_bytes: int = 2 * 10**9  # to its own disk while it boots; blocks that no clone shares
    writes_hostile: Hostile | None = None  # instead of plain files in its status share
    serves: dict[str, str] = {}  # port to what it answers to any GET; 9091 has metrics anyway


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    vm: str = "*"
    image: str = "*"
    boot_s: Seconds | UnsetType = UNSET
    shutdown_s: Seconds | UnsetType = UNSET
    log_every_s: Period | UnsetType = UNSET
    runs_s: Seconds | UnsetType | None = UNSET
    exit_code: Annotated[int, Meta(ge=0, le=255)] | UnsetType | None = UNSET
    log: tuple[str, ...] | UnsetType = UNSET
    never_gets_ip: bool | UnsetType = UNSET
    crashes_after_s: Seconds | UnsetType | None = UNSET
    crash_text: str | UnsetType = UNSET
    ignores_shutdown: bool | UnsetType = UNSET
    no_agent: bool | UnsetType = UNSET
    network_is_dead: bool | UnsetType = UNSET
    disk_used_percent: Annotated[int, Meta(ge=0, le=100)] | UnsetType = UNSET
    writes_bytes: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    writes_hostile: Hostile | UnsetType | None = UNSET
    serves: dict[str, str] | UnsetType = UNSET

    def fits(self, vm: str, image: str) -> bool:
        return fnmatchcase(vm, self.vm) and (fnmatchcase(image, self.image) or fnmatchcase(image.partition("@")[0], self.image))

    def says(self) -> dict[str, object]:
        said = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("vm", "image")}
        return {name: value for name, value in said.items() if value is not UNSET}


def read_rules(sim: Path) -> list[Rule]:
    return load(sim / "guests.json", list[Rule]) or []


def behaviour(rules: Iterable[Rule], pace: Pace, vm: str, image: str, env: Mapping[str, str]) -> Behaviour:
    said: dict[str, object] = {"boot_s": pace.boot_s, "shutdown_s": pace.shutdown_s, "log_every_s": pace.log_every_s}
    for rule in rules:
        if rule.fits(vm, image):
            said |= rule.says()
    said |= from_environment(env)
    return msgspec.convert(said, Behaviour)


def from_environment(env: Mapping[str, str]) -> dict[str, object]:
    """A value that cannot be meant ends the guest's job as it would any program: a sentence in its log, and 2."""
    said: dict[str, object] = {}
    if text := env.get(RUN_SECONDS):
        try:
            said["runs_s"] = runs_s = float(text)
        except ValueError:
            runs_s = -1.0
        if not 0 <= runs_s <= LONGEST_RUN_S:
            return _refused(f"{RUN_SECONDS} is {text!r}; give seconds from 0 to {LONGEST_RUN_S:.0f}")
    if code := env.get(EXIT_CODE):
        if not (code.isascii() and code.isdecimal() and len(code) <= 3 and int(code) <= 255):
            return _refused(f"{EXIT_CODE} is {code!r}; give a number from 0 to 255")
        said["exit_code"] = int(code)
    if LOG in env:
        said["log"] = tuple(env[LOG].split("\n"))
    return said


def _refused(sentence: str) -> dict[str, object]:
    return {"runs_s": 0.0, "exit_code": 2, "log": (sentence,)}
