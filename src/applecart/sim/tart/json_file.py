"""The simulation's own JSON files: read with a sentence when somebody edited them wrongly, and replaced in one step."""

import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from applecart.sim.tart.refusals import OTHER, Refused

T = TypeVar("T")


def load(path: Path, kind: type[T]) -> T | None:
    """None when there is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise Refused(OTHER, f"simulated Tart: {path.name} cannot be used: {error}") from None


def save(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    fresh.replace(path)
