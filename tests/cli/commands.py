"""Commands as a person runs them: real processes, read by their output and ended for certain."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WAIT_S = 60
SERVES = "Ctrl-C stops it"


def environment() -> dict[str, str]:
    """Without what this machine's owner set for their own clusters."""
    ours = ("KUBECONFIG", "APPLECART_DATA", "APPLECART_BINARIES", "KUBEBUILDER_ASSETS")
    return {name: value for name, value in os.environ.items() if name not in ours}


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until it is told to end."""
    command = [sys.executable, "-m", "applecart", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def running_api(data: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`applecart api start` on a free port, when it serves."""
    with running("api", "start", "--data", str(data), "--port", "0", *arguments) as process:
        read_until(process, SERVES)
        yield process


def read_until(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout
    text = ""
    for line in process.stdout:
        text += line
        if words in line:
            return text
    pytest.fail(f"it ended before saying {words!r}:\n{text}")


def done(*arguments: str, stdin: str = "", user: int | None = None) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself. `user`: as somebody else, for who may do everything."""
    return subprocess.run(
        [sys.executable, "-m", "applecart", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env=environment(),
        user=user,
    )


def refused(*arguments: str, code: int = 2) -> str:
    """What a command says that ends with one sentence."""
    ended = done(*arguments)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    return ended.stderr
