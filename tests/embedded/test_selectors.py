"""What a field selector requires."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.kinds.names import MOST_REQUIREMENTS
from applecart.embedded.refusals import Refusal
from applecart.embedded.selectors import is_readable, label_selector, parse_field_selector, required_values, written


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


def test_a_selector_has_so_many_requirements_and_so_many_values_as_its_text_holds() -> None:
    """One of 6,000 kept the loop for a second: each object of a list was held against all of them."""
    names = [f"a{number}" for number in range(MOST_REQUIREMENTS)]
    assert label_selector(",".join(f"!{name}" for name in names))({"b": "c"})
    assert parse_field_selector(",".join(f"{name}!=b" for name in names))({})
    assert label_selector(f"a in ({','.join(names * 50)})")({"a": "a7"})
    for read, selector in (
        (label_selector, ",".join(f"!{name}" for name in [*names, "b"])),
        (parse_field_selector, ",".join(f"{name}!=b" for name in [*names, "b"])),
    ):
        with pytest.raises(Refusal, match="a selector may have at most 100 requirements"):
            read(selector)


@given(st.text(max_size=12))
def test_a_written_value_reads_back(value: str) -> None:
    assert required_values(written("spec.nodeName", value)) == {"spec.nodeName": value}
    assert required_values(written("spec.nodeName", value, is_equal=False)) == {}


@given(st.text(alphabet="a=!,\\ .", max_size=20))
def test_any_text_can_be_asked(selector: str) -> None:
    if required_values(selector):
        assert is_readable(selector)
