"""The rows of built-in kinds, on objects that a real server is not needed for; the contract tests compare the rest with one."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.tables.built_in import TABLES, table_of
from tests.embedded.tables.documents import documents

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
META = {"name": "one", "creationTimestamp": "2026-06-01T11:00:00Z"}
RBAC = "rbac.authorization.k8s.io"

ROWS: list[tuple[str, str, dict[str, Any], list[Any]]] = [
    ("", "namespaces", {"status": {"phase": "Active"}}, ["one", "Active", "60m"]),
    ("", "secrets", {"type": "Opaque", "data": {"a": "MQ==", "b": "Mg=="}}, ["one", "Opaque", 2, "60m"]),
    ("", "configmaps", {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["one", 2, "60m"]),
    ("", "serviceaccounts", {}, ["one", "60m"]),
    ("coordination.k8s.io", "leases", {"spec": {"holderIdentity": "me"}}, ["one", "me", "60m"]),
    ("coordination.k8s.io", "leases", {}, ["one", "", "60m"]),
    ("node.k8s.io", "runtimeclasses", {"handler": "tart"}, ["one", "tart", "60m"]),
    ("scheduling.k8s.io", "priorityclasses", {"value": 7, "globalDefault": True}, ["one", 7, True, "60m", ""]),
    ("policy", "poddisruptionbudgets", {"spec": {"minAvailable": "5%"}}, ["one", "5%", "N/A", 0, "60m"]),
    ("policy", "poddisruptionbudgets", {"spec": {"maxUnavailable": 0}}, ["one", "N/A", "0", 0, "60m"]),
    (RBAC, "roles", {"rules": []}, ["one", "2026-06-01T11:00:00Z"]),
    ("example.com", "unknowns", {}, ["one", "2026-06-01T11:00:00Z"]),
    (
        RBAC,
        "rolebindings",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "ann"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "n"},
                {"kind": "User", "name": "bob"},
                {"kind": "Other", "name": "x"},
            ],
        },
        ["one", "Role/r", "60m", "ann, bob", "", "n/robot"],
    ),
    (
        "",
        "nodes",
        {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        ["one", "NotReady,SchedulingDisabled", "<none>", "60m", "", "<none>", "<none>", *["<unknown>"] * 3],
    ),
    ("", "nodes", {}, ["one", "Unknown", "<none>", "60m", "", "<none>", "<none>", *["<unknown>"] * 3]),
    (
        "",
        "events",
        {
            "type": "Warning",
            "reason": "R",
            "involvedObject": {"kind": "Pod", "name": "p"},
            "message": " m\n",
            "eventTime": "2026-06-01T11:59:00Z",
        },
        ["60s", "Warning", "R", "pod/p", "", "", "m", "60s", 1, "one"],
    ),
    (
        "events.k8s.io",
        "events",
        {
            "type": "Normal",
            "reason": "R",
            "regarding": {"kind": "Node"},
            "note": "m",
            "reportingController": "c",
            "reportingInstance": "i",
            "eventTime": "2026-06-01T11:00:00Z",
            "series": {"count": 4, "lastObservedTime": "2026-06-01T11:59:30Z"},
        },
        ["30s", "Normal", "R", "node", "", "c, i", "m", "60m", 4, "one"],
    ),
    (
        "",
        "services",
        {
            "spec": {
                "type": "LoadBalancer",
                "externalIPs": ["192.0.2.1"],
                "ports": [{"port": 80, "protocol": "TCP", "nodePort": 31000}],
            }
        },
        ["one", "LoadBalancer", "<none>", "192.0.2.1", "80:31000/TCP", "60m", "<none>"],
    ),
    (
        "",
        "services",
        {"spec": {"type": "LoadBalancer"}},
        ["one", "LoadBalancer", "<none>", "<pending>", "<none>", "60m", "<none>"],
    ),
    ("", "services", {}, ["one", "", "<none>", "<unknown>", "<none>", "60m", "<none>"]),
]


@pytest.mark.parametrize(("group", "plural", "members", "cells"), ROWS)
def test_an_object_looks_so(group: str, plural: str, members: dict[str, Any], cells: list[Any]) -> None:
    assert table_of(group, plural).cells({"metadata": META, **members}, NOW) == cells


def test_every_table_is_looked_at_here_or_has_a_test_of_its_own() -> None:
    seen = {(group, plural) for group, plural, *_ in ROWS}
    assert set(TABLES) - seen == {("", "pods"), (RBAC, "clusterrolebindings")}


def test_a_secret_shows_how_many_members_it_has_and_none_of_them() -> None:
    cells = table_of("", "secrets").cells(
        {"metadata": META, "data": {"password": "aHVzaA=="}, "stringData": {"x": "hush"}}, NOW
    )
    assert not any("hush" in str(cell) or "aHVzaA" in str(cell) or "password" in str(cell) for cell in cells)


def test_an_object_that_cannot_be_read_still_shows_its_name() -> None:
    for group, plural in (("", "nodes"), ("", "pods"), ("", "events")):
        table = table_of(group, plural)
        broken = {"metadata": {"name": "odd"}, "spec": 5, "status": 5, "source": 5}
        cells = dict(zip([column.name for column in table.columns], table.cells(broken, NOW), strict=True))
        assert cells.pop("Name") == "odd"
        assert set(cells.values()) == {None}


@given(st.sampled_from(sorted(TABLES)), documents())
def test_every_document_has_a_row_in_every_table(which: tuple[str, str], document: dict[str, Any]) -> None:
    table = table_of(*which)
    assert len(table.cells(document, NOW)) == len(table.columns)
    assert len(table_of("", "").cells(document, NOW)) == 2
