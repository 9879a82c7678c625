"""Find, read and merge kubeconfig files by kubectl's rules.

Of several files the first one that names a cluster, user or context wins it, and the first that sets current-context wins
that. Files of a list that do not exist are skipped. Each entry remembers its file, because relative paths in it start there
and because a person must be told where to look. What an entry means is the work of `context.py`: an entry that nobody
asks for may hold anything. Every complaint is a `BadInput` and never quotes the file's values (I9).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from applecart.errors import BadInput
from applecart.kube.auth.kubeconfig_entry import KubeconfigEntry, quoted

MAX_FILE_BYTES = 16 << 20  # a thousand clusters with their certificates; more is some other file
MAX_DEPTH = 64  # libyaml's composer recurses and would crash the process; kubeconfigs nest seven deep

_EVENT_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_EVENT_LOADER):  # type: ignore[misc]
    """Leaves dates as the text they are: no field of a kubeconfig is a date, and a token may look like one."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class Kubeconfig(msgspec.Struct, frozen=True):
    """One file, or several merged."""

    files: tuple[Path, ...]
    current_context: str = ""
    clusters: dict[str, KubeconfigEntry] = {}
    users: dict[str, KubeconfigEntry] = {}
    contexts: dict[str, KubeconfigEntry] = {}

    @property
    def place(self) -> str:
        return " and ".join(str(file) for file in self.files)


def default_path(home: Path) -> Path:
    return home / ".kube" / "config"


def listed_paths(environ: Mapping[str, str]) -> list[Path]:
    """The files that KUBECONFIG names, each once; none when it is unset or empty."""
    names = environ.get("KUBECONFIG", "").split(":")
    return list(dict.fromkeys(Path(name) for name in names if name))


def load(paths: Sequence[Path]) -> Kubeconfig:
    """The existing ones of these files, merged. A single file must exist."""
    existing = [path for path in paths if os.path.exists(path)] if len(paths) > 1 else list(paths)
    if not existing:
        listed = ", ".join(str(path) for path in paths)
        raise BadInput(f"none of the files that KUBECONFIG lists exists ({listed}); correct or unset it")
    return merge([parse(_read(path), path.absolute()) for path in existing])


def merge(configs: Sequence[Kubeconfig]) -> Kubeconfig:
    """One configuration in which the earlier file wins each entry."""

    def first_wins(maps: Iterable[dict[str, KubeconfigEntry]]) -> dict[str, KubeconfigEntry]:
        merged: dict[str, KubeconfigEntry] = {}
        for entries in maps:
            merged = {**entries, **merged}
        return merged

    return Kubeconfig(
        files=tuple(file for config in configs for file in config.files),
        current_context=next((config.current_context for config in configs if config.current_context), ""),
        clusters=first_wins(config.clusters for config in configs),
        users=first_wins(config.users for config in configs),
        contexts=first_wins(config.contexts for config in configs),
    )


def parse(text: bytes, file: Path) -> Kubeconfig:
    """One file's entries."""
    document = _yaml(text, file)
    if document is None:
        return Kubeconfig((file,))
    if not isinstance(document, dict):
        raise BadInput(f"{file} is not a kubeconfig; it must hold the fields clusters, users and contexts")
    if document.get("kind", "Config") != "Config":
        raise BadInput(f"{file} is not a kubeconfig; its field kind must be Config")
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise BadInput(f"field current-context in {file} must be text; put it in quotes")
    return Kubeconfig(
        files=(file,),
        current_context=current,
        clusters=_entries(document, "clusters", "cluster", file),
        users=_entries(document, "users", "user", file),
        contexts=_entries(document, "contexts", "context", file),
    )


def _entries(document: dict[Any, Any], section: str, kind: str, file: Path) -> dict[str, KubeconfigEntry]:
    items = document.get(section)
    if items is None:
        return {}
    if not isinstance(items, list):
        raise BadInput(f"field {section} in {file} must be a list of entries with name and {kind}")
    entries: dict[str, KubeconfigEntry] = {}
    for position, item in enumerate(items):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not name:
            raise BadInput(f"field {section}[{position}] in {file} has no name; give the entry a name as text")
        if name in entries:
            raise BadInput(f"field {section} in {file} holds {kind} {quoted(name)} twice; remove or rename one")
        fields = item.get(kind)
        entries[name] = KubeconfigEntry(kind, name, file, {} if fields is None else fields)
    return entries


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise BadInput(f"the kubeconfig {path} does not exist; name an existing file") from None
    except OSError as error:
        raise BadInput(f"the kubeconfig {path} cannot be read ({error.strerror}); correct its path or permissions") from None
    if len(text) > MAX_FILE_BYTES:
        raise BadInput(f"the kubeconfig {path} is larger than {MAX_FILE_BYTES >> 20} MiB; name a kubeconfig")
    return text


def _yaml(text: bytes, file: Path) -> Any:
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_EVENT_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise BadInput(f"the kubeconfig {file} nests more than {MAX_DEPTH} levels deep; name a kubeconfig")
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise BadInput(f"the kubeconfig {file} is not valid YAML{where}; correct it there") from None
    # Scalars with a wrong explicit tag make PyYAML fail in whatever way their conversion does.
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        raise BadInput(f"the kubeconfig {file} is not valid YAML; correct it or name another file") from None
