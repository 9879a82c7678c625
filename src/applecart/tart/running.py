"""Which VMs run, told by processes. Pure.

A VM's address answers long after it halted, and its lock can read as free while it runs, so the process is what counts. Names
match exactly: `runner` is not `runner-2`. Our own supervisor carries the whole command line in its arguments and is none.
"""

import re
from collections.abc import Iterable

from applecart.tart.mac import Process

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


def _vm_of(command: str, binary: str) -> str | None:
    program, is_run, rest = command.partition(" run ")
    if not is_run or not (program == binary or _is_program(program, binary.rpartition("/")[2])):
        return None
    words = iter(rest.split())
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _is_program(program: str, name: str) -> bool:
    words = program.split()
    if len(words) == 2 and _INTERPRETER.fullmatch(words[0]):
        words = words[1:]
    return len(words) == 1 and words[0].rpartition("/")[2] == name
