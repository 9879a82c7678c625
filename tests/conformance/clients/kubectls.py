"""Which kubectls there are: the built ones, those on PATH, and those that APPLECART_KUBECTLS names.

A kubectl of a cloud's tools may only choose another one by the server's version; such a dispatcher is never run, those beside
it are. One of each minor is enough, and the built ones come first.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.kubernetes.recipe import KUBES, BuildFailed, folder

OLDEST_MINOR = 29  # older ones need OpenAPI v2 for ten verbs
ASK_TIMEOUT_S = 20


@dataclass(frozen=True)
class Kubectl:
    """A program and the minor it calls itself; `built` ones are pinned, others are whatever this machine has."""

    program: Path
    minor: int
    built: bool

    @property
    def label(self) -> str:
        return f"1.{self.minor}" if self.built else f"1.{self.minor}-found"


@cache
def kubectls() -> tuple[Kubectl, ...]:
    built = tuple(one for program in _built() if (one := _asked(program, built=True)))
    found = [one for program in _found(os.environ) if (one := _asked(program, built=False))]
    return chosen((*built, *found))


def chosen(candidates: Iterable[Kubectl]) -> tuple[Kubectl, ...]:
    """The first of each minor that is new enough."""
    first: dict[int, Kubectl] = {}
    for one in candidates:
        if one.minor >= OLDEST_MINOR:
            first.setdefault(one.minor, one)
    return tuple(first.values())


def _built() -> list[Path]:
    try:
        return [program for kube in KUBES if (program := folder(kube) / "kubectl").exists()]
    except BuildFailed:
        return []


def _found(env: Mapping[str, str]) -> list[Path]:
    named = [Path(part) for part in env.get("APPLECART_KUBECTLS", "").split(os.pathsep) if part]
    places = [Path(part) for part in env.get("PATH", "").split(os.pathsep) if part]
    on_path = [place / "kubectl" for place in places if (place / "kubectl").exists()]
    beside = [one for program in on_path for one in sorted(program.resolve().parent.glob("kubectl.1.*"))]
    return list(dict.fromkeys([*named, *on_path, *beside]))


def minor_of(answer: str) -> int | None:
    """The minor in what `kubectl version` says, None when it is a dispatcher or says something else."""
    try:
        version = str(json.loads(answer)["clientVersion"]["gitVersion"])
    except (ValueError, KeyError, TypeError):
        return None
    found = re.match(r"v1\.(\d+)\.", version)
    return int(found[1]) if found and "dispatcher" not in version else None


def _asked(program: Path, *, built: bool) -> Kubectl | None:
    command = [str(program), "version", "--client", "--output=json"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, env={"HOME": "/nonexistent"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    minor = minor_of(said.stdout)
    return Kubectl(program, minor, built) if minor is not None else None
