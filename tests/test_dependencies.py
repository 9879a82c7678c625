"""What somebody installs with applecart is what applecart imports."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMPORTS = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)


def normal(distribution: str) -> str:
    return distribution.lower().replace("_", "-")


def test_every_dependency_is_imported_somewhere() -> None:
    """rich was installed on every host for a dashboard that is not there yet."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    imported = {name for file in (ROOT / "src").rglob("*.py") for name in IMPORTS.findall(file.read_text())}
    provides = importlib.metadata.packages_distributions()
    used = {normal(distribution) for name in imported for distribution in provides.get(name, ())}
    assert {normal(re.split(r"[<>=]", one)[0]) for one in wanted} - used == set()
