"""Commands as a person runs them, read by their output and ended for certain.

What serves, or may, is a process of its own. What only answers runs in this one: its start took ten times as long as its work.
"""

import contextvars
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from applecart.cli.main import run

WAIT_S = 60
SERVES = "Ctrl-C stops it"


def environment() -> dict[str, str]:
    """Without what this machine's owner set for their own clusters, and without the authorities that it trusts.

    aiohttp reads those when it is imported, which is a tenth of a start. Our servers bring their own.
    """
    ours = ("KUBECONFIG", "APPLECART_DATA", "APPLECART_BINARIES", "KUBEBUILDER_ASSETS")
    return {name: value for name, value in os.environ.items() if name not in ours} | {"SSL_CERT_FILE": os.devnull}


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
    if user is None and arguments[0] != "up" and arguments[:2] != ("api", "start"):
        return _answered(arguments, stdin)
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


class _Pipe(io.BytesIO):
    name = "<pipe>"


def _answered(arguments: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
    """On a thread, where it may have a loop of its own although a test's is running."""
    given, out, err = (io.TextIOWrapper(_Pipe(text), encoding="utf-8") for text in (stdin.encode(), b"", b""))
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as thread:
        for name in os.environ.keys() - environment().keys():
            patch.delenv(name)
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        code = thread.submit(contextvars.copy_context().run, run, list(arguments)).result(WAIT_S)
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def refused(*arguments: str, code: int = 2) -> str:
    """What a command says that ends with one sentence."""
    ended = done(*arguments)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    return ended.stderr
