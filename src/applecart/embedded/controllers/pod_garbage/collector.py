"""Removes Pods that nobody is left to finish.

Sweeps every few seconds over what the informers know; `plan.py` decides. Before a Pod dies for a missing Node, the API itself
must say that the Node does not exist. A Pod that has not ended is first marked Failed, so that whoever owns it sees an end and
not a disappearance; then it is deleted without grace. Never touches a finalizer (I5) and never a Pod of a Node that exists,
unless a person took that Node out of service.
"""

import asyncio

import msgspec

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import FAILED, Pod
from applecart.clock import Clock
from applecart.embedded.controllers.pod_garbage.plan import (
    ORPHANED,
    ORPHANED_REASON,
    Quarantine,
    Removal,
    beyond_threshold,
    never_placed,
    on_dead_hosts,
    orphans,
)
from applecart.embedded.controllers.pod_garbage.removal import delete_pod, disrupted, write_pod_status
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer
from applecart.observe.logs import logger

AT_A_TIME = 8  # Pods; more would crowd out others at the API without being done sooner

log = logger(__name__)


class Patience(msgspec.Struct, frozen=True):
    """The real controller's numbers; tests on a real cluster shorten them."""

    sweep_every_s: float = 20.0
    quarantine_s: float = 40.0  # a Node that is created again finds its Pods
    finished_threshold: int = 12_500
    deadline_s: float = 30.0  # for all calls about one Pod (I13)


class PodGarbage:
    def __init__(self, client: Client, pods: Informer[Pod], nodes: Informer[Node], clock: Clock, patience: Patience) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._clock = clock
        self._patience = patience
        self._quarantine = Quarantine(patience.quarantine_s)

    async def run(self) -> None:
        """Sweep until cancelled, whenever the API can be read."""
        while True:
            await self._nodes.following()
            await self._pods.following()
            try:
                await self.sweep()
            except Exception:
                log.exception("a sweep failed unexpectedly, sweeping again")
            await asyncio.sleep(self._patience.sweep_every_s)

    async def sweep(self) -> None:
        pods = list(self._pods)
        missing = self._quarantine.look(pods, lambda name: self._node(name) is not None, self._clock.monotonic())
        gone = [name for name in missing if await self._is_gone(name)]
        plan = [
            *beyond_threshold(pods, self._patience.finished_threshold),
            *on_dead_hosts(pods, self._node),
            *orphans(pods, gone),
            *never_placed(pods),
        ]
        limit = asyncio.Semaphore(AT_A_TIME)

        async def carry_out(removal: Removal) -> None:
            async with limit:
                await self._try(removal)

        await asyncio.gather(*(carry_out(removal) for removal in plan))

    def _node(self, name: str) -> Node | None:
        return self._nodes.get(Key("", name))

    async def _is_gone(self, name: str) -> bool:
        """Whether the API says so; when it says nothing, the next sweep asks again."""
        try:
            await self._client.get(Node, Key("", name))
        except NotFound:
            return True
        except ApplecartError as error:
            log.warning("cannot tell whether a Node still exists, asking again", node=name, because=str(error))
        return False

    async def _try(self, removal: Removal) -> None:
        about = log.bind(removal.pod.key)
        try:
            async with asyncio.timeout(self._patience.deadline_s):
                await self._remove(removal)
        except (ApplecartError, TimeoutError) as error:
            because = str(error) or f"the API did not answer within {self._patience.deadline_s:g} s"
            about.warning("a Pod could not be removed, trying again", because=because)
        except Exception:
            about.exception("removing a Pod failed unexpectedly, trying again")

    async def _remove(self, removal: Removal) -> None:
        pod = removal.pod
        if not pod.is_terminal:
            told = (disrupted(pod, ORPHANED_REASON, ORPHANED, self._clock.now()),) if removal.is_orphan else ()
            if not await write_pod_status(self._client, pod, *told, phase=FAILED):
                return
        if await delete_pod(self._client, pod, grace_s=0):
            log.bind(pod.key).info("a Pod was removed", because=removal.because)
