"""What a selector means here is what it means to the API."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.embedded.selectors import label_selector
from applecart.kube.label_selector import selects

KEYS = st.sampled_from(["pool", "tuist.dev/runner-pool", "in", "notin"])
VALUES = st.sampled_from(["", "a", "b-1", "5", "7"])
SPACE = st.sampled_from(["", " "])


@st.composite
def requirements(draw: st.DrawFn) -> str:
    key, space = draw(KEYS), draw(SPACE)
    match draw(st.sampled_from(["", "!", "=", "==", "!=", "<", ">", "in", "notin"])):
        case "" | "!" as mark:
            return f"{mark}{space}{key}"
        case "in" | "notin" as how:
            values = draw(st.lists(VALUES, min_size=1, max_size=3))
            return f"{key} {how}{space}({f',{space}'.join(values)}{space})"
        case "<" | ">" as how:
            return f"{key}{space}{how}{space}{draw(st.sampled_from(['5', '7']))}"
        case how:
            return f"{key}{space}{how}{space}{draw(VALUES)}"


@settings(max_examples=2000)
@given(st.lists(requirements(), max_size=3), SPACE, st.dictionaries(KEYS, VALUES))
def test_it_selects_what_the_api_selects(parts: list[str], space: str, labels: dict[str, str]) -> None:
    text = f"{space},{space}".join(parts)
    assert selects(text, labels) is label_selector(text)(labels)


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("pool=a", {"pool": "a"}, True),
        ("pool=a,zone", {"pool": "a"}, False),
        ("pool in (a, b),!zone", {"pool": "b"}, True),
        ("pool notin (a, b)", {}, True),
        ("pool!=a", {}, True),
        ("rank > 4", {"rank": "5"}, True),
        ("rank > 4", {}, False),
    ],
)
def test_every_form_of_a_requirement(text: str, labels: dict[str, str], selected: bool) -> None:
    assert selects(text, labels) is selected
