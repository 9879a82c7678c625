"""Servers on one data folder that are started, cut off and started again, as a test drives them."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import kill
from pathlib import Path

from tests.embedded.server import power_cut_server


class Nursery:
    """The program whose servers are cut off."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.port = 0
        self.pid = 0

    def start(self, moment: str, commits: int) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"start {self.port} {moment} {commits}\n")
        self._process.stdin.flush()
        said = self._said()
        assert said[0] == "ready", said
        self.pid, self.port = int(said[1]), int(said[2])

    def cut(self) -> None:
        kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        kill(self.pid, signal.SIGTERM)

    async def ended(self) -> int:
        said = await asyncio.to_thread(self._said)
        assert said[0] == "ended", said
        return int(said[1])

    def _said(self) -> list[str]:
        assert self._process.stdout
        return self._process.stdout.readline().split()


@contextmanager
def nursery(data: Path) -> Iterator[Nursery]:
    command = [sys.executable, power_cut_server.__file__, str(data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        try:
            yield Nursery(process)
        finally:
            process.kill()
