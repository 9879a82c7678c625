"""What a request asks for, and its parameters by the rules of the real server's decoder."""

import pytest

from applecart.embedded.refusals import Refusal
from applecart.embedded.server.api import told_warnings
from applecart.embedded.server.request import attributes_of, integer, is_dry_run, is_true, revision


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, False),
        ("0", False),
        ("false", False),
        ("False", False),
        ("FALSE", False),
        ("", True),
        ("1", True),
        ("True", True),
        ("no", True),
    ],
)
def test_a_parameter_is_true_unless_it_says_otherwise(text: str | None, expected: bool) -> None:
    """A Python client sends `watch=True`, and a hand-written request `watch=`."""
    assert is_true(text) is expected


@pytest.mark.parametrize(("text", "number"), [("5", 5), ("-5", -5), ("+5", 5), ("", None)])
def test_whole_numbers_are_read(text: str, number: int | None) -> None:
    assert integer({"limit": text}, "limit") == number


@pytest.mark.parametrize("text", ["x", "1.5", "1e3", "--1", "\u0665", "9" * 30])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match=r"strconv.ParseInt: parsing"):
        integer({"limit": text}, "limit")


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "\u0665", "9" * 30])
def test_a_revision_is_digits_alone(text: str) -> None:
    with pytest.raises(ValueError, match=r"strconv.ParseUint: parsing"):
        revision(text)


def test_all_is_the_only_stage_of_a_dry_run() -> None:
    assert is_dry_run({"dryRun": "All"}, "CreateOptions")
    assert not is_dry_run({}, "CreateOptions")
    with pytest.raises(Refusal, match='dryRun: Unsupported value: \\["foo"\\]: supported values: "All"'):
        is_dry_run({"dryRun": "foo"}, "CreateOptions")


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", "pods", "watch"),
        ("HEAD", "pods", "list"),
        ("GET", "pods/one", "get"),
        ("POST", "pods", "create"),
        ("PUT", "pods/one", "update"),
        ("DELETE", "pods", "deletecollection"),
        ("DELETE", "pods/one", "delete"),
    ],
)
def test_only_a_get_of_a_collection_watches(method: str, path: str, verb: str) -> None:
    """A POST that said `watch=1` was not counted among the requests in flight, and a HEAD that said it never ended."""
    assert attributes_of(method, f"/api/v1/namespaces/ci/{path}", {"watch": "1"}).verb == verb


def test_warnings_are_told_once_and_cut_where_they_are_long_together() -> None:
    """A client in Python reads a hundred headers, and could not read the answer to an object of 250 unknown fields."""
    assert told_warnings(["a" * 4000, "b", "a" * 4000]) == ["a" * 4000, "b"]
    assert told_warnings(["a" * 4000, "b" * 97]) == ["a" * 256, "b" * 97]
    many = [f'unknown field "{number:04}{"x" * 45}"' for number in range(250)]
    assert told_warnings(many) == many[:64]
