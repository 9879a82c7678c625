"""Write the table of built-in types again from the published Go API modules, or check it.

`python -m tools.api_types [--check]`, from the root of a checkout. The modules are those that the newest Kubernetes under
test pins, checked by its go.sum.
"""

import functools
import json
import subprocess
import sys
from pathlib import Path

from tests.kubernetes.recipe import DEFAULT_KUBE, HERE, BuildFailed, go_needed, programs
from tests.kubernetes.toolchain import find_go, go_environment
from tools.api_types.go_source import GoType, read_package
from tools.api_types.kinds import MODULES
from tools.api_types.tables import build, encode

TABLE = Path("src/applecart/embedded/structure/types.json")


def module_folders(kube: str = DEFAULT_KUBE) -> dict[str, Path]:
    """Where Go keeps the API modules of a minor."""
    go, _ = find_go(go_needed(programs(kube)))
    command = [go, "mod", "download", "-json", *MODULES]
    asked = subprocess.run(command, cwd=HERE / f"v{kube}", env=go_environment(), capture_output=True, text=True)
    if asked.returncode != 0:
        raise BuildFailed(f"the API modules cannot be had: {' '.join((asked.stderr or asked.stdout).split())}")
    folders: dict[str, Path] = {}
    rest = asked.stdout
    while rest.strip():
        answer, end = json.JSONDecoder().raw_decode(rest := rest.lstrip())
        folders[answer["Path"]] = Path(answer["Dir"])
        rest = rest[end:]
    return folders


def package_folder(folders: dict[str, Path], package: str) -> Path:
    module = max((name for name in folders if package.startswith(f"{name}/")), key=len)
    return folders[module] / package.removeprefix(f"{module}/")


def generated(kube: str = DEFAULT_KUBE) -> str:
    """The text of the table."""
    folders = module_folders(kube)

    @functools.cache
    def packages(path: str) -> dict[str, GoType]:
        return read_package(package_folder(folders, path), path)

    return encode(build(packages))


def main(arguments: list[str]) -> int:
    try:
        text = generated()
    except BuildFailed as error:
        sys.stderr.write(f"api_types: {error}\n")
        return 1
    if arguments == ["--check"]:
        if TABLE.read_text() == text:
            return 0
        sys.stderr.write(f"{TABLE} is not what the API modules say; run python -m tools.api_types\n")
        return 1
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
