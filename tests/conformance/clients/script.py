"""How a person's session with kubectl is written down: steps, what each must say, and what happens meanwhile.

A script runs on two servers and its answers are compared, so a step names only what cannot be compared: its exit code, and
words that must be in the answer so that two equal failures never pass for a success. `{ns}` is the script's own namespace.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True)
class Step:
    """One kubectl invocation."""

    arguments: str
    says: tuple[str, ...] = ()
    code: int = 0
    stdin: str = ""
    # What the editor that kubectl starts does: a sed expression.
    edit: str = ""
    # Invocations while this one runs: it has printed its first line before, and is ended after `lines` when it goes on.
    meanwhile: tuple[str, ...] = ()
    lines: int = 0
    # Whether both servers must print the same; False where they rightly differ, such as in how many kinds they serve.
    compared: bool = True
    # Again and again until it is as it must be: a real server tells of a new kind's schema a moment later.
    eventually: bool = False
    # Kubectl sorts or repeats what it has read in parallel.
    any_order: bool = False
    # The oldest kubectl minor that knows it.
    since: int = 29


@dataclass(frozen=True)
class Script:
    """Steps in a namespace that exists; the name is what they show."""

    name: str
    steps: tuple[Step, ...]

    def without_refusals(self) -> "Script":
        """Only what succeeds: refusals are the server's words, the same for every client."""
        return Script(self.name, tuple(one for one in self.steps if one.code == 0))

    def steps_for(self, minor: int) -> list[Step]:
        """Those that a kubectl of this minor knows."""
        return [one for one in self.steps if minor >= one.since]


def step(arguments: str, *says: str, **options: Any) -> Step:
    """A step with the words it must say."""
    body = options.pop("body", None)
    if body is not None:
        options["stdin"] = manifest(*body) if isinstance(body, tuple) else manifest(body)
    return Step(arguments, says, **options)


def manifest(*documents: dict[str, Any]) -> str:
    """As a file of manifests. Not JSON between dashes: an older kubectl reads a file that begins with { as JSON to its end."""
    return yaml.safe_dump_all(documents, sort_keys=False)


def document(kind: str, name: str, api_version: str = "v1", **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **rest.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def script(name: str, *steps: Step | Iterable[Step]) -> Script:
    flat = [one for part in steps for one in ([part] if isinstance(part, Step) else part)]
    return Script(name, tuple(flat))
