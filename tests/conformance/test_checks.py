"""The list of checks is whole, and what is accepted is argued."""

import json

import pytest

from tests.conformance.accepted import ACCEPTED, MOST
from tests.conformance.checks import COUNT, all_checks
from tests.conformance.kinds import SHARED_CRDS
from tests.conformance.servers import COMPACT, CONTROLLERS, RESTART
from tests.conformance.suite import chosen
from tests.conformance.verdict import RECORDED

NUMBERS = [one.number for one in all_checks()]


def test_there_is_one_check_for_each_line_of_the_list() -> None:
    assert sorted(NUMBERS) == sorted([*map(str, range(1, COUNT)), "54b"])
    assert len(NUMBERS) == COUNT


def test_checks_come_in_the_order_of_their_numbers_and_54b_follows_54() -> None:
    assert NUMBERS[52:56] == ["53", "54", "54b", "55"]


def test_a_check_that_compacts_or_restarts_a_server_runs_alone() -> None:
    assert all(one.alone for one in all_checks() if one.needs & {COMPACT, RESTART})


def test_only_garbage_collection_and_namespaces_need_controllers() -> None:
    assert [one.number for one in all_checks() if CONTROLLERS in one.needs] == ["93", "94", "143"]


def test_accepted_differences_are_few_and_argued() -> None:
    assert len(ACCEPTED) <= MOST
    assert all(len(one.why.split()) > 5 for one in ACCEPTED)


def test_every_recorded_answer_belongs_to_a_check_and_differs_between_the_minors() -> None:
    recorded = json.loads(RECORDED.read_text())
    assert set(recorded) <= set(NUMBERS)
    assert all(parts[0] != parts[1] for parts in recorded.values())


def test_the_shared_kinds_have_the_names_that_a_server_demands() -> None:
    for crd in SHARED_CRDS:
        assert crd["metadata"]["name"] == f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"


@pytest.mark.parametrize(
    ("only", "numbers"),
    [
        ("12", ["12"]),
        ("54b,3", ["3", "54b"]),
        ("30-33", ["30", "31", "32", "33"]),
        ("", NUMBERS),
    ],
)
def test_checks_are_chosen_by_numbers_and_ranges(only: str, numbers: list[str]) -> None:
    assert [one.number for one in chosen(all_checks(), only)] == numbers


def test_a_number_that_no_check_has_is_a_sentence() -> None:
    with pytest.raises(SystemExit, match=f"there is no check {COUNT}"):
        chosen(all_checks(), str(COUNT))
