"""Runs the agent in a Python where only some packages can be imported, and tells at its end which modules it had.

    python guarded_agent.py ALLOWED_JSON MODULES_FILE FLAGS...

A program of its own, started by `test_dependencies.py`: it imports nothing but the standard library before the guard stands.
"""

import atexit
import json
import sys
from collections.abc import Sequence, Set
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


class Guard(MetaPathFinder):
    """Finds what is allowed; everything else is as if it were not installed."""

    def __init__(self, finder: MetaPathFinder, allowed: Set[str]) -> None:
        self._finder = finder
        self._allowed = allowed

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self._allowed:
            return None
        return self._finder.find_spec(fullname, path, target)


def found_modules() -> set[str]:
    """Without those that extensions make up in memory, which nobody installed."""
    return {name for name, module in sys.modules.items() if getattr(module, "__spec__", None) is not None}


def main(allowed: str, modules_file: str, *flags: str) -> None:
    before = set(sys.modules)  # of the virtual environment's own start
    importable = frozenset(json.loads(allowed)) | sys.stdlib_module_names
    sys.meta_path[:] = [Guard(finder, importable) for finder in sys.meta_path]  # type: ignore[arg-type]
    atexit.register(lambda: Path(modules_file).write_text(json.dumps(sorted(found_modules() - before))))
    from applecart.kubelet.main import main as run_agent

    sys.argv = ["tart-kubelet", *flags]
    run_agent()


if __name__ == "__main__":
    main(*sys.argv[1:])
