"""When a bar holds, and how the table says it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from bench import __main__ as bench
from bench.pods import encoded, pod
from bench.rows import Bar, Group, Line, Row
from bench.table import render

HOLDS = Row("fast thing/s", Bar("at least", 1.5), ours=(10.0, 30.0, 20.0), peer=(10.0, 10.0, 11.0))
MISSES = Row("small thing, MB", Bar("at most", 0.7), ours=(8.0,), peer=(10.0,))


def group(*rows: Row) -> Group:
    def measure(say: Callable[[str], None]) -> Sequence[Row]:
        say("measuring")
        return rows

    return Group(tuple(row.name for row in rows), measure)


def test_a_row_compares_medians() -> None:
    assert HOLDS.line() == Line("fast thing/s", 20.0, 10.0, 2.0, ">= 1.5", True, 3)


def test_a_ratio_beyond_its_bar_does_not_hold() -> None:
    assert MISSES.line() == Line("small thing, MB", 8.0, 10.0, 0.8, "<= 0.7", False, 1)


def test_a_bar_is_judged_on_the_exact_ratio_and_not_on_the_printed_one() -> None:
    nearly = Row("nearly", Bar("at least", 1.5), ours=(1.4999,), peer=(1.0,))
    assert nearly.line().ratio == 1.5
    assert not nearly.line().holds


def test_the_table_has_a_line_per_row_and_shouts_what_does_not_hold() -> None:
    head, first, second = render([HOLDS.line(), MISSES.line()]).splitlines()
    assert head.split() == ["row", "ours", "peer", "ratio", "bar", "holds", "repetitions"]
    assert first.endswith("yes            3")
    assert " NO " in second


def test_a_pattern_selects_rows_by_name() -> None:
    groups = (group(HOLDS), group(MISSES))
    assert bench.wanted(groups, "small") == groups[1:]
    assert bench.wanted(groups, "fast*") == groups[:1]
    assert bench.wanted(groups, "*") == groups
    assert bench.wanted(groups, "nothing") == ()


@pytest.mark.parametrize(("rows", "code"), [((HOLDS,), 0), ((HOLDS, MISSES), 1)])
def test_the_result_is_written_and_a_missed_bar_is_an_exit_code(
    rows: tuple[Row, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "GROUPS", (group(*rows),))
    assert bench.main([]) == code
    written = msgspec.json.decode(Path("build/bench.json").read_bytes(), type=list[Line])
    assert written == [row.line() for row in rows]


def test_a_pattern_that_matches_nothing_lists_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--rows", "no such row"]) == 2
    assert "informer: watch events/s" in capsys.readouterr().err


def test_a_pod_has_the_size_of_a_real_one() -> None:
    assert 5_800 < len(encoded(pod(1234, 1_001_234))) < 6_400
