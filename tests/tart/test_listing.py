import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.tart.failures import TartFailed
from applecart.tart.listing import ListedVm, VmInfo, parse_get, parse_list

ROW = {
    "Source": "local",
    "Name": "runners-a",
    "Disk": 90,
    "Size": 72,
    "Accessed": "2026-08-21T10:00:00Z",
    "Running": True,
    "State": "running",
}


def listed(*rows: Any) -> list[ListedVm]:
    return parse_list(json.dumps(rows, indent=2).encode())


def test_a_row_of_the_list_is_a_vm_with_its_name() -> None:
    """Incident 20: the name was dropped, so nothing that was found again ever matched a Pod."""
    at = datetime(2026, 8, 21, 10, tzinfo=UTC)
    assert listed(ROW) == [ListedVm("runners-a", "local", 72.0, 90.0, True, "running", at)]


@pytest.mark.parametrize(("size", "gb"), [(72, 72.0), ("72.660", 72.66), (72.66, 72.66), ("", 0.0), ("big", 0.0), ("nan", 0.0)])
def test_a_size_is_a_number_in_every_spelling(size: object, gb: float) -> None:
    """Incident 24: one command says 72 and the other "72.660"; the wrong reader made every look at a golden fail."""
    assert listed({**ROW, "Size": size})[0].size_gb == gb
    assert parse_get(json.dumps({"Size": size, "State": "stopped"}).encode(), "vm-1").size_gb == gb


def test_an_older_version_says_size_on_disk_and_no_access_time() -> None:
    row = {name: value for name, value in ROW.items() if name not in ("Size", "Accessed")} | {"SizeOnDisk": 31}
    [vm] = listed(row)
    assert (vm.size_gb, vm.used_at) == (31.0, None)


def test_fields_nobody_knows_and_escaped_slashes_do_no_harm() -> None:
    [vm] = parse_list(b'[{"Name": "ghcr.io\\/x\\/y@sha256:ab", "Source": "OCI", "Colour": {"deep": [1]}}]')
    assert (vm.name, vm.is_running, vm.state) == ("ghcr.io/x/y@sha256:ab", False, "stopped")


def test_get_tells_what_the_vm_is() -> None:
    answer = {"OS": "darwin", "CPU": 4, "Memory": 8192, "Disk": 50, "DiskFormat": "raw", "Size": "21.500", "Running": False}
    assert parse_get(json.dumps(answer).encode(), "vm-1") == VmInfo("darwin", 4, 8192, 50.0, 21.5, False, "stopped")


@pytest.mark.parametrize("out", [b"", b"{}", b"[", b"[1]", b'[{"Size": 1}]', b"\xff\xfe", b"Source Name\n", b"[" * 100_000])
def test_an_answer_that_is_no_such_json_is_a_sentence(out: bytes) -> None:
    with pytest.raises(TartFailed, match="tart list did not answer with the JSON we know"):
        parse_list(out)


@pytest.mark.parametrize("size", ["1" + "0" * 400, '"1e400"', '"many"', "-1", "null"])
def test_a_size_that_is_none_is_unknown(size: str) -> None:
    assert [row.size_gb for row in parse_list(f'[{{"Name": "vm-1", "Size": {size}}}]'.encode())] == [0.0]
    assert parse_get(f'{{"CPU": {size.replace("null", "0")}}}'.encode(), "vm-1").cpu == 0


@given(st.binary(max_size=300))
def test_any_bytes_are_a_value_or_a_sentence(out: bytes) -> None:
    for parse in (parse_list, lambda it: parse_get(it, "vm-1")):
        with suppress(TartFailed):
            parse(out)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(ROW)), inner, max_size=7),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_value_or_a_sentence(value: object) -> None:
    out = json.dumps(value).encode()
    for parse in (parse_list, lambda it: parse_get(it, "vm-1")):
        with suppress(TartFailed):
            parse(out)
