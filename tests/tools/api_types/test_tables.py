"""The table of types as it is made, and the committed one against the published modules."""

import json
import re
from pathlib import Path

import pytest

from applecart.embedded.structure.types import SPECIALS
from tools.api_types.__main__ import TABLE, generated, module_folders, package_folder
from tools.api_types.go_source import GoField, GoType
from tools.api_types.kinds import CORE, KINDS, META, SPECIAL
from tools.api_types.tables import Unreadable, build, encode, short_package

ROOT = Path(__file__).parents[3]


def tiny(package: str) -> dict[str, GoType]:
    """Every kind has one field of a type that has one marker."""
    part = GoType(package, "Part", {}, {"structType": ["atomic"]}, (GoField("Name", "string", {"json": "name"}, {}),))
    tags = {"json": "parts,omitempty", "protobuf": "bytes,7,rep,name=parts", "patchStrategy": "merge,retainKeys"}
    markers = {"listType": ["map"], "listMapKey": ["name"]}
    fields = (GoField("Parts", "[]*Part", tags, markers), GoField("Hidden", "Secretive", {"json": "-"}, {}))
    names = {name for path, kinds in KINDS.values() if path == package for name in kinds}
    names |= {"DeleteOptions", "Status", "JSONSchemaProps"}
    return {"Part": part} | {name: GoType(package, name, {}, {}, fields) for name in names}


def test_a_field_becomes_a_row_of_facts() -> None:
    table = build(tiny)
    assert table["structs"]["core/v1.Pod"]["fields"] == [
        ["parts", "[]*core/v1.Part", 7, "empty", {"patch": "merge,retainKeys", "list": "map", "keys": ["name"]}]
    ]
    assert table["structs"]["core/v1.Part"] == {"atomic": True, "fields": [["name", "string", 0, ""]]}
    assert table["kinds"]["v1/Pod"] == "core/v1.Pod"


def test_the_same_types_give_the_same_text() -> None:
    assert encode(build(tiny)) == encode(build(tiny))
    assert json.loads(encode(build(tiny))) == build(tiny)


def test_a_type_that_cannot_be_read_is_never_left_out() -> None:
    def broken(package: str) -> dict[str, GoType]:
        return {name: GoType(package, name, {}, {}, unreadable="Call func()") for name in tiny(package)}

    with pytest.raises(Unreadable, match=r"Call func\(\)"):
        build(broken)


def test_packages_are_named_shortly() -> None:
    assert [short_package(path) for path in (CORE, META, "k8s.io/apimachinery/pkg/api/resource")] == [
        "core/v1",
        "meta/v1",
        "resource",
    ]


def test_the_server_knows_every_special_type_that_the_table_names() -> None:
    """Otherwise a value would be read as the struct that its Go type is."""
    text = (ROOT / TABLE).read_text()
    used = {name for name in SPECIAL if re.search(rf'[*\]"]{re.escape(name)}"', text)}
    assert used <= SPECIALS


@pytest.mark.kubernetes
def test_the_committed_table_is_what_the_published_modules_say() -> None:
    assert (ROOT / TABLE).read_text() == generated()


@pytest.mark.kubernetes
def test_field_numbers_are_those_of_the_published_protocol() -> None:
    """The numbers come from Go tags; the .proto files say them a second time."""
    folders = module_folders()
    structs = json.loads((ROOT / TABLE).read_text())["structs"]
    compared = 0
    for package in {package for package, _ in KINDS.values()} | {META}:
        text = (package_folder(folders, package) / "generated.proto").read_text()
        for message, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            row = structs.get(f"{short_package(package)}.{message}")
            if row is None:
                continue
            numbers = {int(number) for number in re.findall(r" = (\d+)(?: \[.*\])?;", body)}
            assert {field[2] for field in row["fields"] if field[2]} == numbers, message
            compared += 1
    assert compared > 200
