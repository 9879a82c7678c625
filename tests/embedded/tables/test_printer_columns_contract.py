"""Printer columns beside those of a real server: one CRD with every tricky path and type, and objects that fit or do not."""

import re
from typing import Any

import pytest

from applecart.clock import SystemClock
from applecart.embedded.tables.printer_columns import table_of_columns
from tests.embedded.tables.real_api import TABLE, RealApi, settle
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

GROUP = "columns.example.com"
AGE = re.compile(r"^(\d+[smhdy])+$")
TYPES = ("string", "integer", "number", "boolean", "date")

PATHS = [
    ".",
    ".spec",
    ".spec.text",
    ".spec.missing.deeper",
    ".spec.nothing",
    ".spec.nothing.deeper",
    ".spec.list",
    ".spec.list[0].type",
    ".spec.list[-1].type",
    ".spec.list[].type",
    ".spec.list[9].type",
    ".spec.list[0:2].type",
    ".spec.list[1:].type",
    ".spec.list[:-1].type",
    ".spec.list[0:3:2].type",
    ".spec.list[2:1].type",
    ".spec.list[1:1].type",
    ".spec.list[::0].type",
    ".spec.list[*].type",
    ".spec.list[0,1].type",
    ".spec.text[0]",
    '.spec.list[?(@.type=="Ready")].status',
    ".spec.list[?(@.type=='Ready')].status",
    '.spec.list[?(@.type!="Ready")].type',
    ".spec.list[?(@.number>1)].type",
    ".spec.list[?(@.number>=2)].type",
    ".spec.list[?(@.number<2)].type",
    ".spec.list[?(@.number<=1)].type",
    ".spec.list[?(@.number==1.0)].type",
    ".spec.list[?(@.flag==true)].type",
    ".spec.list[?(@.flag>false)].type",
    ".spec.list[?(@.status)].type",
    ".spec.list[?(@.inner[0])].type",
    ".spec.list[?(@.type==@.status)].type",
    ".spec.map[?(@.a)].type",
    '.spec.list[?(@.type=="Re)ady")].type',
    ".metadata.labels.a\\.b/c",
    ".metadata.labels['a\\.b/c']",
    ".metadata.labels['a.b/c']",
    ".spec.map['plain']",
    ".spec['text','number']",
    "..number",
    ".spec..flag",
    ".spec.map.*",
    ".spec.number",
    ".spec.negative",
    ".spec.float",
    ".spec.whole",
    ".spec.tiny",
    ".spec.small",
    ".spec.huge",
    ".spec.million",
    ".spec.flag",
    ".spec.odd",
    ".spec.date",
    ".spec.offsetDate",
    ".spec.fractionDate",
    ".spec.noZoneDate",
    ".spec.zeroDate",
    ".spec.oldDate",
    ".spec.nullText",
    ".spec.empty",
    ".spec.text word",
    ".spec.text 5",
    '.spec.text "other"',
    ".spec.$.text",
    ".spec.@.text",
    "..",
]
OBJECTS: dict[str, dict[str, Any]] = {
    "whole": {
        "text": "some text",
        "nothing": None,
        "list": [
            {"type": "First", "status": "First", "number": 1, "flag": True, "inner": []},
            {"type": "Ready", "status": "True", "number": 2, "flag": False, "inner": [1]},
            {"type": "Re)ady", "number": 3},
        ],
        "map": {"plain": "value"},
        "number": 42,
        "negative": -42,
        "float": 2.5,
        "whole": 3.0,
        "tiny": 1.5e-7,
        "small": 0.00002,
        "huge": 1e30,
        "million": 1234567.5,
        "flag": True,
        "odd": {"b": ["<&>", 1.5, 1e-7, 1e21, 12345678.5, None, True], "a": '\u2028"\\\t'},
        "date": "2026-01-01T00:00:00Z",
        "offsetDate": "2026-01-01T00:00:00+02:00",
        "fractionDate": "2026-01-01T00:00:00.123456789Z",
        "noZoneDate": "2026-01-01T00:00:00",
        "zeroDate": "0001-01-01T00:00:00Z",
        "oldDate": "1700-01-01T00:00:00Z",
        "nullText": "null",
        "empty": "",
    },
    "nothing": {},
    "otherwise": {"text": ["a"], "list": {"type": "x"}, "map": [1], "number": "42", "flag": "true", "date": 5, "float": True},
}
UNREADABLE = [
    ".spec[",
    ".spec[a]",
    ".spec.list[?(@.a]",
    ".spec....x",
    '.spec "x',
    ".spec.list[?(@.a==1 && @.b==2)]",
    ".spec[0][b",
    ".spec #",
]


