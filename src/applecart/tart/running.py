"""Which VMs run, told by processes. Pure.

A VM's address answers long after it halted, and its lock can read as free while it runs, so the process is what counts. Names
match exactly: `runner` is not `runner-2`. Our own supervisor carries the whole command line in its arguments and is none.
"""

import re
from collections.abc import Iterable
from pathlib import PurePath

from applecart.tart.mac import Process

TART = "tart"
# Options of `tart run` whose value is a word of its own; a person may put them before the name.
_VALUED = frozenset(
    {"--dir", "--disk", "--rosetta", "--root-disk-opts", "--serial-path", "--net-bridged", "--net-softnet-allow"}
    | {"--net-softnet-block", "--net-softnet-expose"}
)
_INTERPRETER = re.compile(r"(?:\S*/)?(?:python[\d.]*|(?:ba|da|z)?sh)")  # of a wrapper, and of the simulated Tart


def running_vms(processes: Iterable[Process], binary_name: str) -> dict[str, Process]:
    """By VM name. `binary_name` is the last part of the binary's path, or the path itself."""
    found: dict[str, Process] = {}
    for process in processes:
        if (name := _vm_of(process.command, binary_name)) is not None:
            found.setdefault(name, process)
    return found


def tart_words(command: str, binary: str) -> list[str] | None:
    """What Tart was told, when the command is a Tart: called as we call it, or by its own name, which a wrapper becomes."""
    if command.startswith(f"{binary} "):  # its folder may have a blank in its name
        return command[len(binary) :].split()
    words = command.split()
    if words and _INTERPRETER.fullmatch(words[0]):
        words = words[1:]
    return words[1:] if words and PurePath(words[0]).name in (PurePath(binary).name, TART) else None


def _vm_of(command: str, binary: str) -> str | None:
    told = tart_words(command, binary)
    if not told or told[0] != "run":
        return None
    words = iter(told[1:])
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None
