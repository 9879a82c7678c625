"""Everything one command of the simulated Tart works with."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random

from applecart.clock import Clock
from applecart.sim.tart.host_facts import Pace
from applecart.sim.tart.kernel import Kernel, Streams
from applecart.sim.tart.registry import Registry
from applecart.sim.tart.store import Store


@dataclass(slots=True)
class World:
    store: Store
    env: Mapping[str, str]
    streams: Streams
    kernel: Kernel
    clock: Clock
    pace: Pace
    bytes_per_s: int | None = None  # of a pull or push that a fault slows down

    @property
    def registry(self) -> Registry:
        return Registry(self.store.sim, self.env)

    @property
    def random(self) -> Random:
        return self.clock.random

    def now(self) -> datetime:
        return self.clock.now()

    async def say(self, text: str) -> None:
        await self.streams.out(text.encode(errors="replace") + b"\n")
