r"""The file `tuist.env`, through which a guest gets its environment: one `NAME=value` per line, sorted, UTF-8.

A value cannot span lines, so a line feed is written as `\n` and a carriage return as `\r`. A backslash stands for itself unless
it would be read as the beginning of such an escape: before `n`, `r`, another backslash or a line break it is doubled. Guests
that know only `\n` and `\r` therefore still read every value right in which no backslash stands before one of those, and
`read_env_file` reads every value right.
"""

import re
from collections.abc import Mapping

from applecart.errors import BadInput
from applecart.kubelet.guest.expansion import Value, plain

_NAME = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_ESCAPED = re.compile(r"\\(?=[nr\\\n\r])|[\n\r]")
_ESCAPE = re.compile(r"\\([nr\\])")
_WRITTEN = {"\\": r"\\", "\n": r"\n", "\r": r"\r"}
_READ = {"\\": "\\", "n": "\n", "r": "\r"}


def is_variable_name(name: str) -> bool:
    """Whether a guest can set it. Kubernetes allows more on request (any printable character), which no shell could read."""
    return _NAME.fullmatch(name) is not None


def env_file(values: Mapping[str, Value]) -> bytes:
    """The content, secrets in clear text: to be written for the guest and kept nowhere else."""
    return "".join(f"{_checked(name)}={_line(name, value)}\n" for name, value in sorted(values.items())).encode()


def read_env_file(data: bytes) -> dict[str, str]:
    """What a guest makes of it; lines that are none of ours are left out."""
    lines = (line.partition("=") for line in data.decode("utf-8", "replace").split("\n"))
    return {name: _ESCAPE.sub(lambda found: _READ[found[1]], value) for name, equals, value in lines if equals}


def _checked(name: str) -> str:
    if not is_variable_name(name):
        raise BadInput(f"{name!r} is no name of a variable; use letters, digits, '_', '-' and '.', not starting with a digit")
    return name


def _line(name: str, value: Value) -> str:
    text = plain(value)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        del text  # or a traceback with locals would show it
        raise BadInput(f"the value of variable {name} is not text that a guest can read (it holds a NUL or half a character)")
    return _ESCAPED.sub(lambda found: _WRITTEN[found[0]], text)
