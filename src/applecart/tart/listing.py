"""The JSON of `tart list` and `tart get`, as values. Pure.

Tart writes the same size as 72 in one command and as "72.660" in the other, and its fields differ from version to version: only
the name is required. Text that is no such JSON is a sentence, never a traceback.
"""

from datetime import datetime
from typing import TypeVar

import msgspec

from applecart.tart.classify import quoted
from applecart.tart.failures import TartFailed

LOCAL = "local"
QUOTED_BYTES = 200  # of an answer that is no JSON
T = TypeVar("T")
Number = int | float | str


class ListedVm(msgspec.Struct, frozen=True):
    name: str
    source: str
    size_gb: float  # on disk, decimal
    disk_gb: float
    is_running: bool
    state: str
    used_at: datetime | None


class VmInfo(msgspec.Struct, frozen=True):
    os: str
    cpu: int
    memory_mb: int
    disk_gb: float
    size_gb: float
    is_running: bool
    state: str


class _Row(msgspec.Struct, rename="pascal"):
    name: str
    source: str = LOCAL
    disk: Number = 0
    size: Number | None = None
    size_on_disk: Number | None = None
    accessed: str = ""
    running: bool = False
    state: str = ""


class _Info(msgspec.Struct):
    os: str = msgspec.field(name="OS", default="")
    cpu: Number = msgspec.field(name="CPU", default=0)
    memory: Number = msgspec.field(name="Memory", default=0)
    disk: Number = msgspec.field(name="Disk", default=0)
    size: Number | None = msgspec.field(name="Size", default=None)
    size_on_disk: Number | None = msgspec.field(name="SizeOnDisk", default=None)
    running: bool = msgspec.field(name="Running", default=False)
    state: str = msgspec.field(name="State", default="")


def parse_list(out: bytes) -> list[ListedVm]:
    rows = _decoded(out, list[_Row], "tart list")
    return [
        ListedVm(
            row.name,
            row.source,
            _gb(row.size if row.size is not None else row.size_on_disk),
            _gb(row.disk),
            row.running or row.state == "running",
            row.state or ("running" if row.running else "stopped"),
            _instant(row.accessed),
        )
        for row in rows
    ]


def parse_get(out: bytes, vm: str) -> VmInfo:
    info = _decoded(out, _Info, f"tart get {vm}")
    size = info.size if info.size is not None else info.size_on_disk
    is_running = info.running or info.state == "running"
    state = info.state or ("running" if info.running else "stopped")
    return VmInfo(info.os, int(_gb(info.cpu)), int(_gb(info.memory)), _gb(info.disk), _gb(size), is_running, state)


def _decoded(out: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(out, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shown = quoted(out[:QUOTED_BYTES].decode("utf-8", "replace")) or "nothing"
        raise TartFailed(f"{what} did not answer with the JSON we know ({error}): {shown}", code=0) from None


def _gb(value: Number | None) -> float:
    """Unknown is 0: a size is shown and never decided on."""
    try:
        number = float(value or 0)
    except (ValueError, OverflowError):
        return 0.0
    return number if 0 <= number < 1e12 else 0.0


def _instant(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
