"""Measures what the host and each guest use, for `kubectl top`: `/stats/summary` and `/metrics/resource`.

Everybody who asks within ten seconds gets the same figures. Guests are asked at once and each for itself: one that does not
answer is left out and delays nobody, because whoever collects them gives an agent only a few seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kubelet.serve.figures import Figures, GuestFigures, Measured, summary
from applecart.kubelet.serve.guests import Guest, GuestCommands, Guests
from applecart.kubelet.serve.resource_metrics import resource_metrics
from applecart.kubelet.serve.usage import PS, read_usage
from applecart.observe.logs import logger
from applecart.tart.mac import Ended, Mac

FRESH_S = 10.0
PS_S = 5.0  # for one `ps`
ANSWER_S = 3.0  # for everybody, whoever is missing then; a collector waits 5 s
NODE = ""  # where a guest has its uid

log = logger(__name__)


class Stats:
    def __init__(self, node: str, mac: Mac, commands: GuestCommands, guests: Guests, clock: Clock) -> None:
        self._node = node
        self._mac = mac
        self._commands = commands
        self._guests = guests
        self._clock = clock
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, Measured] = {}

    async def summary(self) -> dict[str, Any]:
        """The document of `/stats/summary`."""
        return summary(self._node, await self.figures())

    async def resource_metrics(self) -> bytes:
        """The page of `/metrics/resource`."""
        return resource_metrics(await self.figures())

    async def figures(self) -> Figures:
        guests = list(self._guests.running())
        self._forget({NODE, *(guest.uid for guest in guests)})
        since_s = self._clock.monotonic() - FRESH_S  # whoever is fresh now is so also when others took their time
        askers = [(NODE, self._ask_host), *((guest.uid, self._asker(guest)) for guest in guests)]
        looks = [self._look(key, ask) for key, ask in askers if self._measured(key, since_s) is None]
        if looks:
            await asyncio.wait(looks, timeout=ANSWER_S)
        started = {pod.uid: _started_at(pod) for pod in self._guests.pods()}
        measured = ((guest, self._measured(guest.uid, since_s)) for guest in guests)
        known = (GuestFigures(guest, started.get(guest.uid), look) for guest, look in measured if look is not None)
        return Figures(self._measured(NODE, since_s), tuple(known))

    async def aclose(self) -> None:
        looks = list(self._looks.values())
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    def _look(self, key: str, ask: Callable[[], Awaitable[Ended]]) -> asyncio.Task[None]:
        if key not in self._looks:
            task = asyncio.create_task(self._take(key, ask))
            self._looks[key] = task
            task.add_done_callback(lambda _: self._looks.pop(key, None))
        return self._looks[key]

    async def _take(self, key: str, ask: Callable[[], Awaitable[Ended]]) -> None:
        try:
            ended = await ask()
            usage = read_usage(ended.out) if ended.code == 0 else None
        except ApplecartError:
            return  # it does not answer, and is left out
        except Exception:
            log.exception("usage cannot be measured, which nobody foresaw", uid=key)
            return
        if usage is not None:
            at, at_s, before = self._clock.now(), self._clock.monotonic(), self._last.get(key)
            self._last[key] = before.then(usage, at, at_s) if before else Measured(usage, at, at_s)

    def _measured(self, key: str, since_s: float) -> Measured | None:
        last = self._last.get(key)
        return last if last is not None and last.at_s > since_s else None

    async def _ask_host(self) -> Ended:
        return await self._mac.run(PS, deadline_s=PS_S)

    def _asker(self, guest: Guest) -> Callable[[], Awaitable[Ended]]:
        return lambda: self._commands.exec(guest.vm, PS, deadline_s=PS_S)

    def _forget(self, keys: set[str]) -> None:
        for key in self._last.keys() - keys:
            del self._last[key]


def _started_at(pod: Pod) -> datetime | None:
    running = (status.state.running for status in pod.status.container_statuses if status.state and status.state.running)
    return next((it.started_at for it in running if it.started_at), None)
