"""The embedded server as one of the servers that checks compare."""

import asyncio
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from applecart.clock import SystemClock
from applecart.embedded.trust.pki import load_or_create_authority
from tests.conformance.servers import COMPACT, CONTROLLERS, RESTART, KubeconfigServer

REPOSITORY = Path(__file__).parents[2]
STOP_WITHIN_S = 30.0  # an orderly stop takes a moment


class EmbeddedProcess(KubeconfigServer):
    """A process of `embedded_program.py`; it belongs to no event loop."""

    def __init__(self, folder: Path, *, has_controllers: bool) -> None:
        self._folder = folder
        self._has_controllers = has_controllers
        self._start(port=0)
        authority = load_or_create_authority(folder / "pki", "ca", SystemClock().now())
        powers = (COMPACT, RESTART, *((CONTROLLERS,) if has_controllers else ()))
        super().__init__(folder / "admin.kubeconfig", powers, authority)

    def _start(self, port: int) -> None:
        arguments = [str(self._folder), str(port), *(["--controllers"] if self._has_controllers else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.embedded_program", *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._said_url = self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, f"the embedded server ended with {self._process.wait(STOP_WITHIN_S)}"
        return line

    def _compact(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("compact\n")
        self._process.stdin.flush()
        assert self._read() == "compacted"

    def _stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(STOP_WITHIN_S)
        self._process.stdout.close()

    async def compact(self) -> None:
        await asyncio.to_thread(self._compact)

    async def restart(self) -> None:
        await asyncio.to_thread(self._stop)
        await asyncio.to_thread(self._start, urlsplit(self.url).port or 0)

    async def stop(self) -> None:
        await asyncio.to_thread(self._stop)


async def start_embedded(run_folder: Path, *, has_controllers: bool) -> EmbeddedProcess:
    return await asyncio.to_thread(EmbeddedProcess, run_folder, has_controllers=has_controllers)
