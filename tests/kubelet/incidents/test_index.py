"""docs/reference/incidents.md is true: it names every incident that concerns the agent, and tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "reference" / "incidents.md"
OF_OTHER_PARTS = {22, *range(44, 54)}  # runner pools, cache volumes


def _rows(heading: str) -> dict[int, str]:
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return {int(found[1]): found[0] for found in re.finditer(r"^\| (\d+) \|.*$", section, re.MULTILINE)}


def test_every_incident_and_weakness_has_a_proof() -> None:
    incidents, weaknesses = _rows("Incidents"), _rows("Weaknesses")
    assert set(incidents) == set(range(1, 55)) - OF_OTHER_PARTS
    assert set(weaknesses) == set(range(1, 27))
    assert [row for row in (*incidents.values(), *weaknesses.values()) if "::test_" not in row] == []


def test_every_proof_exists() -> None:
    cited = re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE.read_text())
    assert len(cited) > 80
    missing = [f"{file}::{test}" for file, test in cited if not _is_there(TESTS / file, test)]
    assert missing == []


def _is_there(file: Path, test: str) -> bool:
    return file.is_file() and f"def {test}(" in file.read_text()
