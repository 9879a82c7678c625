"""What becomes of an object, by the standing of its owners."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.embedded.controllers.garbage.decide import (
    Delete,
    Keep,
    OwnerState,
    Plan,
    Propagation,
    Strip,
    plan,
    standing_of,
    unblocked,
    without_owner,
)
from tests.embedded.controllers.garbage.owned import owned, refers_to

SOLID, DANGLING, WAITING = OwnerState.SOLID, OwnerState.DANGLING, OwnerState.WAITING
IN_BACKGROUND = Delete(Propagation.BACKGROUND)
IN_FOREGROUND = Delete(Propagation.FOREGROUND)
PLAIN = owned("d", ["o"])
GOING = owned("d", ["o"], finalizers=[FOREGROUND_DELETION], is_deleted=True)


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        ([], Keep()),
        ([SOLID], Keep()),
        ([SOLID, SOLID], Keep()),
        ([SOLID, DANGLING], Strip((refers_to("0"),))),
        ([DANGLING, SOLID], Strip((refers_to("1"),))),
        ([WAITING, SOLID], Strip((refers_to("1"),))),
        ([DANGLING, SOLID, WAITING, SOLID], Strip((refers_to("1"), refers_to("3")))),
        ([DANGLING], IN_BACKGROUND),
        ([DANGLING, DANGLING], IN_BACKGROUND),
        ([WAITING], IN_BACKGROUND),
        ([WAITING, DANGLING], IN_BACKGROUND),
    ],
)
def test_without_dependents(standings: list[OwnerState], expected: Plan) -> None:
    obj = owned("x", [str(number) for number in range(len(standings))])
    assert plan(obj, standings, []) == expected


@pytest.mark.parametrize(
    ("standings", "dependents", "expected"),
    [
        ([DANGLING], [PLAIN], IN_BACKGROUND),
        ([WAITING], [PLAIN], IN_FOREGROUND),
        ([DANGLING, WAITING], [PLAIN], IN_FOREGROUND),
        ([WAITING], [PLAIN, GOING], Delete(Propagation.FOREGROUND, unblock_first=True)),
        ([SOLID, WAITING], [GOING], Strip((refers_to("0"),))),
    ],
)
def test_with_dependents(standings: list[OwnerState], dependents: list[object], expected: Plan) -> None:
    obj = owned("x", [str(number) for number in range(len(standings))])
    assert plan(obj, standings, dependents) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [
        ([ORPHAN_DEPENDENTS], Propagation.ORPHAN),
        ([FOREGROUND_DELETION], Propagation.FOREGROUND),
        (["x/y"], Propagation.BACKGROUND),
    ],
)
def test_a_propagation_that_a_person_asked_for_is_kept(finalizers: list[str], expected: Propagation) -> None:
    assert plan(owned("x", ["o"], finalizers=finalizers), [DANGLING], []) == Delete(expected)


def test_the_standing_of_an_owner() -> None:
    assert standing_of(owned("o")) is SOLID
    assert standing_of(owned("o", is_deleted=True, finalizers=["x/y"])) is SOLID
    assert standing_of(GOING) is WAITING


@given(st.lists(st.sampled_from(OwnerState), max_size=6), st.booleans())
def test_an_object_goes_only_when_it_has_owners_and_none_is_solid(
    standings: Sequence[OwnerState], has_dependents: bool
) -> None:
    obj = owned("x", [str(number) for number in range(len(standings))])
    decided = plan(obj, standings, [PLAIN] if has_dependents else [])
    assert isinstance(decided, Delete) == (bool(standings) and SOLID not in standings)


@given(st.lists(st.sampled_from(OwnerState), max_size=6))
def test_what_is_stripped_is_just_what_is_not_solid(standings: Sequence[OwnerState]) -> None:
    obj = owned("x", [str(number) for number in range(len(standings))])
    decided = plan(obj, standings, [])
    if isinstance(decided, Strip):
        assert [reference.uid for reference in decided.references] == [
            str(number) for number, standing in enumerate(standings) if standing is SOLID
        ]
        assert 0 < len(decided.references) < len(standings)


def test_an_owner_is_taken_out_of_the_references_by_uid() -> None:
    assert without_owner(owned("x", ["a", "b", "a"]), "a") == (refers_to("b"),)


def test_unblocked_references_differ_in_nothing_else() -> None:
    obj = owned("x", [refers_to("a", blocks=True), refers_to("b", blocks=False), refers_to("c")])
    assert unblocked(obj) == (refers_to("a", blocks=False), refers_to("b", blocks=False), refers_to("c"))
