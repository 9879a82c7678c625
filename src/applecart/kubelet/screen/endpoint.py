"""Where a VM's screen is, and its password: read from what `tart run` printed into the VM's own log.

The log outlives the agent, so a new agent finds the screens of VMs that an earlier one started, and nothing is stored twice.
The last address counts, because a VM that is started again appends to its log. Only addresses of this Mac itself are taken,
and none without a password. What was found once is remembered when the log is cut.
"""

import re
from pathlib import Path

import msgspec

from applecart.kubelet.serve.log_files import LogFile
from applecart.secrets import Secret

LOOPBACK = "127.0.0.1"
BLOCK_BYTES = 64 << 10
LONGEST_LINE_BYTES = 4 << 10  # the line that matters has less than a hundred
_LINE = re.compile(rb"VNC server is running at vnc://[^\s:@/]*:([!-~]+)@127\.0\.0\.1:(\d{1,5})/?\s*")


class Endpoint(msgspec.Struct, frozen=True):
    port: int
    password: Secret


def parse_line(line: bytes) -> Endpoint | None:
    """None when it says nothing about a screen, or nothing usable."""
    found = _LINE.fullmatch(line)
    if found is None or not 1 <= int(found[2]) <= 65535:
        return None
    return Endpoint(int(found[2]), Secret(found[1].decode("ascii")))


class ScreenLog:
    """The log of one VM, each part of it read once."""

    def __init__(self, log: Path) -> None:
        self._file = LogFile((log.parent, log.name))
        self._rest = b""
        self._found: Endpoint | None = None

    def endpoint(self) -> Endpoint | None:
        """As the log says now."""
        if self._file.refresh():
            self._read()
        return self._found

    def close(self) -> None:
        self._file.close()

    def _read(self) -> None:
        file = self._file
        if not file.position:
            self._rest = b""
            file.position = file.begin
        while data := file.read(file.position, min(BLOCK_BYTES, file.size - file.position)):
            file.position += len(data)
            *lines, rest = (self._rest + data).split(b"\n")
            self._rest = rest[-LONGEST_LINE_BYTES:]
            for line in lines:
                self._found = parse_line(line) or self._found
