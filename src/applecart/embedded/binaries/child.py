"""One child process: started in its own group, logged to a file, ended for certain.

A terminal's Ctrl-C does not reach it, so its owner decides the order in which children stop. It is a plain process that no
event loop owns: one loop may start it and another stop it. On Linux it also dies when the thread that started it does, so
start children from a thread that lasts (the main one). Never signals a process that it did not start or that has ended.

Ready is an answer of the program itself, not a process that exists. The wait for it ends in one sentence when the program ends
first or does not answer in time (I10), with the last lines of its log, because that is where a person would look next.
"""

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from applecart.embedded.binaries import die_with_parent
from applecart.embedded.trust.pki import PairFiles
from applecart.errors import BadInput, ControlPlaneFault, DeadlineExceeded

POLL_S = 0.02  # how soon an ended child is noticed; one system call each time
ASK_AGAIN_S = 0.05  # a start takes seconds; 50 ms more is not felt
ANSWER_TIMEOUT_S = 2.0  # a probe that hangs must not hide that its program ended
TAIL_BYTES = 8192  # enough for the last lines of a log, whatever the log's size
TAIL_LINES = 3  # programs of Kubernetes say why they end on the last line or two
TAIL_LINE_CHARACTERS = 400  # keeps a sentence readable when a log line is a whole object
PASSED_ENVIRONMENT = ("PATH", "HOME", "TMPDIR")  # nothing else: a proxy or ETCD_* of the caller's shell would change them


class Child:
    """A running or ended program."""

    def __init__(self, name: str, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    def start(cls, program: Path, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> "Child":
        if not os.access(program, os.X_OK) or not program.is_file():
            raise BadInput(f"{program} is missing or not executable; it is needed to start {program.name}")
        passed = {key: os.environ[key] for key in PASSED_ENVIRONMENT if key in os.environ}
        wrapper = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*wrapper, str(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**passed, **(environment or {})},
                cwd=log.parent,
                process_group=0,
            )
        return cls(program.name, log, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def tail(self) -> str:
        """The last lines of its log as one line."""
        with self.log.open("rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        told = [line.strip()[:TAIL_LINE_CHARACTERS] for line in lines if line.strip()]
        return " | ".join(told[-TAIL_LINES:]) or "(nothing)"

    async def ended(self) -> int:
        """Wait until it ends; its exit code, negative for the signal that ended it."""
        while (code := self.exit_code) is None:  # noqa: ASYNC110 - nothing wakes us for a process that no loop owns
            await asyncio.sleep(POLL_S)
        return code

    async def stop(self, grace_s: float) -> None:
        """Ask it to end, and kill it when it has not after the grace period or when we may not wait that long."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self.ended()
        except TimeoutError:
            pass
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.exit_code is None:  # not reaped yet, so the id still is this child's
            os.killpg(self._process.pid, number)


def client_context(authority_pem: bytes, client: PairFiles | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority_pem.decode("ascii"))
    if client:
        context.load_cert_chain(client.certificate, client.key)
    return context


async def wait_ready(child: Child, urls: Sequence[str], context: ssl.SSLContext | None, timeout_s: float) -> None:
    """Return once every URL has answered 200."""
    tls = context if context else True
    connector = aiohttp.TCPConnector(ssl=tls)
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(ANSWER_TIMEOUT_S)) as session,
        ):
            for url in urls:
                while not await _answers(session, url):
                    refuse_ended(child)
                    await asyncio.sleep(ASK_AGAIN_S)
    except TimeoutError:
        raise DeadlineExceeded(
            f"{child.name} is not ready after {timeout_s:g} s; its log {child.log} ends with: {child.tail()}"
        ) from None


def refuse_ended(child: Child) -> None:
    if (code := child.exit_code) is not None:
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        raise ControlPlaneFault(f"{child.name} ended with {how}; its log {child.log} ends with: {child.tail()}")


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
