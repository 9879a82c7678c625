"""What runs beside the requests goes on after a surprise, and says so."""

import asyncio
import errno
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.relay.metrics import Scrapes
from applecart.embedded.relay.relay import running_relay
from applecart.embedded.server import maintenance, request_log
from applecart.embedded.server.core import Core
from applecart.embedded.server.crd_lifecycle import Definitions
from applecart.embedded.server.data_folder import make_data_folder
from applecart.embedded.server.in_process import InProcessTransport
from applecart.embedded.server.maintenance import (
    CHECKPOINT_ABOVE_BYTES,
    CHECKPOINT_EVERY_S,
    COMPACT_EVERY_S,
    TRUNCATE_ABOVE_BYTES,
    Maintenance,
)
from applecart.embedded.server.request_log import RequestLog
from applecart.embedded.server.server import RunningApi
from applecart.embedded.store.log import StoreFailed
from applecart.embedded.store.sqlite_log import SqliteLog
from applecart.kube.client import Client
from applecart.kube.transport import Request
from tests.kube.embedded_api import serving
from tests.kube.objects import config_map
from tests.virtual_time import elapse

TASKS = {
    "definitions": (Definitions, "_clean_up"),
    "compaction": (Maintenance, "_compact"),
    "checkpoints": (Maintenance, "_checkpoint"),
    "memory": (maintenance, "_give_memory_back"),
    "usage of nodes": (Scrapes, "_take"),
}
SURPRISES = (asyncio.CancelledError(), sqlite3.OperationalError("locked"), OSError(errno.EMFILE, "too many open files"))


