"""What a guest sees of the host: folders by name, and what it leaves in the one called `status`.

A guest may also be hostile: it then leaves links, pipes and endless files where the host expects plain ones.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from applecart.sim.tart import refusals
from applecart.sim.tart.guest_rules import Hostile
from applecart.sim.tart.store import remove, stamp

HUGE_BYTES = 8 << 20  # more than anybody should read
LONGEST_ENV_BYTES = 1 << 20


class Share(msgspec.Struct, frozen=True):
    name: str
    path: Path
    is_read_only: bool


def parse_share(text: str) -> Share:
    """`[name:]path[:ro,tag=T]`. Anything else after the last colon is part of the path, which then does not exist."""
    parts = text.split(":")
    is_read_only = False
    words = parts[-1].split(",")
    if len(parts) > 1 and all(word == "ro" or word.startswith("tag=") for word in words):
        is_read_only = "ro" in words
        parts.pop()
    name, path = (parts[0], ":".join(parts[1:])) if len(parts) > 1 else ("", parts[0])
    share = Share(name, Path(path).absolute(), is_read_only)
    if "\0" in path or not share.path.is_dir():
        raise refusals.Refused(refusals.OTHER, f"failed to share directory {path!r}: it doesn't exist or is not a directory")
    return share


def environment(shares: Mapping[str, Share]) -> dict[str, str]:
    """What the guest finds in `env/tuist.env`, line by line."""
    share = shares.get("env")
    if share is None:
        return {}
    try:
        text = (share.path / "tuist.env").read_bytes()[:LONGEST_ENV_BYTES].decode(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value.replace("\\n", "\n").replace("\\r", "\r") for name, _, value in pairs}


class StatusShare:
    """Where the guest leaves its log and exit code; harmless when the host gave it none."""

    def __init__(self, shares: Mapping[str, Share], hostile: Hostile | None) -> None:
        share = shares.get("status")
        self._folder = share.path if share and not share.is_read_only else None
        self._hostile = hostile

    def log(self, lines: list[str], at: datetime) -> None:
        if self._folder is None or self._hostile or not lines:
            return
        path = self._folder / "runner.log"
        with suppress(OSError):  # the host took the share away
            with path.open("ab") as file:
                file.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
            stamp(path, at)

    def report(self, code: int | None, at: datetime) -> None:
        if self._folder is None:
            return
        with suppress(OSError):
            if self._hostile:
                for name in ("runner-rc", "runner.log"):
                    _leave(self._folder / name, self._hostile)
            elif code is not None:
                path = self._folder / "runner-rc"
                path.write_text(f"{code}\n")
                stamp(path, at)


def _leave(path: Path, what: Hostile) -> None:
    remove(path)
    if what == "symlink":
        path.symlink_to("/etc/hosts")
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"9" * HUGE_BYTES)
