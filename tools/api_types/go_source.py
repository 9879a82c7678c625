"""Reads type declarations out of gofmt'd Go source: structs with their tags and markers, and named types.

Only what the published API types use is understood. A struct with a line that is neither a comment nor a field says so, and
nobody may use it: a table that silently lacks a field would lose users' data.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SKIPPED = ("_test.go", "generated.pb.go", "_swagger_doc_generated.go")
_TYPE = re.compile(r"^type (\w+) (.+?)(?:\s+//.*)?$")
_FIELD = re.compile(r"^(?:(?P<name>\w+)\s+)?(?P<type>[\w.\[\]*]+)(?:\s+`(?P<tags>[^`]*)`)?(?:\s+//.*)?$")
_TAG = re.compile(r'(\w+):"([^"]*)"')
_MARKER = re.compile(r"^// \+(\w+)=(.*)$")
_BLOCK_COMMENT = re.compile(r"^\s*/\*.*?\*/", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r'^(?:(\w+) )?"([^"]+)"$')


@dataclass(frozen=True)
class GoField:
    name: str  # of the Go field; an embedded one has its type's
    type: str
    tags: dict[str, str]
    markers: dict[str, list[str]]


@dataclass(frozen=True)
class GoType:
    package: str  # import path
    name: str
    imports: dict[str, str]
    markers: dict[str, list[str]]
    fields: tuple[GoField, ...] = ()
    underlying: str = ""  # of a named type that is no struct
    unreadable: str = ""  # the first line of a struct that is beyond this reader

    @property
    def is_nullable_message(self) -> bool:
        """A named list that protobuf carries as a message of its own."""
        return "true" in self.markers.get("nullable", [])


@dataclass
class _Reader:
    package: str
    imports: dict[str, str] = field(default_factory=dict)
    markers: dict[str, list[str]] = field(default_factory=dict)

    def read(self, lines: Iterator[str]) -> Iterator[GoType]:
        for line in lines:
            if line.startswith("import ("):
                self._read_imports(lines)
            elif line.startswith("//"):
                self._note(line)
            elif match := _TYPE.match(line):
                yield self._declared(match[1], match[2], lines)
                self.markers = {}
            elif line.strip():  # markers may stand apart from their type by an empty line
                self.markers = {}

    def _read_imports(self, lines: Iterator[str]) -> None:
        for line in lines:
            if line == ")":
                return
            if match := _IMPORT.match(line.strip()):
                self.imports[match[1] or match[2].rsplit("/", 1)[1] if "/" in match[2] else match[2]] = match[2]

    def _note(self, line: str) -> None:
        if match := _MARKER.match(line.replace("+protobuf.nullable", "+nullable")):
            self.markers.setdefault(match[1], []).append(match[2])

    def _declared(self, name: str, rest: str, lines: Iterator[str]) -> GoType:
        markers, self.markers = self.markers, {}
        if rest == "struct {":
            fields, unreadable = self._fields(lines)
            return GoType(self.package, name, self.imports, markers, tuple(fields), unreadable=unreadable)
        if rest.startswith(("struct{", "interface")):
            return GoType(self.package, name, self.imports, markers)
        return GoType(self.package, name, self.imports, markers, underlying=rest.removeprefix("= "))

    def _fields(self, lines: Iterator[str]) -> tuple[list[GoField], str]:
        self.markers = {}
        fields: list[GoField] = []
        unreadable = ""
        for line in lines:
            if line == "}":
                break
            text = line.strip()
            if text.startswith("//"):
                self._note(text)
            elif match := _FIELD.match(text):
                name = match["name"] or match["type"].removeprefix("*").rsplit(".", 1)[-1]
                fields.append(GoField(name, match["type"], dict(_TAG.findall(match["tags"] or "")), self.markers))
                self.markers = {}
            else:
                unreadable = unreadable or text
        return fields, unreadable


def read_package(folder: Path, package: str) -> dict[str, GoType]:
    """All types of a package by name."""
    found: dict[str, GoType] = {}
    for file in sorted(folder.glob("*.go")):
        if file.name.endswith(_SKIPPED) or file.name.startswith("zz_"):
            continue
        for declared in _Reader(package).read(iter(_BLOCK_COMMENT.sub("", file.read_text()).splitlines())):
            found[declared.name] = declared
    return found
