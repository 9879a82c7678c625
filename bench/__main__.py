"""`make bench`: measure, print one table, write it to build/bench.json, and fail when a bar does not hold."""

import argparse
import fnmatch
import sys
from pathlib import Path

import msgspec

from bench import embedded_rows, informer_rows, kubelet_rows
from bench.rows import Group, Line
from bench.table import render

GROUPS: tuple[Group, ...] = (informer_rows.GROUP, embedded_rows.GROUP, *kubelet_rows.GROUPS)
RESULT = Path("build/bench.json")


def wanted(groups: tuple[Group, ...], pattern: str) -> tuple[Group, ...]:
    """The groups with a row whose name matches; a pattern without wildcards matches anywhere in the name."""
    glob = pattern if any(char in pattern for char in "*?[") else f"*{pattern}*"
    return tuple(group for group in groups if any(fnmatch.fnmatch(name, glob) for name in group.names))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rows", default="*", help="only rows whose name matches, e.g. 'informer*'")
    pattern = parser.parse_args(arguments).rows
    groups = wanted(GROUPS, pattern)
    if not groups:
        names = ", ".join(name for group in GROUPS for name in group.names)
        print(f"no row matches {pattern!r}; there are: {names}", file=sys.stderr)
        return 2
    lines: list[Line] = []
    for group in groups:
        lines += [row.line() for row in group.measure(lambda text: print(text, file=sys.stderr))]
    print(render(lines))
    print("ours and peer ran alternately, on the same input; the figures are medians over the repetitions")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(lines), indent=2) + b"\n")
    missed = [line.row for line in lines if not line.holds]
    if missed:
        print(f"bars that do not hold: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
