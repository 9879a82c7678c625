"""Whether anything runs that a reboot would kill: a VM, an image push, a builder's job (I7).

Judged by command lines, and generously: a program that only looks like one of them keeps a host from a reboot, the opposite
ends somebody's job. A VM that was booted only to see whether the host can is nobody's work. Pure.
"""

import re
from collections.abc import Collection, Iterable

from applecart.tart.mac import Process

TART = "tart"  # the program that the installed wrapper turns into
NAMED = 3  # of what runs, in a sentence
_JOB = re.compile(r"(^|[/\s])Runner\.Worker(\s|$)")


def busy_with(processes: Iterable[Process], tart_name: str = TART, *, disregarding: Collection[str] = ()) -> list[str]:
    """What runs, in words; empty when the host is idle. VMs whose name is in `disregarding` may run."""
    programs = "|".join(re.escape(name) for name in {TART, tart_name})
    tart = re.compile(rf"(^|[/\s])(?:{programs}) (?P<what>run|push)((\s+-\S+)*\s+(?P<vm>[^\s-]\S*)|\s|$)")
    found: dict[str, None] = {}
    for process in processes:
        if match := tart.search(process.command):
            vm = match["vm"] or "unnamed"
            if match["what"] == "push":
                found[f"VM {vm} is being pushed"] = None
            elif vm not in disregarding:
                found[runs(vm)] = None
        elif _JOB.search(process.command):
            found["a job of the host's own runner"] = None
    return sorted(found)


def runs(vm: str) -> str:
    return f"VM {vm} runs"


def in_words(found: list[str]) -> str:
    more = len(found) - NAMED
    return ", ".join(found[:NAMED]) + (f" and {more} more" if more > 0 else "")
