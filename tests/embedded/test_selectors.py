"""What a field selector requires."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.selectors import is_readable, required_values, written


@pytest.mark.parametrize(
    ("selector", "required"),
    [
        ("", {}),
        ("spec.nodeName=mac-1", {"spec.nodeName": "mac-1"}),
        ("spec.nodeName==mac-1", {"spec.nodeName": "mac-1"}),
        ("spec.nodeName!=mac-1", {}),
        ("a=1,spec.nodeName=mac-1,b!=2", {"a": "1", "spec.nodeName": "mac-1"}),
        ("spec.nodeName=a\\,b", {"spec.nodeName": "a,b"}),
        ("spec.nodeName=a\\=b", {"spec.nodeName": "a=b"}),
        ("spec.nodeName=a=b", {}),
        ("spec.nodeName", {}),
        ("spec.nodeName=mac-1,odd", {}),
        ("spec.nodeName=mac\\x", {}),
        ("spec.nodeName=mac\\", {}),
        ("spec.nodeName=", {"spec.nodeName": ""}),
    ],
)
def test_only_equalities_of_a_readable_selector_count(selector: str, required: dict[str, str]) -> None:
    assert required_values(selector) == required


@given(st.text(max_size=12))
def test_a_written_value_reads_back(value: str) -> None:
    assert required_values(written("spec.nodeName", value)) == {"spec.nodeName": value}
    assert required_values(written("spec.nodeName", value, is_equal=False)) == {}


@given(st.text(alphabet="a=!,\\ .", max_size=20))
def test_any_text_can_be_asked(selector: str) -> None:
    if required_values(selector):
        assert is_readable(selector)
