"""Run an exec plugin and keep the credential it gave.

Many calls that need a credential at once share one run. The run is a task of its own, so a caller that gives up does not kill
what the others wait for; it has a deadline, and a plugin that misses it is killed with everything it started (I13). The plugin
gets no terminal and no stdin, its secrets travel in the environment and on stdout, never in argv that we add (I9).
"""

import asyncio
import base64
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from applecart.clock import Clock
from applecart.errors import BadInput, ControlPlaneFault, DeadlineExceeded
from applecart.kube.auth.credentials import ClientCertificate, Credential
from applecart.kube.auth.kubeconfig import KubeconfigEntry
from applecart.kube.endpoint import Endpoint
from applecart.secrets import MASK, Secret, redact

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
SHOWN_STDERR_CHARS = 300  # enough for the last line or two, where plugins put the reason

_SECRET_NAME = re.compile(r"secret|token|password|passphrase|credential|key", re.IGNORECASE)
_SECRET_ASSIGNMENT = re.compile(r"(?i)((?:secret|token|password|passphrase|key)[\"']?\s*[=:]\s*[\"']?)[^\s\"',]+")
_LONG_WORD = re.compile(r"[A-Za-z0-9_+/=.~-]{20,}")  # shorter words are hardly ever a credential that is in use

DEADLINE_S = 30.0  # cloud plugins that ask a token service take 1 to 5 s; more means that it hangs
MAX_STDOUT_BYTES = 1 << 20  # a token and a certificate chain are a few kB
KEPT_STDERR_BYTES = 4096


class ExecPluginFailed(ControlPlaneFault):
    """The plugin ran and gave no usable credential; it may do so later."""


class _Env(msgspec.Struct):
    name: str
    value: str = ""


class ExecFields(msgspec.Struct, rename="camel"):
    """The field exec of a user entry."""

    command: str = ""
    api_version: str = ""
    args: list[str] = []
    env: list[_Env] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class ExecPlugin(msgspec.Struct, frozen=True):
    """A plugin that can be started."""

    command: str  # a bare name is looked up in PATH
    args: tuple[str, ...]
    env: tuple[tuple[str, str | Secret], ...]  # values of secret-like names are Secrets
    api_version: str
    info: str  # KUBERNETES_EXEC_INFO
    hint: str  # how to install it, as a part of a sentence; may be empty
    entry: KubeconfigEntry

    @property
    def place(self) -> str:
        return f"the exec plugin {_one_line(Path(self.command).name)} ({self.entry.field('exec.command')})"


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


def exec_plugin(fields: ExecFields, entry: KubeconfigEntry, cluster_info: dict[str, Any]) -> ExecPlugin:
    """The plugin that a user entry describes."""
    if not fields.command:
        raise BadInput(f"{entry.field('exec.command')} is missing; name the plugin to run")
    if fields.api_version not in (V1, V1BETA1):
        raise BadInput(f"{entry.field('exec.apiVersion')} must be {V1} or {V1BETA1}; set the one that the plugin speaks")
    if fields.interactive_mode == "Always":
        raise BadInput(
            f"{entry.field('exec.interactiveMode')} is Always, but applecart has no terminal to offer; "
            "use a plugin that works without one, and IfAvailable or Never"
        )
    if fields.interactive_mode not in ("", "Never", "IfAvailable"):
        raise BadInput(f"{entry.field('exec.interactiveMode')} must be Never, IfAvailable or Always")
    words = [fields.command, *fields.args, *(text for env in fields.env for text in (env.name, env.value))]
    if any("\0" in word or not _is_utf8(word) for word in words):
        raise BadInput(f"{entry.field('exec')} holds a character that no command line can carry; correct it")
    if any(not env.name or "=" in env.name for env in fields.env):
        raise BadInput(f"{entry.field('exec.env')} holds a variable without a usable name; name each one")
    spec: dict[str, Any] = {"interactive": False}
    if fields.provide_cluster_info:
        spec["cluster"] = cluster_info
    return ExecPlugin(
        command=str(entry.path(fields.command)) if "/" in fields.command else fields.command,
        args=tuple(fields.args),
        env=tuple((env.name, Secret(env.value) if _SECRET_NAME.search(env.name) else env.value) for env in fields.env),
        api_version=fields.api_version,
        info=_encoded({"apiVersion": fields.api_version, "kind": "ExecCredential", "spec": spec}, entry),
        hint=_one_line(fields.install_hint),
        entry=entry,
    )


def cluster_info(endpoint: Endpoint, config: Any) -> dict[str, Any]:
    """What a plugin that asks for it learns of the cluster. `config` is the cluster's own extension for plugins."""
    info = {
        "server": endpoint.server,
        "tls-server-name": endpoint.tls_server_name,
        "insecure-skip-tls-verify": endpoint.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(endpoint.ca_pem.encode()).decode(),
        "proxy-url": endpoint.proxy_url,
        "disable-compression": endpoint.disable_compression,
        "config": config,
    }
    return {name: value for name, value in info.items() if value}


