"""All controllers that a cluster without kube-controller-manager and kube-scheduler needs, each in a task of its own.

One that fails is started again after a while that grows, and the others never notice. The list is plain: a controller is a name
and something to await. Knows nothing of what they do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from applecart.clock import Clock
from applecart.embedded.controllers.garbage.run import run_garbage_collector
from applecart.embedded.controllers.namespaces.run import run_namespaces
from applecart.embedded.controllers.scheduler.run import run_scheduler
from applecart.embedded.controllers.service_accounts.run import run_tokens
from applecart.embedded.controllers.service_accounts.tokens import Sign
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.informer import Tuning
from applecart.observe.logs import logger

PACE = Backoff(first_s=1.0, longest_s=60.0)  # a controller fails as a whole only by a bug of ours: it must not become load
WELL_AFTER_S = 300.0  # one that ran so long is taken for well again

log = logger(__name__)


class Small(msgspec.Struct, frozen=True):
    """A controller: runs until it is cancelled."""

    name: str
    run: Callable[[], Awaitable[None]]


class SmallControllers:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        ca_pem: bytes,
        sign: Sign,
        *,
        more: Sequence[Small] = (),
        with_scheduler: bool = True,
        tuning: Tuning | None = None,
    ) -> None:
        self._clock = clock
        self.controllers: list[Small] = [
            Small("garbage collector", lambda: run_garbage_collector(client, clock, tuning=tuning)),
            Small("namespaces", lambda: run_namespaces(client, clock, ca_pem, tuning=tuning)),
            Small("service-account tokens", lambda: run_tokens(client, clock, ca_pem, sign, tuning=tuning)),
            *more,
        ]
        if with_scheduler:
            self.controllers.append(Small("scheduler", lambda: run_scheduler(client, clock, tuning=tuning)))

    async def run(self) -> None:
        """Run all of them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for controller in self.controllers:
                group.create_task(keep_running(controller, self._clock), name=controller.name)


async def keep_running(controller: Small, clock: Clock) -> None:
    """Run one, again whenever it fails or ends."""
    failures = 0
    while True:
        began_s = clock.monotonic()
        problem: Exception | None = None
        try:
            await controller.run()
        except Exception as error:
            problem = error
        failures = 1 if clock.monotonic() - began_s > WELL_AFTER_S else failures + 1
        wait_s = PACE.wait_s(failures, clock.random)
        about = log.bind(controller=controller.name, again_in_s=round(wait_s, 1))
        about.error("a controller ended, starting it again", exc_info=problem)
        await asyncio.sleep(wait_s)
