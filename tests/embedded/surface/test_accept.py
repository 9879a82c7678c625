"""Accept headers, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.surface.accept import SORTED_AS_UPSTREAM, read_accept


def order(header: str) -> list[str]:
    return [f"{clause.type}/{clause.subtype}" for clause in read_accept(header)]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", []),
        (",,", []),
        ("application/json", ["application/json"]),
        ("a/b, c/d", ["a/b", "c/d"]),
        ("a/b;q=0.5, c/d", ["c/d", "a/b"]),
        ("a/b;q=0.5,c/d;q=0.5", ["a/b", "c/d"]),
        ("*/*, a/b", ["a/b", "*/*"]),
        ("a/*, a/b", ["a/b", "a/*"]),
        ("*/*;q=1,a/b;q=0.1", ["a/b", "*/*"]),  # a named type goes before a wildcard of higher quality
        ("a/b;q=x,c/d;q=0.1", ["c/d", "a/b"]),  # a quality that is no number is the lowest
        ("*", ["*/*"]),
        ("junk", []),
        ("a/b/c", []),
        ("a/", []),
        (" a / b ", ["a/b"]),
    ],
)
def test_clauses_are_read_best_first(header: str, expected: list[str]) -> None:
    assert order(header) == expected


def test_parameters_are_read_without_their_spaces_and_only_when_they_have_a_value() -> None:
    (clause,) = read_accept("application/json; as = Table ;v=v1;g=meta.k8s.io;empty=;twice=a=b;bare;q=0.5")
    assert clause.parameters == {"as": "Table", "v": "v1", "g": "meta.k8s.io"}
    assert clause.quality == 0.5


@pytest.mark.parametrize(
    ("clause", "media_type", "takes"),
    [
        ("application/json", "application/json", True),
        ("application/*", "application/json", True),
        ("*/*", "application/json", True),
        ("*/json", "application/json", False),
        ("text/*", "application/json", False),
        ("application/yaml", "application/json", False),
    ],
)
def test_a_clause_takes_its_type_and_what_its_wildcards_cover(clause: str, media_type: str, takes: bool) -> None:
    assert read_accept(clause)[0].takes(media_type) is takes


def test_a_header_of_very_many_clauses_is_sorted_by_quality() -> None:
    many = ",".join(f"a/b{number};q=0.{number:03}" for number in range(1, 500))
    found = read_accept(many)
    assert len(found) > SORTED_AS_UPSTREAM
    assert [clause.quality for clause in found] == sorted((clause.quality for clause in found), reverse=True)


@given(st.text(" ab/*;,=q0.5", max_size=60))
def test_no_header_is_an_error(header: str) -> None:
    for clause in read_accept(header):
        assert clause.subtype
        assert "/" not in clause.subtype
