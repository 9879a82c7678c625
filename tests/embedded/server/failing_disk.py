"""`applecart api start` on a disk that fails: the program, one user of it, and ways in which disks fail."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import msgspec

from applecart.clock import SystemClock
from applecart.errors import ApplecartError
from applecart.kube.connect import connect
from applecart.kube.http import HttpTransport
from applecart.kube.transport import Request
from tests.cli.commands import environment

ENDS_WITHIN_S = 60.0
CALL_S = 60.0
PATH = "/api/v1/namespaces/default/configmaps"


class Program:
    """The command a person runs, and what it says."""

    def __init__(self, data: Path, *, most_file_bytes: int = 0) -> None:
        self.data = data
        self._said = TemporaryFile()  # noqa: SIM115 (closed with the program)
        self._limit: Callable[[], None] | None = None
        if most_file_bytes:
            self._limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))

    def __enter__(self) -> Self:
        command = [
            sys.executable,
            "-m",
            "applecart",
            "api",
            "start",
            "--data",
            str(self.data),
            "--port",
            "0",
            "--no-controllers",
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._said,
            preexec_fn=self._limit,
            env=environment(),
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        self._said.close()

    def serves(self) -> bool:
        """Waits until it serves (True) or has ended (False)."""
        assert self.process.stdout
        return any(b"Ctrl-C" in line for line in self.process.stdout)

    def ended(self) -> tuple[int, str]:
        """Waits for its end; its exit code and the last line it said."""
        code = self.process.wait(ENDS_WITHIN_S)
        self._said.seek(0)
        said = self._said.read().decode()
        assert "Traceback" not in said, said
        return code, said.strip().splitlines()[-1] if said.strip() else ""

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    @asynccontextmanager
    async def user(self) -> AsyncIterator[HttpTransport]:
        transport = connect(str(self.data / "admin.kubeconfig"), None, SystemClock(), environ={})
        try:
            yield transport
        finally:
            await transport.aclose()


async def write(transport: HttpTransport, name: str, content: str, kind: str = "ConfigMap") -> int:
    """The revision of an acknowledged write; 0 when it was not acknowledged."""
    place = "stringData" if kind == "Secret" else "data"
    document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, place: {"content": content}}
    path = PATH.replace("configmaps", f"{kind.lower()}s")
    try:
        response = await transport.send(Request("POST", path, (), msgspec.json.encode(document), deadline_s=CALL_S))
    except ApplecartError:
        return 0
    if response.status != 201:
        return 0
    return int(msgspec.json.decode(response.body)["metadata"]["resourceVersion"])


async def names_and_revisions(transport: HttpTransport) -> dict[str, int]:
    response = await transport.send(Request("GET", PATH, deadline_s=CALL_S))
    items: list[dict[str, Any]] = msgspec.json.decode(response.body)["items"]
    return {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in items}


def can_mount() -> bool:
    """Whether this test may make a small filesystem; it needs to be root, and a container's root often may not."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@contextmanager
def small_filesystem(place: Path, size_bytes: int) -> Iterator[Callable[[], None]]:
    """Yields what makes it read-only."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(place)], check=True)

    def make_read_only() -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)

    try:
        yield make_read_only
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
