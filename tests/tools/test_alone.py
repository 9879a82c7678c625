"""Two makes at once on a fresh clone made one environment together, and broke it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ALONE = Path(__file__).parents[2] / "tools" / "alone.py"
WAIT_S = 60


def alone(lock: Path, *command: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    argv = [sys.executable, str(ALONE), str(lock), *command]
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("end", [lambda process: process.stdin.close(), subprocess.Popen.kill])
def test_a_command_waits_for_the_one_before_it_however_that_ends(
    end: Callable[[subprocess.Popen[str]], None], tmp_path: Path
) -> None:
    with alone(tmp_path / "lock", "cat") as first:
        assert first.stdin
        assert first.stdout
        first.stdin.write("it has begun\n")
        first.stdin.flush()
        assert first.stdout.readline() == "it has begun\n"
        with alone(tmp_path / "lock", "echo", "after it") as second:
            assert second.stdout
            assert second.stderr
            assert second.stderr.readline() == f"waiting for another make, which works in {tmp_path}\n"
            end(first)
            assert second.stdout.read() == "after it\n"
            assert second.wait(WAIT_S) == 0


def test_its_exit_code_is_the_command_s(tmp_path: Path) -> None:
    with alone(tmp_path / "lock", "false") as process:
        assert process.wait(WAIT_S) == 1
