"""What runs beside the requests goes on after a surprise, and says so."""

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest

from applecart.clock import Clock
from applecart.embedded.server.crd_lifecycle import Definitions
from applecart.embedded.server.maintenance import every
from applecart.embedded.server.request_log import RequestLog
from applecart.embedded.store.log import StoreFailed
from applecart.kube.transport import Request
from tests.kube.embedded_api import serving
from tests.virtual_time import elapse


async def test_maintenance_goes_on_after_an_error_and_says_it(caplog: pytest.LogCaptureFixture) -> None:
    """Seen once: one `sqlite3.OperationalError` ended the task without a word, and then nothing bounded the log."""
    ends: list[Exception | None] = [sqlite3.OperationalError("locked"), None, OSError("gone"), None]
    done: list[int] = []

    async def work() -> None:
        done.append(len(done))
        if error := ends[len(done) - 1] if len(done) <= len(ends) else None:
            raise error

    task = asyncio.create_task(every(5.0, work))
    await elapse(21)
    assert done == [0, 1, 2, 3]
    assert [one.message for one in caplog.records] == ["maintenance of the store failed; tried again soon"] * 2

    task.cancel()


async def test_maintenance_ends_with_its_store() -> None:
    async def work() -> None:
        raise StoreFailed("the disk is full")

    await asyncio.wait_for(every(5.0, work), 6.0)


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
    assert [one.message for one in caplog.records] == ["cleaning up behind a definition failed; tried again soon"]


@pytest.mark.real_time
def test_a_request_log_that_fails_is_given_up_with_a_word_and_fills_no_memory(
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
    assert [one.message for one in caplog.records] == ["requests are no longer logged"]
