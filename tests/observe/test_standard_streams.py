"""A program whose standard streams are closed says nothing, and writes into no file by mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from applecart.observe.standard_streams import replace_closed_streams

replace_closed_streams()
import sys

with open(sys.argv[1], "w") as file:
    print("out")
    print("err", file=sys.stderr)
    assert sys.stdin.read() == ""
    sys.stdout.flush()
    file.write("data")
"""


@pytest.mark.parametrize("closed", ["<&-", ">&- </dev/null", "2>&- </dev/null", "<&- >&- 2>&-"])
def test_what_is_printed_into_a_closed_stream_is_lost_and_lands_nowhere_else(closed: str, tmp_path: Path) -> None:
    command = ["sh", "-c", f'exec "$0" -c "$1" "$2" {closed}', sys.executable, PROGRAM, str(tmp_path / "file")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    assert (tmp_path / "file").read_text() == "data"


CHILD = "import os; [os.fstat(number) for number in range(3)]"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_child_that_inherits_a_stream_that_was_closed_finds_it_open(closed: str) -> None:
    """The first file that it opened became its standard output."""
    program = "import subprocess, sys; from applecart.observe.standard_streams import replace_closed_streams\n"
    program += "replace_closed_streams()\nsys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    command = ["sh", "-c", f'exec "$0" -c "$1" "$2" {closed}', sys.executable, program, CHILD]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