def credential_from(stdout: bytes, plugin: ExecPlugin, impersonation: tuple[tuple[str, str], ...] = ()) -> Credential:
    """The credential in a plugin's answer."""

    def failed(what: str) -> ExecPluginFailed:
        return ExecPluginFailed(f"{plugin.place} {what}{_hint(plugin)}")

    try:
        answer = msgspec.json.decode(stdout, type=_Answer)
    except msgspec.ValidationError as error:
        field = str(error).partition(" - at `$.")[2].rstrip("`")
        what = f"an ExecCredential whose field {field} has the wrong form" if field else "JSON that is no ExecCredential"
        raise failed(f"answered {what}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        what = "something that is not JSON" if stdout.strip() else "nothing"
        raise failed(f"answered {what}; run it by hand and see what it prints") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise failed(f"did not answer an ExecCredential of {plugin.api_version}; set exec.apiVersion to what it speaks")
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise failed("answered without a credential: fields status.token and status.clientCertificateData are empty")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise failed("answered only one of status.clientCertificateData and status.clientKeyData")
    token = Secret(status.token.strip()) if status.token else None
    if token is not None and not (token.reveal().isascii() and token.reveal().isprintable() and token):
        raise failed("answered a field status.token that cannot stand in a header")
    if status.expiration_timestamp is not None and status.expiration_timestamp.tzinfo is None:
        raise failed("answered a field status.expirationTimestamp without a time zone")
    certificate = None
    if status.client_certificate_data:
        certificate = ClientCertificate(
            status.client_certificate_data,
            Secret(status.client_key_data),
            f"status.clientCertificateData of {plugin.place}",
            f"status.clientKeyData of {plugin.place}",
        )
    shape = " and ".join(name for name, part in (("token", token), ("client certificate", certificate)) if part)
    return Credential(f"{shape} of {plugin.place}", token, None, certificate, impersonation, status.expiration_timestamp)


def refresh_at(fetched_at: datetime, expires_at: datetime) -> datetime:
    """When to fetch the next credential: a while before the end, but never so early that a short-lived one is never used."""
    margin = min(timedelta(seconds=60), (expires_at - fetched_at) / 10)  # 60 s: a call's deadline and some clock skew
    return expires_at - max(margin, timedelta())


def missing(plugin: ExecPlugin, reason: str) -> BadInput:
    """Not a fault that passes: somebody must install the plugin or correct the field."""
    fix = _hint(plugin) or "; install it or correct that field"
    return BadInput(f"{plugin.place} cannot be started ({reason}){fix}")


def exited(plugin: ExecPlugin, status: int, stderr: bytes) -> ExecPluginFailed:
    ending = f"exited with status {status}" if status >= 0 else f"was ended by signal {-status}"
    said = shown_stderr(stderr, plugin)
    return ExecPluginFailed(f"{plugin.place} {ending}{f' and said: {said}' if said else ''}{_hint(plugin)}")


def shown_stderr(stderr: bytes, plugin: ExecPlugin) -> str:
    """The end of what a plugin complained about, without anything that may be a secret.

    A plugin prints what it likes. Registered values are masked, and so are values given to secret-like names and words that
    look like a token: rather too much than too little.
    """
    text = redact(_one_line(stderr.decode("utf-8", "replace")))
    for _, value in plugin.env:
        if value and isinstance(value, Secret):
            text = text.replace(value.reveal(), MASK)
    text = _LONG_WORD.sub(_masked_if_opaque, _SECRET_ASSIGNMENT.sub(rf"\1{MASK}", text))
    return text if len(text) <= SHOWN_STDERR_CHARS else f"...{text[-SHOWN_STDERR_CHARS:]}"


def _masked_if_opaque(word: re.Match[str]) -> str:
    """Paths, host names and sentences stay; random letters and digits go."""
    text = word.group()
    mixed = any(map(str.isdigit, text)) and any(map(str.isupper, text)) and any(map(str.islower, text))
    unbroken = max(re.split("[/.]", text), key=len)
    dense = len(unbroken) >= 20 and any(map(str.isdigit, unbroken)) and any(map(str.isalpha, unbroken))
    return MASK if mixed or dense else text


def _hint(plugin: ExecPlugin) -> str:
    return f"; {plugin.hint}" if plugin.hint else ""


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encoded(document: dict[str, Any], entry: KubeconfigEntry) -> str:
    try:
        return msgspec.json.encode(document).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise BadInput(f"the cluster extension for the exec plugin of {entry.place} is not plain data; correct it") from None


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
