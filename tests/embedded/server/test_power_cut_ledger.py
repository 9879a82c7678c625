"""The judge of the power cuts sees what it must see."""

import pytest

from tests.embedded.server.power_cut_ledger import GONE, Ledger


@pytest.fixture
def ledger() -> Ledger:
    """`a` was made at 10; the answer to a second write is open."""
    ledger = Ledger()
    ledger.attempt("a", "one")
    ledger.acknowledge("a", "one", 10)
    ledger.attempt("a", "two")
    return ledger


@pytest.mark.parametrize(
    ("listed", "survivors"),
    [
        ({"a": (10, "one")}, 0),
        ({"a": (11, "two")}, 1),
    ],
)
def test_an_open_write_may_be_there_or_not(ledger: Ledger, listed: dict[str, tuple[int, str]], survivors: int) -> None:
    ledger.check_list(listed)
    assert ledger.problems == []
    assert ledger.survivors == survivors


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ({}, "a is '(gone)' at 0; acknowledged was 'one' at 10"),
        ({"a": (9, "zero")}, "a is 'zero' at 9"),
        ({"a": (11, "one")}, "a is 'one' at 11"),
        ({"a": (10, "two")}, "revision 10 was ('a', 'one') and is ('a', 'two')"),
        ({"a": (9, "two")}, "a went back from 10 to 9"),
        ({"a": (10, "one"), "b": (12, "nobody wrote it")}, "b is 'nobody wrote it' at 12"),
    ],
)
def test_whatever_else_is_listed_is_a_problem(ledger: Ledger, listed: dict[str, tuple[int, str]], problem: str) -> None:
    ledger.check_list(listed)
    assert problem in ledger.problems[0]


def test_an_acknowledged_deletion_stays_a_deletion(ledger: Ledger) -> None:
    ledger.attempt("a", GONE)
    ledger.acknowledge("a", GONE, 0)
    ledger.check_list({})
    assert ledger.problems == []
    ledger.check_list({"a": (10, "one")})
    assert ledger.problems[0].startswith("a is 'one' at 10; acknowledged was '(gone)'")


def test_a_revision_that_tells_of_two_objects_is_a_problem(ledger: Ledger) -> None:
    ledger.note(10, "a", "one")
    assert ledger.problems == []
    ledger.note(10, "b", "one")
    assert ledger.problems == ["revision 10 was ('a', 'one') and is ('b', 'one')"]