@pytest.fixture
def real(real_cluster: FullCluster) -> RealApi:
    return RealApi(real_cluster)


def install(real: RealApi, plural: str, columns: list[dict[str, Any]]) -> str:
    kind = plural.capitalize()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns,
    }
    real.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Cluster", "names": {"plural": plural, "kind": kind}, "versions": [version]},
        },
    )
    path = f"/apis/{GROUP}/v1/{plural}"
    settle(lambda: real.call("GET", path)[0] == 200)
    return path


def column(name: str, path: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, **more}


def without_ages(cells: list[Any]) -> list[Any]:
    return ["<age>" if isinstance(cell, str) and AGE.match(cell) else cell for cell in cells]


@pytest.mark.parametrize("kind", TYPES)
def test_every_path_gives_the_cell_of_the_real_server(real: RealApi, kind: str) -> None:
    columns = [column(f"C{number}", path, kind) for number, path in enumerate(PATHS)]
    path = install(real, f"tricky{kind}s", columns)
    for name, spec in OBJECTS.items():
        labels = {"labels": {"a.b/c": "labelled"}}
        api = {"apiVersion": f"{GROUP}/v1", "kind": f"Tricky{kind}s"}
        real.create(path, {**api, "metadata": {"name": name, **labels}, "spec": spec})
    table = table_of_columns(columns)
    theirs = real.get(path, TABLE)
    objects = {one["metadata"]["name"]: one for one in real.get(path)["items"]}
    now = SystemClock().now()
    for row in theirs["rows"]:
        name = row["object"]["metadata"]["name"]
        ours = table.cells(objects[name], now)
        pairs = zip(["name", *PATHS], without_ages(ours), without_ages(row["cells"]), strict=True)
        # Maps have no order on the real server, so that "everything below" begins anywhere.
        different = [(name, *pair) for pair in pairs if pair[1] != pair[2] and pair[0] not in (".spec.map.*", "..number")]
        assert different == []


def test_columns_have_the_names_formats_and_descriptions_of_the_real_server(real: RealApi) -> None:
    columns = [
        column("Described", ".spec.a", description="A sentence.", priority=1),
        column("Formatted", ".spec.a", "integer", format="int32"),
        column("Bare", ".spec.a", "date"),
    ]
    theirs = real.get(install(real, "described", columns), TABLE)["columnDefinitions"]
    ours = table_of_columns(columns).columns
    keys = ("name", "type", "format", "description", "priority")
    assert [tuple(getattr(one, key) for key in keys) for one in ours[1:]] == [
        tuple(one[key] for key in keys) for one in theirs[1:]
    ]
    assert (ours[0].name, ours[0].format) == (theirs[0]["name"], theirs[0]["format"])


def test_a_kind_without_columns_shows_its_age_as_on_the_real_server(real: RealApi) -> None:
    path = install(real, "bare", [])
    real.create(path, {"apiVersion": f"{GROUP}/v1", "kind": "Bare", "metadata": {"name": "one"}})
    theirs = real.get(path, TABLE)
    table = table_of_columns([])
    assert [(one.name, one.type, one.format) for one in table.columns] == [
        (one["name"], one["type"], one["format"]) for one in theirs["columnDefinitions"]
    ]
    ours = table.cells(real.get(path)["items"][0], SystemClock().now())
    assert without_ages(ours) == without_ages(theirs["rows"][0]["cells"])


@pytest.mark.parametrize(("number", "path"), list(enumerate(UNREADABLE)))
def test_a_path_that_cannot_be_read_ends_the_columns_as_on_the_real_server(real: RealApi, number: int, path: str) -> None:
    columns = [column("Good", ".spec.a"), column("Bad", path), column("After", ".spec.b")]
    theirs = real.get(install(real, f"unreadables{number}", columns), TABLE)["columnDefinitions"]
    assert [one["name"] for one in theirs] == [one.name for one in table_of_columns(columns).columns]
    assert [one["name"] for one in theirs] == ["Name", "Good"]