async def test_whatever_surprises_a_task_of_the_server_is_told_and_it_goes_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen: one `sqlite3.OperationalError` ended maintenance without a word, and then nothing bounded the log. Each task had a
    net of its own afterwards, and every one of them let a cancellation from within through. A new task needs a row."""
    surprises: dict[str, list[BaseException]] = {}
    for name, (place, callee) in TASKS.items():
        monkeypatch.setattr(place, callee, surprised(getattr(place, callee), surprises.setdefault(name, [])))
    async with background_of_a_server(tmp_path, clock) as (core, transport):
        assert {task.name for task in core.background.tasks} == TASKS.keys()
        for name in TASKS:
            for surprise in SURPRISES:
                surprises[name].append(surprise)
                await transport.send(Request("POST", DEFINITIONS, body=msgspec.json.encode(DEFINITION)))
                await transport.send(Request("DELETE", f"{DEFINITIONS}/things.example.com"))
                async with asyncio.timeout(400):
                    while surprises[name]:  # also the ones after the first: the task goes on
                        await elapse(0.2)
                assert (core.background.down() or "").startswith(f"{name} is down"), (name, surprise)
                assert (await transport.send(Request("GET", "/readyz"))).status == 500, (name, surprise)
                assert (await transport.send(Request("GET", "/livez"))).status == 200, (name, surprise)
                assert [one.message for one in caplog.records] == ["a background task ended, starting it again"]
                caplog.clear()
                await elapse(5)
                assert (await transport.send(Request("GET", "/readyz"))).status == 200, (name, surprise)
                assert (await transport.send(Request("GET", f"{DEFINITIONS}/things.example.com"))).status == 404


def surprised(callee: Any, surprises: list[BaseException]) -> Any:
    async def wrapped(*arguments: Any) -> Any:
        if surprises:
            raise surprises.pop()
        return await callee(*arguments)

    return wrapped


@asynccontextmanager
async def background_of_a_server(folder: Path, clock: Clock) -> AsyncIterator[tuple[Core, InProcessTransport]]:
    """All that runs beside the requests of an embedded server, on virtual time."""
    async with serving(clock) as running:
        log = SimpleNamespace(compacted=0, wal_bytes=0)
        Maintenance(running.core, cast(SqliteLog, log))
        authority = make_data_folder(folder).authority(clock.now())
        shown = make_data_folder(folder).issue_kubelet_client(authority, clock.now())
        async with running_relay(running.core, shown, authority.certificate_pem):
            yield running.core, running.transport()


class Disk:
    """What maintenance asks of a log on disk."""

    def __init__(self, running: RunningApi) -> None:
        self.wal_bytes = 0
        self.checkpoints: list[str] = []
        self._log = running.store._log

    @property
    def compacted(self) -> int:
        return self._log.compacted

    async def checkpoint(self, *, truncate: bool = False) -> None:
        self.checkpoints.append("truncate" if truncate else "passive")


async def test_the_log_is_bounded_and_keeps_a_round_of_the_past_and_some_revisions(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "KEPT_REVISIONS", 10)
    async with serving(clock, ["ci"]) as running:
        client = Client(running.transport(), clock)
        disk = Disk(running)
        Maintenance(running.core, cast(SqliteLog, disk))
        await elapse(1)
        for name in range(30):
            await client.create(config_map("ci", f"a-{name}"))
        early = running.store.revision
        await elapse(COMPACT_EVERY_S)
        assert disk.compacted == early - 30, "what was written in this round can still be read as it was"
        await elapse(COMPACT_EVERY_S)
        assert disk.compacted == early - 10
        for name in range(30):
            await client.create(config_map("ci", f"b-{name}"))
        await elapse(COMPACT_EVERY_S)
        assert disk.compacted == early
        for size_bytes, expected in (
            (CHECKPOINT_ABOVE_BYTES, []),
            (CHECKPOINT_ABOVE_BYTES + 1, ["passive"]),
            (TRUNCATE_ABOVE_BYTES + 1, ["passive", "truncate"]),
        ):
            disk.wal_bytes = size_bytes
            disk.checkpoints.clear()
            await elapse(CHECKPOINT_EVERY_S)
            assert disk.checkpoints == expected


async def test_what_runs_beside_the_requests_ends_with_the_store(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise StoreFailed("the disk is full")

    async with serving(clock) as running:
        running.store._fail(StoreFailed("the disk is full"))
        running.core.background.add("broken", broken)
        await elapse(100)
    assert not caplog.records


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def test_a_definition_whose_cleaning_up_fails_once_is_gone_in_the_end(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clean_up, failures = Definitions._clean_up, [RuntimeError("a surprise")]

    async def surprised(definitions: Definitions, name: str) -> bool:
        if failures:
            raise failures.pop()
        return await clean_up(definitions, name)

    monkeypatch.setattr(Definitions, "_clean_up", surprised)
    async with serving(clock) as running:
        transport = running.transport()
        await transport.send(Request("POST", DEFINITIONS, body=msgspec.json.encode(DEFINITION)))
        await transport.send(Request("DELETE", f"{DEFINITIONS}/things.example.com"))
        await elapse(5)
        assert (await transport.send(Request("GET", f"{DEFINITIONS}/things.example.com"))).status == 404
    assert "cannot clean up behind things.example.com" in str(caplog.records[0].exc_info)


@pytest.mark.real_time
def test_a_request_log_that_cannot_be_written_drops_lines_and_is_written_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One full disk ended it until the next start of the server."""
    write_to, failures = RequestLog._write_to, [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("a surprise")]

    def surprised(log: RequestLog, file: Path) -> bool:
        if failures:
            raise failures.pop()
        is_well.set()
        return write_to(log, file)

    is_well = threading.Event()
    monkeypatch.setattr(RequestLog, "_write_to", surprised)
    monkeypatch.setattr(request_log, "AGAIN_IN_S", 0.0)
    log_file = tmp_path / "requests.jsonl"
    log = RequestLog(log_file, clock)
    assert is_well.wait(20)
    log.write("GET", "/api", "somebody", 200, None, 0.0)
    log.close()
    texts = [one.message for one in caplog.records]
    assert texts == ["requests cannot be logged, trying again later", "trying to log requests again"] * 2
    surprise, known = [one.exc_info[1] for one in caplog.records if one.exc_info]
    assert str(surprise) == "a surprise"
    assert repr(known) == f"Transient('{log_file} cannot be written: No space left on device')"  # no traceback
    assert b"/api" in log_file.read_bytes()


@pytest.mark.real_time
def test_a_request_log_that_cannot_be_written_ends_with_its_server_and_fills_no_memory(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def surprised(_: RequestLog, __: Path) -> bool:
        raise RuntimeError("a surprise")

    monkeypatch.setattr(RequestLog, "_write_to", surprised)
    log = RequestLog(tmp_path / "requests.jsonl", clock)
    for _ in range(100):
        log.write("GET", "/api", "somebody", 200, None, 0.0)
    log.close()
    assert log._lines.empty()
    assert [one.fields["dropped"] for one in caplog.records if "dropped" in one.fields] == [100]  # type: ignore[attr-defined]
