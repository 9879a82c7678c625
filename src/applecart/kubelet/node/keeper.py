"""Keeps the host's Node as it must be: there, labelled, tainted, and telling how the host is.

Decides on the watched Node and writes only on one that was just read, metadata and status through their own doors. What is
wanted is computed from the host, never taken from an answer of the API: an answer to one write once overwrote the Ready that
the next was about to say, and nine Nodes stayed Unknown. Creates the Node whenever it is missing. Never looks at Tart and never
waits for the host, so a slow host cannot make its Node look dead.
"""

import asyncio
from collections.abc import Callable

import msgspec

from applecart.api.conditions import READY
from applecart.api.meta import Key
from applecart.api.nodes import Node, NodeCondition
from applecart.clock import Clock
from applecart.errors import ApplecartError, Permanent
from applecart.kube.background import uncancelled
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer, Tuning
from applecart.kube.patch import Merge, Strategic
from applecart.kubelet.node.advertised import Advertised
from applecart.kubelet.node.desired import Offer, all_labels, identity_trouble, metadata_change, new_node, status_change
from applecart.kubelet.node.facts import Facts
from applecart.observe.logs import logger

HEARTBEAT_S = 300.0  # the Lease beats; a status that did not change is only confirmed
LOOK_EVERY_S = 10.0  # at what the host offers; costs no call when nothing differs
# Between rounds that follow each other: at a start Ready comes right after registration, while a fight with another writer
# soon has less than one round a second and never becomes a load.
SETTLE = Backoff(first_s=0.05, longest_s=2.0)
PACE = Backoff(first_s=0.5, longest_s=30.0)

log = logger(__name__)


class NodeKeeper:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        offer: Offer,
        *,
        facts: Callable[[], Facts],
        conditions: Callable[[Node | None], tuple[NodeCondition, ...]],
        advertised: Advertised,
        tuning: Tuning = Tuning(),  # noqa: B008 (frozen)
    ) -> None:
        self._client = client
        self._clock = clock
        self._offer = offer
        self._key = Key("", offer.name)
        self._facts = facts
        self._conditions = conditions
        self._advertised = advertised
        self.nodes = Informer(client, Node, fields=f"metadata.name={offer.name}", tuning=tuning)
        self.nodes.on_change(lambda change: self.nudge())
        self._wake = asyncio.Event()
        self._posted_uid = ""
        self._posted_s = 0.0
        self._complaint = ""
        self._identity_trouble = ""

    @property
    def node(self) -> Node | None:
        """As last seen; None when it is not there, or nobody knows yet."""
        return self.nodes.get(self._key)

    def nudge(self) -> None:
        """Something of the host changed: look now instead of at the next round."""
        self._wake.set()

    async def run(self) -> None:
        """Keep the Node until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(uncancelled(self.nodes.run()))
            await self.nodes.synced()
            await self._keep()

    async def _keep(self) -> None:
        failures = rounds = 0
        while True:
            self._wake.clear()
            try:
                await self.reconcile()
            except Exception as error:  # also a bug of ours: a host must not be lost to it
                failures += 1
                self._complain(error)
                await asyncio.sleep(PACE.wait_s(failures, self._clock.random))
                continue
            failures, self._complaint = 0, ""
            rounds += 1
            await asyncio.sleep(SETTLE.wait_s(rounds, self._clock.random))
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()
            except TimeoutError:
                rounds = 0

    async def reconcile(self) -> None:
        """One round: no call when the watched Node is as it must be."""
        seen = self.node
        if seen is None or self._metadata_change(seen) or self._status_change(seen):
            await self._write()

    async def _write(self) -> None:
        node = await self._read_or_create()
        trouble: ApplecartError | None = None
        if change := self._metadata_change(node):
            try:
                node = await self._client.patch(Node, self._key, Merge(change), if_revision=node.revision)
            except Permanent as error:
                trouble = error  # a label that the API refuses must not keep the host's heartbeat back
        if change := self._status_change(node):
            await self._client.patch_status(Node, self._key, Strategic(change))
            self._posted_uid, self._posted_s = node.uid, self._clock.monotonic()
        if trouble is not None:
            raise trouble

    async def _read_or_create(self) -> Node:
        try:
            return await self._client.get(Node, self._key)
        except NotFound:
            created = await self._client.create(new_node(self._offer, self._labels()))
            log.info("registered the Node", object=created)
            return created

    def _labels(self) -> dict[str, str]:
        return all_labels(self._offer, self._advertised.labels())

    def _metadata_change(self, node: Node) -> dict[str, object]:
        return metadata_change(node, self._offer, self._labels())

    def _status_change(self, node: Node) -> dict[str, object]:
        is_due = node.uid != self._posted_uid or self._clock.monotonic() - self._posted_s >= HEARTBEAT_S
        trouble = identity_trouble(node, self._offer)
        if trouble != self._identity_trouble:
            self._identity_trouble = trouble
            if trouble:
                log.warning("the Node belongs to another machine", object=self._key, because=trouble)
        conditions = _with_note(self._conditions(node), trouble)
        return status_change(node, self._offer, self._facts(), conditions, self._clock.now(), is_due=is_due)

    def _complain(self, error: Exception) -> None:
        if repr(error) != self._complaint:  # once, not at every attempt of an outage
            self._complaint = repr(error)
            log.warning("the Node could not be kept, trying on", object=self._key, exc_info=error)


def _with_note(conditions: tuple[NodeCondition, ...], note: str) -> tuple[NodeCondition, ...]:
    """The note where people look first. Does not repeat one that a condition kept from before."""
    if not note:
        return conditions
    return tuple(
        msgspec.structs.replace(each, message="; ".join(filter(None, (each.message, note))))
        if each.type == READY and note not in each.message
        else each
        for each in conditions
    )
