"""Makes the table of types from the Go declarations: every struct that a kind of ours can reach, facts only.

The result is plain data for `src/applecart/embedded/structure/types.json`; `structure/types.py` documents its form. It is
sorted and complete, so that the same modules always give the same bytes.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from tools.api_types.go_source import GoField, GoType
from tools.api_types.kinds import KINDS, KINDS_OF_EVERY_GROUP, META, SPECIAL

_PREFIXES = (
    "k8s.io/apiextensions-apiserver/pkg/apis/",
    "k8s.io/apimachinery/pkg/apis/",
    "k8s.io/apimachinery/pkg/api/",
    "k8s.io/apimachinery/pkg/util/",
    "k8s.io/apimachinery/pkg/",
    "k8s.io/api/",
)
_NAME = re.compile(r"(?<![\w.])(?:(\w+)\.)?(\w+)")
_BUILT_IN = {"string", "bool", "int", "int32", "int64", "uint8", "uint32", "uint64", "float64", "byte", "map"}

Packages = Callable[[str], dict[str, GoType]]
Table = dict[str, Any]


class Unreadable(Exception):
    """A type that a kind of ours needs is written in a way that the reader does not know."""


def short_package(path: str) -> str:
    """`k8s.io/api/core/v1` is `core/v1`."""
    for prefix in _PREFIXES:
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return path


def build(packages: Packages) -> Table:
    """The whole table. `packages` reads a package by its import path."""
    maker = _Maker(packages)
    kinds = {f"{version}/{kind}": maker.reach(package, kind) for version, (package, names) in KINDS.items() for kind in names}
    shared = {kind: maker.reach(META, kind) for kind in KINDS_OF_EVERY_GROUP}
    maker.reach("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "JSONSchemaProps")
    maker.finish()
    return {"kinds": kinds, "shared": shared, "named": maker.named, "structs": maker.structs}


class _Maker:
    def __init__(self, packages: Packages) -> None:
        self._packages = packages
        self._open: list[GoType] = []
        self._seen: set[str] = set()
        self.named: dict[str, Any] = {}
        self.structs: dict[str, Any] = {}

    def reach(self, package: str, name: str) -> str:
        """Take a type into the table, with everything below it; the name it has there."""
        short = f"{short_package(package)}.{name}"
        if short not in self._seen and short not in SPECIAL:
            self._seen.add(short)
            self._open.append(self._packages(package)[name])
        return short

    def finish(self) -> None:
        while self._open:
            declared = self._open.pop()
            if declared.unreadable:
                raise Unreadable(f"{declared.package}.{declared.name}: {declared.unreadable}")
            short = f"{short_package(declared.package)}.{declared.name}"
            if declared.underlying:
                note = ["message"] if declared.is_nullable_message else []
                self.named[short] = [self._expression(declared.underlying, declared), *note]
            else:
                self.structs[short] = self._struct(declared)

    def _struct(self, declared: GoType) -> Table:
        rows = [self._row(each, declared) for each in declared.fields if each.tags.get("json") != "-"]
        is_atomic = "atomic" in declared.markers.get("structType", [])
        return {**({"atomic": True} if is_atomic else {}), "fields": rows}

    def _row(self, each: GoField, declared: GoType) -> list[Any]:
        name, *options = each.tags.get("json", "").split(",")
        omit = "zero" if "omitzero" in options else "empty" if "omitempty" in options else ""
        row = [name, self._expression(each.type, declared), _number(each.tags.get("protobuf", "")), omit]
        extra = _extra(each)
        return [*row, extra] if extra else row

    def _expression(self, text: str, declared: GoType) -> str:
        """A Go type with every name made absolute and short."""

        def absolute(match: re.Match[str]) -> str:
            alias, name = match[1], match[2]
            if alias is None and name in _BUILT_IN:
                return name
            return self.reach(declared.imports[alias] if alias else declared.package, name)

        return _NAME.sub(absolute, text)


def _number(tag: str) -> int:
    """The protobuf field number; 0 for what protobuf does not carry."""
    parts = tag.split(",")
    return int(parts[1]) if len(parts) > 1 else 0


def _extra(each: GoField) -> Table:
    """What patches and field ownership know of a field."""
    markers = each.markers
    extra: Table = {}
    if strategy := each.tags.get("patchStrategy"):
        extra["patch"] = strategy
    if key := each.tags.get("patchMergeKey"):
        extra["key"] = key
    if kinds := markers.get("listType"):
        extra["list"] = kinds[-1]
    if keys := markers.get("listMapKey"):
        extra["keys"] = keys
    if kinds := markers.get("mapType") or markers.get("structType"):
        extra["atomic"] = kinds[-1] == "atomic"  # "granular" overrules what the struct says of itself
    if (defaults := markers.get("default")) and not defaults[-1].startswith("ref("):
        extra["default"] = json.loads(defaults[-1])
    return extra


def encode(table: Table) -> str:
    """One struct per line: small, and a change of one type is a change of one line."""

    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    def section(name: str) -> str:
        lines = [f"{json.dumps(key)}:{compact(table[name][key])}" for key in sorted(table[name])]
        return f"{json.dumps(name)}:{{\n" + ",\n".join(lines) + "\n}"

    return "{\n" + ",\n".join(section(name) for name in ("kinds", "shared", "named", "structs")) + "\n}\n"
