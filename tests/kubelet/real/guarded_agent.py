"""Runs the agent in a Python where only some packages can be imported, and tells at its end which modules it had.

    python guarded_agent.py SETUP_JSON MODULES_FILE FLAGS...

A program of its own, started by `test_dependencies.py`: it imports nothing but the standard library before the guard stands.
"""

import atexit
import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


class Guard(MetaPathFinder):
    """Whatever is not allowed is not installed."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(allowed) | sys.stdlib_module_names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self._allowed:
            raise ModuleNotFoundError(f"{fullname} is not installed on a host", name=fullname)
        return None


def main(allowed: str, modules_file: str, *flags: str) -> None:
    before = set(sys.modules)  # of the virtual environment's own start
    sys.meta_path.insert(0, Guard(json.loads(allowed)))
    atexit.register(lambda: Path(modules_file).write_text(json.dumps(sorted(set(sys.modules) - before))))
    from applecart.kubelet.main import main as run_agent

    sys.argv = ["tart-kubelet", *flags]
    run_agent()


if __name__ == "__main__":
    main(*sys.argv[1:])
