"""Run an exec plugin and keep the credential it gave.

Many calls that need a credential at once share one run. The run is a task of its own, so a caller that gives up does not kill
what the others wait for; it has a deadline, and a plugin that misses it is killed with everything it started (I13). The plugin
gets no terminal and no stdin, its secrets travel in the environment and on stdout, never in argv that we add (I9).
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping
from datetime import datetime

from applecart.clock import Clock
from applecart.errors import DeadlineExceeded
from applecart.kube.auth.credentials import Credential
from applecart.kube.auth.exec_protocol import ExecPlugin, ExecPluginFailed, credential_from, exited, missing, refresh_at
from applecart.secrets import Secret

DEADLINE_S = 30.0  # cloud plugins that ask a token service take 1 to 5 s; more means that it hangs
MAX_STDOUT_BYTES = 1 << 20  # a token and a certificate chain are a few kB
KEPT_STDERR_BYTES = 4096


class ExecCredentials:
    def __init__(
        self,
        plugin: ExecPlugin,
        clock: Clock,
        environ: Mapping[str, str],
        impersonation: tuple[tuple[str, str], ...] = (),
        *,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._plugin = plugin
        self._clock = clock
        self._environ = environ
        self._impersonation = impersonation
        self._deadline_s = deadline_s
        self._credential: Credential | None = None
        self._refresh_at: datetime | None = None
        self._run: asyncio.Task[Credential] | None = None

    async def get(self, rejected: Credential | None = None) -> Credential:
        known = self._credential
        is_due = self._refresh_at is not None and self._clock.now() >= self._refresh_at
        if known is not None and known is not rejected and not is_due:
            return known
        if self._run is None:
            self._run = asyncio.create_task(self._fetch())
            self._run.add_done_callback(self._forget_run)
        return await asyncio.shield(self._run)

    async def aclose(self) -> None:
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])

    async def _fetch(self) -> Credential:
        stdout = await run_plugin(self._plugin, self._environ, self._deadline_s)
        credential = credential_from(stdout, self._plugin, self._impersonation)
        now = self._clock.now()
        self._refresh_at = refresh_at(now, credential.expires_at) if credential.expires_at else None
        self._credential = credential
        return credential

    def _forget_run(self, run: asyncio.Task[Credential]) -> None:
        self._run = None
        if not run.cancelled():
            run.exception()  # whoever waited has it; when nobody did, it is not a lost exception either


async def run_plugin(plugin: ExecPlugin, environ: Mapping[str, str], deadline_s: float) -> bytes:
    """What the plugin printed, if it ended well and in time."""
    own = {name: value.reveal() if isinstance(value, Secret) else value for name, value in plugin.env}
    env = {**environ, **own, "KUBERNETES_EXEC_INFO": plugin.info}
    found = shutil.which(plugin.command, path=env.get("PATH"))
    if found is None:
        raise missing(plugin, "no such program, or not executable" if "/" in plugin.command else "not found in PATH")
    # A task of its own: asyncio loses track of a process whose creation is cancelled halfway.
    starting = asyncio.create_task(_start(found, plugin, env))
    try:
        async with asyncio.timeout(deadline_s):
            process = await asyncio.shield(starting)
            stdout, stderr, status = await _output(process)
    except BaseException as error:
        if not starting.done() or starting.exception() is None:
            await _kill_group(await starting)
        if isinstance(error, TimeoutError):
            raise DeadlineExceeded(f"{plugin.place} did not end within {deadline_s:g} s and was killed") from None
        raise
    if status != 0:
        raise exited(plugin, status, stderr)
    if len(stdout) > MAX_STDOUT_BYTES:
        raise ExecPluginFailed(f"{plugin.place} printed more than {MAX_STDOUT_BYTES >> 20} MiB; run it by hand")
    return stdout


async def _start(command: str, plugin: ExecPlugin, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            command,
            *plugin.args,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # its own process group, so that what it started can be killed with it
        )
    except OSError as error:
        raise missing(plugin, error.strerror or "the system refuses to run it") from None


async def _output(process: asyncio.subprocess.Process) -> tuple[bytes, bytes, int]:
    assert process.stdout is not None
    assert process.stderr is not None
    return await asyncio.gather(
        _head(process.stdout, MAX_STDOUT_BYTES + 1), _tail(process.stderr, KEPT_STDERR_BYTES), process.wait()
    )


async def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Also when the plugin itself is gone: something it started may still hold its pipes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _head(stream: asyncio.StreamReader, limit: int) -> bytes:
    """The first bytes; the rest is read and dropped, so that the writer is never stuck."""
    kept = b""
    while chunk := await stream.read(1 << 16):
        kept += chunk[: limit - len(kept)]
    return kept


async def _tail(stream: asyncio.StreamReader, limit: int) -> bytes:
    kept = b""
    while chunk := await stream.read(1 << 16):
        kept = (kept + chunk)[-limit:]
    return kept
