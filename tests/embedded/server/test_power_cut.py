"""A server that is killed at any moment under 32 writers keeps every write it acknowledged and repeats no revision.

A kill shows the order of things (durable, then visible, then acknowledged), inside a commit too; what a disk itself forgets
when the power goes is up to the disk, which is asked for a full synchronisation.
"""

import asyncio
import random
import signal
from pathlib import Path

import pytest

from applecart.api.core import ConfigMap
from applecart.clock import SystemClock
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.informer import Informer, Tuning
from tests.embedded.server.power_cut_clients import NAMESPACE, Writer, follow, listed
from tests.embedded.server.power_cut_ledger import GONE, Ledger
from tests.embedded.server.power_cut_servers import nursery
from tests.kube.chaos_history import History, state_of
from tests.soak import seeds, soaks

ROUNDS = soaks(8, 100)  # at least; a slow machine gets less done in one and plays more
MOST_ROUNDS = ROUNDS * 20
WRITERS = 32
MOMENTS = ("never", "before", "during", "after")  # never: the test kills, between any two of its own steps
MOST_ACKNOWLEDGED = 150  # writes of a round, before the test kills
MOST_COMMITS = 12
IMPATIENT = Tuning(watch_s=60, pace=Backoff(first_s=0.01, longest_s=0.05))
CONVERGES_WITHIN_S = 60.0
STOPPED_BY_KILL = -signal.SIGKILL


@pytest.mark.real_time
async def test_over_many_power_cuts_no_acknowledged_write_is_lost_and_no_revision_is_given_out_twice(tmp_path: Path) -> None:
    ledger = Ledger()
    chance = random.Random(seeds(1, soak=1)[0])
    clock = SystemClock()
    histories = [History(), History()]
    following: list[asyncio.Task[None]] = []
    with nursery(tmp_path / "data") as servers:
        servers.start("never", 0)
        client = Client(connect(str(tmp_path / "data" / "admin.kubeconfig"), None, clock, environ={}), clock)
        transport = client.transport
        informers = [Informer(client, ConfigMap, NAMESPACE, tuning=IMPATIENT) for _ in histories]
        for informer, history in zip(informers, histories, strict=True):
            informer.on_change(history.take)
            following.append(asyncio.create_task(informer.run()))
        for number in range(MOST_ROUNDS):
            revision, state = await listed(transport)
            ledger.check_list(state)
            assert ledger.problems == []
            moment = MOMENTS[number % len(MOMENTS)]
            if moment == "never" and number >= ROUNDS and went_through_enough(ledger):
                break
            wanted = ledger.acknowledged_count + chance.randint(1, MOST_ACKNOWLEDGED)

            def acknowledged(wanted: int = wanted, moment: str = moment) -> None:
                if moment == "never" and ledger.acknowledged_count == wanted:
                    servers.cut()

            tail = asyncio.create_task(follow(transport, ledger, revision))
            writers = [Writer(transport, ledger, one, acknowledged) for one in range(WRITERS)]
            await asyncio.gather(*(writer.write_until_cut() for writer in writers))
            assert await servers.ended() == STOPPED_BY_KILL
            await tail
            servers.start(MOMENTS[(number + 1) % len(MOMENTS)], chance.randint(1, MOST_COMMITS))
        fresh = state_of(await client.list(ConfigMap, NAMESPACE))
        async with asyncio.timeout(CONVERGES_WITHIN_S):
            for informer in informers:
                await informer.wait_until(lambda informer=informer: state_of(informer) == fresh)  # type: ignore[misc]
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await client.aclose()
        servers.stop()
        assert await servers.ended() == 0
    assert ledger.problems == []
    assert [history.problems for history in histories] == [[], []]
    assert [history.live for history in histories] == [fresh, fresh]
    assert went_through_enough(ledger)


def went_through_enough(ledger: Ledger) -> bool:
    """The proof is only as good as this: writes of every sort, answers that were lost after their commit.

    How many a round brings is up to the machine: a run on a slow one ended four acknowledged writes short of what it demanded.
    """
    was_deleted = GONE in {content for _, content in ledger.told.values()}
    return ledger.acknowledged_count > ROUNDS * WRITERS and ledger.survivors > ROUNDS and was_deleted
