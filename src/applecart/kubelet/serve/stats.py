"""`/stats/summary`: what the host and each guest use, for `kubectl top`.

Everybody who asks within ten seconds gets the same figures. Guests are asked at once and each for itself: one that does not
answer is left out and delays nobody, because whoever collects summaries gives an agent only a few seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kubelet.serve.guests import Guest, GuestCommands, Guests
from applecart.kubelet.serve.usage import PS, Usage, read_usage
from applecart.observe.logs import logger
from applecart.tart.mac import Ended, Mac

FRESH_S = 10.0
PS_S = 5.0  # for one `ps`
ANSWER_S = 3.0  # for the summary, whoever is missing then; a collector waits 5 s
NODE = ""  # where a guest has its uid

log = logger(__name__)


class Stats:
    def __init__(self, node: str, mac: Mac, commands: GuestCommands, guests: Guests, clock: Clock) -> None:
        self._node = node
        self._mac = mac
        self._commands = commands
        self._guests = guests
        self._clock = clock
        self._looks: dict[str, asyncio.Task[Usage | None]] = {}
        self._known: dict[str, tuple[float, datetime, Usage]] = {}

    async def summary(self) -> dict[str, Any]:
        guests = list(self._guests.running())
        self._forget({NODE, *(guest.uid for guest in guests)})
        looks = [self._look(NODE, self._ask_host), *(self._look(guest.uid, self._asker(guest)) for guest in guests)]
        under_way = [look for look in looks if look is not None]
        if under_way:
            await asyncio.wait(under_way, timeout=ANSWER_S)
        pods = [
            {
                "podRef": {"name": guest.pod, "namespace": guest.namespace, "uid": guest.uid},
                "containers": [{"name": guest.container, **stats}],
                **stats,
            }
            for guest in guests
            if (stats := self._stats(guest.uid)) is not None
        ]
        return {"node": {"nodeName": self._node, **(self._stats(NODE) or {})}, "pods": pods}

    async def aclose(self) -> None:
        looks = list(self._looks.values())
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    def _look(self, key: str, ask: Callable[[], Awaitable[Ended]]) -> asyncio.Task[Usage | None] | None:
        known = self._known.get(key)
        if known is not None and self._clock.monotonic() - known[0] < FRESH_S:
            return None
        if key not in self._looks:
            self._known.pop(key, None)
            task = asyncio.create_task(self._take(key, ask))
            self._looks[key] = task
            task.add_done_callback(lambda _: self._looks.pop(key, None))
        return self._looks[key]

    async def _take(self, key: str, ask: Callable[[], Awaitable[Ended]]) -> Usage | None:
        with suppress(ApplecartError):
            ended = await ask()
            usage = read_usage(ended.out) if ended.code == 0 else None
            if usage is not None:
                self._known[key] = (self._clock.monotonic(), self._clock.now(), usage)
            return usage
        return None

    async def _ask_host(self) -> Ended:
        return await self._mac.run(PS, deadline_s=PS_S)

    def _asker(self, guest: Guest) -> Callable[[], Awaitable[Ended]]:
        return lambda: self._commands.exec(guest.vm, PS, deadline_s=PS_S)

    def _forget(self, keys: set[str]) -> None:
        for key in self._known.keys() - keys:
            del self._known[key]

    def _stats(self, key: str) -> dict[str, Any] | None:
        if key not in self._known:
            return None
        _, at, usage = self._known[key]
        time = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "cpu": {"time": time, "usageNanoCores": usage.cpu_nanocores},
            "memory": {"time": time, "workingSetBytes": usage.memory_bytes},
        }
