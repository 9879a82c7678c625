"""`applecart api status`: whether the API runs, and what its data folder holds. Changes nothing.

Exit code 0 means that it runs and answers, 1 that it does not, so that scripts can ask.
"""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from cryptography import x509

from applecart.cli.api.database import DatabaseFacts, read_facts
from applecart.cli.api.reach import data_option
from applecart.clock import Clock, SystemClock
from applecart.embedded.server.data_folder import DataFolder, existing_data_folder
from applecart.errors import ApplecartError
from applecart.kube.auth.expiry import spoken_age
from applecart.kube.connect import connect
from applecart.kube.transport import Request

DEADLINE_S = 5.0  # a person or a probe waits


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """What we found out. The JSON output has these fields."""

    data: str
    pid: int | None  # None: no process holds the folder
    server: str | None
    version: str | None  # None: it does not answer
    problem: str | None  # why it does not
    database: DatabaseFacts
    database_bytes: int
    wal_bytes: int
    last_backup: datetime | None  # None: never, or not from this folder
    server_certificate_ends: datetime | None
    authority_ends: datetime | None

    @property
    def is_running(self) -> bool:
        return self.version is not None


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = "unknown"


@click.command("status")
@data_option()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(data: Path, output: str) -> int:
    """Say whether the API runs, and what its data folder holds; exit code 0 when it answers, 1 when not.

    \b
    Example:
      applecart api status --data build/api
    """
    clock = SystemClock()
    found = asyncio.run(look(existing_data_folder(data), clock))
    click.echo(msgspec.json.encode(found).decode() if output == "json" else text(found, clock.now()))
    return 0 if found.is_running else 1


async def look(folder: DataFolder, clock: Clock) -> Status:
    pid = folder.holder()
    version, problem = await _ask(folder, clock) if pid is not None else (None, None)
    return Status(
        data=str(folder.folder),
        pid=pid,
        server=folder.address.read_text().strip() if pid is not None and folder.address.exists() else None,
        version=version,
        problem=problem,
        database=await asyncio.to_thread(read_facts, folder.database),
        database_bytes=size_of(folder.database),
        wal_bytes=size_of(folder.database.with_name(f"{folder.database.name}-wal")),
        last_backup=changed_at(folder.last_backup),
        server_certificate_ends=end_of(folder.server_files.certificate),
        authority_ends=end_of(folder.authority_files.certificate),
    )


async def _ask(folder: DataFolder, clock: Clock) -> tuple[str | None, str | None]:
    """The version that the server says it is, or why it says none."""
    try:
        transport = connect(str(folder.admin_kubeconfig), None, clock)
        try:
            answer = await transport.send(Request("GET", "/version", deadline_s=DEADLINE_S))
        finally:
            await transport.aclose()
    except ApplecartError as error:
        return None, str(error)
    try:
        return msgspec.json.decode(answer.body, type=_Version).git_version, None
    except msgspec.MsgspecError:
        return None, f"it answers {answer.status} to /version"


def text(found: Status, now: datetime) -> str:
    """The findings for a terminal."""
    if found.is_running:
        state = f"running (process {found.pid})"
    elif found.pid is not None:
        state = f"held by process {found.pid}, which does not answer: {found.problem}"
    else:
        state = "not running"
    facts = found.database
    lines = {
        "state": state,
        "data": found.data,
        "server": found.server,
        "version": found.version,
        "revision": f"{facts.revision} (history since {facts.compacted})",
        "database": f"{megabytes(found.database_bytes)}, write-ahead log {megabytes(found.wal_bytes)}",
        "backup": spoken(found.last_backup, now) if found.last_backup else "none from this folder",
        "certificate": spoken(found.server_certificate_ends, now),
        "authority": spoken(found.authority_ends, now),
        "objects": f"{sum(facts.objects.values())}",
        **{f"  {label}": str(count) for label, count in facts.objects.items()},
    }
    width = max(len(name) for name in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items() if value is not None)


def spoken(instant: datetime | None, now: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ} ({spoken_age(instant, now)})" if instant else "not known"


def megabytes(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.1f} MiB"


def size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def changed_at(file: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(os.stat(file).st_mtime, UTC)
    except OSError:
        return None


def end_of(certificate: Path) -> datetime | None:
    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return None
