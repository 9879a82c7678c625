"""A thousand bad networks between an informer and a real kube-apiserver; after each, the informer equals a fresh list.

Writes go straight to the server, the informer follows through the chaos proxy. Everything random of a schedule comes from its
seed; a failure prints the seed and what the proxy did.
"""

import asyncio
import logging
import random
import ssl
from collections import Counter
from collections.abc import Awaitable

import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Key
from applecart.clock import SystemClock
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
from tests.kube.chaos_history import History, state_of
from tests.kube.objects import config_map
from tests.kubernetes.cluster import FullCluster
from tests.soak import seeds

pytestmark = pytest.mark.kubernetes

SCHEDULES = 1000
AT_ONCE = 25
MOVES = 12
NAMES = ("a", "b", "c", "d")
IMPATIENT = Tuning(page_size=2, watch_s=5, idle_s=0.5, pace=Backoff(first_s=0.01, longest_s=0.05))
CALL_S = 5.0  # of the informer's calls: a stalled one is given up soon, a slow machine's is not
LOOK_S = 0.2  # how long a schedule waits for the informer or the proxy to do something before its next move
CONVERGES_WITHIN_S = 120.0  # milliseconds on a quiet machine; a busy one must not fail the proof


class Schedule:
    def __init__(self, seed: int, cluster: FullCluster, context: ssl.SSLContext, writer: Client, namespace: str) -> None:
        self.seed = seed
        self.proxy = ChaosProxy(cluster.url, context=context, plan=RandomPlan(seed, share=0.6, kinds=KINDS))
        self.history = History()
        self._chance = random.Random(seed)
        self._writer = writer
        self._namespace = namespace
        self._labels = {"schedule": str(seed)}
        self._alive: set[str] = set()

    @property
    def selector(self) -> str:
        return f"schedule={self.seed}"

    async def play(self) -> None:
        async with self.proxy:
            endpoint = Endpoint(server=self.proxy.url, server_from="the chaos proxy")
            clock = SystemClock()
            transport = HttpTransport(endpoint, FixedCredentials(NO_CREDENTIAL), clock, {})
            client = Client(transport, clock, deadline_s=CALL_S)
            informer = Informer(client, ConfigMap, self._namespace, labels=self.selector, tuning=IMPATIENT)
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
        for name in self._alive:
            await self._writer.delete(ConfigMap, self._key(name))

    async def _move(self, informer: Informer[ConfigMap]) -> None:
        """Write something, and then wait for a consequence, strike, or go straight on."""
        await self._write()
        match self._chance.randrange(6):
            case 0 | 1:
                seen = informer.wait_until(lambda: {obj.name for obj in informer} == self._alive)
                await first_of(seen, self.proxy.until_noted(len(self.proxy.facts) + 1))
            case 2:
                await self.proxy.begin_outage()
                await self._write()
                self.proxy.end_outage()
            case 3:
                self.proxy.release()

    async def _write(self) -> None:
        name = self._chance.choice(NAMES)
        full = f"{name}-{self.seed}"
        version = str(self._chance.random())
        if full not in self._alive:
            await self._writer.create(config_map(self._namespace, full, labels=self._labels, version=version))
            self._alive.add(full)
        elif self._chance.random() < 0.5:
            await self._writer.patch(ConfigMap, self._key(full), Merge({"data": {"version": version}}))
        else:
            await self._writer.delete(ConfigMap, self._key(full))
            self._alive.discard(full)

    async def _converge(self, informer: Informer[ConfigMap]) -> None:
        fresh = state_of(await self._writer.list(ConfigMap, self._namespace, labels=self.selector))
        assert {key.name for key in fresh} == self._alive
        try:
            async with asyncio.timeout(CONVERGES_WITHIN_S):
                await informer.synced()
                await informer.wait_until(lambda: state_of(informer) == fresh)
        except TimeoutError:
            raise AssertionError(f"{self._story()}\ninformer: {state_of(informer)}\nfresh list: {fresh}") from None
        assert self.history.live == fresh, self._story()
        assert self.history.problems == [], self._story()

    def _key(self, name: str) -> Key:
        return Key(self._namespace, name)

    def _story(self) -> str:
        return "\n".join([f"schedule {self.seed}:", *self.proxy.facts, *self.history.problems])


KINDS = (Answer, LoseAnswer, Cut, HalfClose, Stall, Duplicate, Delay)


async def first_of(*wanted: Awaitable[None]) -> None:
    """Wait for one of these, but not long: the moves of a schedule are many."""
    tasks = [asyncio.ensure_future(one) for one in wanted]
    await asyncio.wait(tasks, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.timeout(600)
async def test_after_any_of_a_thousand_schedules_of_faults_the_informer_equals_a_fresh_list(
    real_cluster: FullCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)  # thousands of expected warnings would bury the story of the schedule that failed
    clock = SystemClock()
    writer = Client(connect(str(real_cluster.kubeconfig), None, clock, environ={}), clock)
    context = ssl.create_default_context(cadata=real_cluster.ca_pem.decode("ascii"))
    context.load_cert_chain(real_cluster.admin.certificate, real_cluster.admin.key)
    ahead = iter(seeds(SCHEDULES, soak=SCHEDULES))
    struck: Counter[str] = Counter()

    async def work() -> None:
        for seed in ahead:
            schedule = Schedule(seed, real_cluster, context, writer, namespace)
            await schedule.play()
            struck.update(schedule.proxy.counts)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
    finally:
        await writer.aclose()
    # Every kind of fault took part, or the thousand schedules prove less than they say.
    assert all(struck[kind.__name__] > SCHEDULES / 10 for kind in KINDS), struck
    assert struck["outages"] > SCHEDULES / 10
