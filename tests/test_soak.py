"""A usual run draws the same every time, and a soak draws what its seed says."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import soak

EVERYTHING = list(range(10))


def drawn() -> list[int]:
    found: list[int] = []

    @settings(derandomize=True)
    @given(st.integers())
    def collect(number: int) -> None:
        found.append(number)

    collect()
    return found


def test_the_same_examples_are_drawn_whichever_modules_were_loaded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis also draws constants of modules that happen to be loaded, so an example of a whole run was lost alone."""
    before = drawn()
    source = tmp_path / "loaded_late.py"
    source.write_text(f"NUMBERS = {list(range(5000, 5200))}\n")
    spec = importlib.util.spec_from_file_location("loaded_late", source)
    assert spec is not None
    monkeypatch.setitem(sys.modules, "loaded_late", importlib.util.module_from_spec(spec))
    assert drawn() == before


drawn_here: list[int] = []


@settings(max_examples=3 * soak.MOST_EXAMPLES)
@given(st.integers())
def test_a_property_test_of_a_usual_run_draws_few_examples(number: int) -> None:
    drawn_here.append(number)
    assert len(drawn_here) <= soak.soaks(soak.MOST_EXAMPLES, 3 * soak.MOST_EXAMPLES)


def test_a_usual_run_takes_an_even_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_soak_seed", None)
    assert soak.soaks(8, 50) == 8
    assert list(soak.seeds(2, soak=20)) == [0, 1]
    assert [soak.sample(EVERYTHING, 3, offset) for offset in range(4)] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8], [0, 3, 6, 9]]
    assert soak.sample(EVERYTHING, 20) == EVERYTHING


def test_a_soak_takes_everything_and_draws_from_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_soak_seed", 700)
    assert soak.soaks(8, 50) == 50
    assert list(soak.seeds(2, soak=3)) == [700, 701, 702]
    assert soak.sample(EVERYTHING, 3, offset=2) == EVERYTHING
