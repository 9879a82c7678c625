"""Following objects of an API until a sentence about them is true, and what happened to each on the way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from applecart.api.meta import Key, Object
from applecart.kube.cache import Change
from applecart.kube.client import Client
from applecart.kube.informer import Informer
from tests.kubelet.real.agent_process import AgentProcess

WITHIN_S = 60.0  # of a machine that does other things too
LOOK_EVERY_S = 1.0  # whether the agent is still there

K = TypeVar("K", bound=Object)


@dataclass(slots=True)
class Followed(Generic[K]):
    informer: Informer[K]
    agent: AgentProcess
    changes: list[Change[K]] = field(default_factory=list)

    def get(self, key: Key) -> K | None:
        return self.informer.get(key)

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Fails when that takes too long, or when the agent ended meanwhile."""
        for _ in range(round(WITHIN_S / LOOK_EVERY_S)):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    return await self.informer.wait_until(holds)
            if self.agent.exit_code is not None:
                break
        found = [(obj.key, getattr(obj, "status", None)) for obj in self.informer]
        raise AssertionError(f"{what}: did not come true; {found[:3]}\n{self.agent.last_words()}")


@asynccontextmanager
async def following(client: Client, kind: type[K], agent: AgentProcess, namespace: str = "") -> AsyncIterator[Followed[K]]:
    followed = Followed(Informer(client, kind, namespace), agent)
    followed.informer.on_change(followed.changes.append)
    task = asyncio.create_task(followed.informer.run())
    try:
        await followed.informer.following()
        del followed.changes[:]  # what was there before
        yield followed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
