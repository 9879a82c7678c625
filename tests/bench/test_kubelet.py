"""The parts of the kubelet rows that decide something: which rows there are, what is counted, what is hurried."""

import pytest

from applecart.kubelet.node import health
from bench import __main__ as bench
from bench.embedded_rows import Results
from bench.kubelet_churn import Held
from bench.kubelet_hurried import TIMES, hurried
from bench.kubelet_rows import BARS, CHURN_ROW, GROUPS, MEMORY_ROW, START_ROW, add, counts, rows

NAMES = [name for group in GROUPS for name in group.names]


def test_every_row_that_is_announced_has_a_bar_and_every_bar_a_row() -> None:
    assert sorted(NAMES) == sorted(BARS)
    assert all(name.startswith("kubelet ") for name in NAMES)


def test_rows_can_be_measured_apart() -> None:
    assert bench.wanted(bench.GROUPS, "kubelet*") == GROUPS
    assert len(bench.wanted(bench.GROUPS, "kubelet 504*")) == 1
    assert len(bench.wanted(bench.GROUPS, "kubelet*after*")) == 1


@pytest.mark.parametrize(("row", "ours", "peer", "holds"), [
    (START_ROW, 0.99, 1.0, True),
    (START_ROW, 1.01, 1.0, False),
    (MEMORY_ROW, 60.5, 60.0, False),
    (CHURN_ROW, 70.0, 69.0, True),
    (CHURN_ROW, 80.0, 69.0, False),
])  # fmt: skip
def test_a_figure_beyond_what_is_allowed_does_not_hold(row: str, ours: float, peer: float, holds: bool) -> None:
    results = Results()
    add(results, row, ours, peer)
    assert [line.holds for line in (each.line() for each in rows(results, row))] == [holds]


def test_whatever_an_agent_could_pile_up_is_counted() -> None:
    held = Held(pods=50, memory_mb=60.0, open_files=15, tasks=50, series=300, folders=0)
    assert counts(held) == 50
    for kind in ("tasks", "folders"):
        more = Held(**{**{name: getattr(held, name) for name in Held.__struct_fields__}, kind: getattr(held, kind) + 1})
        assert counts(more) > counts(held)


def test_a_hurried_check_only_comes_more_often() -> None:
    async def look() -> None: ...

    check, quick = health.tart_answers(look), hurried(look)
    assert (quick.every_s * TIMES, quick.retry_s * TIMES) == (check.every_s, check.retry_s)
    assert (quick.name, quick.deadline_s) == (check.name, check.deadline_s)
