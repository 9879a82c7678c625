"""Write the files that are made from the types, or check that they are up to date (`make generate`, `make check`).

Run from the root of a checkout: generated files are part of it, not of an installed applecart.
"""

import sys
from pathlib import Path

from applecart.api.generate import documents


def stale(root: Path) -> list[str]:
    """The generated files whose text is not what the types say now, and files that nothing generates any more."""
    wanted = documents()
    folders = {path.rsplit("/", 1)[0] for path in wanted if path.endswith(".yaml")}
    abandoned = [
        str(file.relative_to(root))
        for folder in sorted(folders)
        for file in sorted((root / folder).glob("*.yaml"))
        if str(file.relative_to(root)) not in wanted
    ]
    return [path for path, text in wanted.items() if _read(root / path) != text] + abandoned


def write(root: Path) -> None:
    for path, text in documents().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main(arguments: list[str]) -> int:
    root = Path.cwd()
    if arguments == ["--check"]:
        names = stale(root)
        for name in names:
            print(f"{name} is not what the types say; run make generate (and delete it if nothing makes it)", file=sys.stderr)
        if not names:
            print(f"{len(documents())} generated files are up to date")
        return 1 if names else 0
    write(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
