"""The thread beside the loop: in turns, and never for ever."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal
from applecart.embedded.server import worker as worker_module
from applecart.embedded.server.worker import MOST_WAITING, Worker
from tests.embedded.auth.objects_in_memory import ObjectsInMemory

pytestmark = pytest.mark.real_time

ONE, OTHER, ADMIN = User("one"), User("other"), User("admin", (MASTERS,))


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    made = Worker(Authorizer(ObjectsInMemory()))
    yield made
    made.close()


async def test_what_takes_too_long_is_ended_and_the_next_one_runs(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "LONGEST_S", 0.1)

    def endless() -> None:
        while True:
            pass

    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            await worker.run(ONE, endless)
        assert refused.value.code == 413
    monkeypatch.setattr(worker_module, "LONGEST_S", 20.0)
    assert await worker.run(ONE, lambda: 1) == 1


async def test_what_is_raised_there_is_raised_here(worker: Worker) -> None:
    def wrong() -> None:
        raise Refusal(422, "Invalid", "no")

    with pytest.raises(Refusal, match="no"):
        await worker.run(ONE, wrong)


async def test_users_take_turns_and_one_has_only_so_many_waiting(worker: Worker) -> None:
    """A tenant that sends one large request after the other holds up nobody for longer than one of them takes."""
    go, order = threading.Event(), []

    def job(name: str) -> None:
        go.wait(20)
        order.append(name)

    running = [asyncio.create_task(worker.run(ONE, lambda: job("one"))) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.append(asyncio.create_task(worker.run(OTHER, lambda: job("other"))))
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        await worker.run(ONE, lambda: None)
    assert refused.value.code == 429
    running += [asyncio.create_task(worker.run(ADMIN, lambda: job("admin"))) for _ in range(MOST_WAITING + 1)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*running)
    assert order.index("other") == 1
    assert order.index("admin") == 2
    assert len(order) == 2 * MOST_WAITING + 2
