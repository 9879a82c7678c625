"""The store under test, once per log: in memory on virtual time, and on disk with its writer thread.

The same contract must hold on both. `reopen` ends a store and starts another on the same log, as a restart does.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.clock import VirtualLoop
from applecart.embedded.store.log import Log
from applecart.embedded.store.record import NOTHING, Op, Record, Traits
from applecart.embedded.store.sealing import load_or_make_key
from applecart.embedded.store.sqlite_log import SqliteLog
from applecart.embedded.store.store import Store
from tests.embedded.memory_log import MemoryLog

MEMORY, SQLITE = "memory", "sqlite"

_loop_of_running_test: Callable[[], asyncio.AbstractEventLoop] = VirtualLoop


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _loop_of_running_test
    on_disk = SQLITE in item.name or item.get_closest_marker("real_time") is not None
    _loop_of_running_test = asyncio.new_event_loop if on_disk else VirtualLoop


@pytest.hookimpl(tryfirst=True)
def pytest_asyncio_loop_factories(item: pytest.Function) -> dict[str, Callable[[], asyncio.AbstractEventLoop]] | None:
    if "opened" not in item.fixturenames:
        return None
    return {"of-the-log": lambda: _loop_of_running_test()}


class Opened:
    """A store, and how tests write to it."""

    def __init__(self, make_log: Callable[[], Log]) -> None:
        self._make_log = make_log
        self.open()

    def open(self) -> None:
        self.log = self._make_log()
        self.store = Store(self.log, take_in)
        self.store.start()

    async def reopen(self) -> None:
        await self.store.aclose()
        self.open()

    def put(self, name: str, body: str = "{}", *, namespace: str = "ns", label: str = "things") -> "asyncio.Future[None]":
        key = Key(namespace, name)
        op = Op.ADDED if self.store.table(label).tip(key) is None else Op.MODIFIED
        return self.store.write(label, op, self.record(key, body))

    def delete(self, name: str, *, namespace: str = "ns", label: str = "things") -> "asyncio.Future[None]":
        return self.store.write(label, Op.DELETED, self.record(Key(namespace, name), '{"gone":1}'))

    def record(self, key: Key, body: str) -> Record:
        return Record(key, self.store.next_revision(), body.encode(), Traits("", NOTHING, NOTHING))

    def state(self, label: str = "things") -> dict[str, bytes]:
        return {record.key.name: record.value for record in self.store.table(label).records()}


def take_in(label: str, value: bytes) -> tuple[bytes, Traits]:
    return value, Traits("", NOTHING, NOTHING)


@pytest.fixture(params=[MEMORY, SQLITE])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    memory = MemoryLog()

    def make_log() -> Log:
        if request.param == MEMORY:
            return memory
        return SqliteLog(tmp_path / "store.db", load_or_make_key(tmp_path / "secrets.key"))

    under_test = Opened(make_log)
    yield under_test
    await under_test.store.aclose()
