"""Hundreds of bad networks between informers and our server, which is killed under them as well; each ends equal to a list.

Writes go straight to the server and may fail with it; informers follow through the chaos proxy. Everything random of a
schedule comes from its seed; a failure prints the seed and what the proxy did.
"""

import asyncio
import logging
import random
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Key
from applecart.clock import SystemClock
from applecart.embedded.auth.user import MASTERS
from applecart.embedded.trust.pki import load_or_create_authority, write_pair
from applecart.errors import ApplecartError
from applecart.kube.auth.credentials import NO_CREDENTIAL, FixedCredentials
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.endpoint import Endpoint
from applecart.kube.http import HttpTransport
from applecart.kube.informer import Informer, Tuning
from applecart.kube.patch import Merge
from applecart.sim.wire import ChaosProxy
from applecart.sim.wire_faults import Answer, Cut, Delay, Duplicate, HalfClose, LoseAnswer, RandomPlan, Stall
from tests.embedded.server.power_cut_servers import Nursery, nursery
from tests.kube.chaos_history import History, state_of
from tests.kube.objects import config_map
from tests.soak import seeds, soaks

pytestmark = pytest.mark.real_time

SCHEDULES = soaks(40, 500)  # at least; they go on until each kind of fault took part
MOST_SCHEDULES = SCHEDULES * 10
AT_ONCE = 20
MOVES = 8
WRITES_BETWEEN_KILLS = 150
NAMESPACE = "default"
NAMES = ("a", "b", "c", "d")
KINDS = (Answer, LoseAnswer, Cut, HalfClose, Stall, Duplicate, Delay)
IMPATIENT = Tuning(page_size=2, watch_s=5, idle_s=0.5, pace=Backoff(first_s=0.01, longest_s=0.05))
CALL_S = 5.0  # of the informer's calls: a stalled one is given up soon, a slow machine's is not
LOOK_S = 0.2  # how long a schedule waits for the informer or the proxy to do something before its next move
CONVERGES_WITHIN_S = 60.0


class Schedule:
    def __init__(
        self, seed: int, url: str, context: ssl.SSLContext, writer: Client, wrote: Callable[[], Awaitable[None]]
    ) -> None:
        self.proxy = ChaosProxy(url, context=context, plan=RandomPlan(seed, share=0.6, kinds=KINDS))
        self.history = History()
        self._seed = seed
        self._chance = random.Random(seed)
        self._writer = writer
        self._wrote = wrote

    async def play(self) -> None:
        async with self.proxy:
            clock = SystemClock()
            endpoint = Endpoint(server=self.proxy.url, server_from="the chaos proxy")
            client = Client(HttpTransport(endpoint, FixedCredentials(NO_CREDENTIAL), clock, {}), clock, deadline_s=CALL_S)
            informer = Informer(client, ConfigMap, NAMESPACE, labels=f"schedule={self._seed}", tuning=IMPATIENT)
            informer.on_change(self.history.take)
            following = asyncio.ensure_future(informer.run())
            try:
                for _ in range(MOVES):
                    await self._move(informer)
                self.proxy.heal()
                await self._converge(informer)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await client.aclose()

    async def _move(self, informer: Informer[ConfigMap]) -> None:
        """Write something, and then wait for a consequence, strike, or go straight on."""
        await self._write()
        match self._chance.randrange(6):
            case 0 | 1:
                revision = informer.revision
                await first_of(informer.wait_until(lambda: informer.revision != revision))
            case 2:
                await self.proxy.begin_outage()
                await self._write()
                self.proxy.end_outage()
            case 3:
                self.proxy.release()

    async def _write(self) -> None:
        """Create, change or delete. What a kill swallowed is not repeated: the next write finds whatever is there."""
        name = f"{self._chance.choice(NAMES)}-{self._seed}"
        key = Key(NAMESPACE, name)
        version = str(self._chance.random())
        with suppress(ApplecartError):
            match self._chance.randrange(3):
                case 0:
                    await self._writer.delete(ConfigMap, key)
                case 1:
                    await self._writer.patch(ConfigMap, key, Merge({"data": {"version": version}}))
                case _:
                    labels = {"schedule": str(self._seed)}
                    await self._writer.create(config_map(NAMESPACE, name, labels=labels, version=version))
        await self._wrote()

    async def _converge(self, informer: Informer[ConfigMap]) -> None:
        fresh = state_of(await self._writer.list(ConfigMap, NAMESPACE, labels=f"schedule={self._seed}"))
        try:
            async with asyncio.timeout(CONVERGES_WITHIN_S):
                await informer.synced()
                await informer.wait_until(lambda: state_of(informer) == fresh)
        except TimeoutError:
            raise AssertionError(f"{self._story()}\ninformer: {state_of(informer)}\nfresh list: {fresh}") from None
        assert self.history.live == fresh, self._story()
        assert self.history.problems == [], self._story()

    def _story(self) -> str:
        return "\n".join([f"schedule {self._seed}:", *self.proxy.facts, *self.history.problems])


class Killer:
    """Cuts the server off when enough was written since the last time, whoever is in the middle of what."""

    def __init__(self, servers: Nursery) -> None:
        self._servers = servers
        self._writes = 0
        self.kills = 0

    async def wrote(self) -> None:
        self._writes += 1
        if self._writes % WRITES_BETWEEN_KILLS == 0:
            self.kills += 1
            self._servers.cut()
            await self._servers.ended()
            await asyncio.to_thread(self._servers.start, "never", 0)


async def first_of(wanted: Awaitable[None]) -> None:
    """Wait for it, but not long: the moves of a schedule are many."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_S):
            await wanted


async def test_after_any_schedule_of_faults_and_kills_the_informer_equals_a_fresh_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)  # thousands of expected warnings would bury the story of the schedule that failed
    clock = SystemClock()
    struck: Counter[str] = Counter()
    ahead = iter(seeds(MOST_SCHEDULES, soak=MOST_SCHEDULES))
    played = 0
    with nursery(tmp_path / "data") as servers:
        servers.start("never", 0)
        writer = Client(connect(str(tmp_path / "data" / "admin.kubeconfig"), None, clock, environ={}), clock)
        context = admin_context(tmp_path / "data")
        killer = Killer(servers)

        def struck_enough() -> bool:
            """Every kind of fault took part, or the schedules prove less than they say. How often is up to the machine."""
            faults = all(struck[kind.__name__] > SCHEDULES / 20 for kind in KINDS)
            return faults and struck["outages"] > SCHEDULES / 10 and killer.kills >= SCHEDULES / 40

        async def work() -> None:
            nonlocal played
            for seed in ahead:
                if played >= SCHEDULES and struck_enough():
                    return
                played += 1
                schedule = Schedule(seed, f"https://127.0.0.1:{servers.port}", context, writer, killer.wrote)
                await schedule.play()
                struck.update(schedule.proxy.counts)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(work())
        finally:
            await writer.aclose()
    assert struck_enough(), struck


def admin_context(data: Path) -> ssl.SSLContext:
    """The proxy speaks as an administrator; its certificate is issued by the server's own authority."""
    now = SystemClock().now()
    authority = load_or_create_authority(data / "pki", "ca", now)
    files = write_pair(data / "pki", "proxy", authority.issue_client("chaos-proxy", (MASTERS,), now))
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode("ascii"))
    context.load_cert_chain(files.certificate, files.key)
    return context
