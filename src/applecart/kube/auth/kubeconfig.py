"""Find, read and merge kubeconfig files by kubectl's rules.

Of several files the first one that names a cluster, user or context wins it, and the first that sets current-context wins
that. Files of a list that do not exist are skipped. Each entry remembers its file, because relative paths in it start there
and because a person must be told where to look. What an entry means is the work of `context.py`: an entry that nobody
asks for may hold anything. Every complaint is a `BadInput` and never quotes the file's values (I9).
"""

import base64
import binascii
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from applecart.errors import BadInput

T = TypeVar("T")

_SPOKEN = {"str": "text; put it in quotes", "bool": "true or false", "array": "a list", "object": "a map of fields"}

MAX_FILE_BYTES = 16 << 20  # a thousand clusters with their certificates; more is some other file
MAX_DEPTH = 64  # libyaml's composer recurses and would crash the process; kubeconfigs nest seven deep

_EVENT_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class KubeconfigEntry(msgspec.Struct, frozen=True):
    """Not yet looked into: `decoded` does."""

    kind: str
    name: str
    file: Path
    fields: Any

    def __repr__(self) -> str:
        return f"KubeconfigEntry({self.place})"  # the fields hold keys and tokens

    @property
    def place(self) -> str:
        return f"{self.kind} {quoted(self.name)} in {self.file}"

    def field(self, name: str) -> str:
        return f"field {name} of {self.place}"

    def path(self, value: str) -> Path:
        """A path written in this entry."""
        return self.file.parent / value

    def decoded(self, kind: type[T]) -> T:
        """The fields as a struct."""
        fields = _without_nulls(self.fields) if isinstance(self.fields, dict) else self.fields
        try:
            return msgspec.convert(fields, kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise BadInput(_type_sentence(str(error), self)) from None

    def pem(self, field: str, path: str, data: str) -> tuple[str, str]:
        """The PEM of a field that names a file, or of its `-data` twin, which wins; and how to speak of the one used."""
        if data:
            written_in = self.field(f"{field}-data")
            try:
                content = base64.b64decode("".join(data.split()), validate=True)
            except (binascii.Error, ValueError):
                raise BadInput(f"{written_in} is not base64; encode it, or name a file in {field} instead") from None
        elif path:
            written_in = f"{self.field(field)} (file {self.path(path)})"
            try:
                content = self.path(path).read_bytes()
            except OSError as error:
                reason = error.strerror or "unreadable"
                raise BadInput(f"{written_in} cannot be read ({reason}); correct the path or its permissions") from None
            except ValueError:
                raise BadInput(f"{self.field(field)} is no path; name a file") from None
        else:
            return "", self.field(f"{field}-data")
        if not content.isascii() or b"-----BEGIN " not in content:
            raise BadInput(f"{written_in} is not PEM; it must hold a text that starts with -----BEGIN")
        return content.decode("ascii"), written_in


def quoted(name: str) -> str:
    """A name in a sentence, on one line whatever it holds."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _without_nulls(fields: dict[Any, Any]) -> dict[Any, Any]:
    """Without the fields that kubectl writes as null when they are empty."""
    return {
        name: _without_nulls(value) if name == "exec" and isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }


def _type_sentence(complaint: str, entry: KubeconfigEntry) -> str:
    """msgspec's "Expected `str`, got `int` - at `$.token`" for a person."""
    problem, _, where = complaint.partition(" - at ")
    wanted = problem.removeprefix("Expected ").partition(",")[0].strip("`").removesuffix(" | null")
    path = where.strip("`").removeprefix("$.")
    if not where.startswith("`$."):
        return f"{entry.place} must be a map of named fields; write it as kubectl does"
    if wanted in _SPOKEN:
        return f"{entry.field(path)} must be {_SPOKEN[wanted]}"
    return f"{entry.field(path)} is missing or has the wrong form; write it as kubectl does"


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
