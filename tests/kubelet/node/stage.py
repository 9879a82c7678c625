"""A host and its Node on any API: the keeper, with what it offers and says in the test's hands."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from applecart.api.meta import Key
from applecart.api.nodes import Node, NodeCondition
from applecart.api.reasons import kubelet as reasons
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kubelet.node.advertised import Advertised, LabelSource
from applecart.kubelet.node.conditions import CheckState, Findings, node_conditions
from applecart.kubelet.node.desired import Offer
from applecart.kubelet.node.facts import Facts
from applecart.kubelet.node.keeper import NodeKeeper
from applecart.tart.mac import Disk

WELL = CheckState("tart", reasons.TART_NOT_ANSWERING, "run `tart list`", was_well=True)


class Stage:
    """What the host is like. Tests change it; the keeper asks."""

    def __init__(self, client: Client, clock: Clock, offer: Offer) -> None:
        self.client = client
        self.key = Key("", offer.name)
        self.facts = Facts("10.0.0.7", 494384795648)
        self.findings = Findings(outcomes=(WELL,), disk=Disk(100, 50), works_on=())
        self.labels: dict[str, str] = {}
        self.label_fault: Exception | None = None
        self.keeper = NodeKeeper(
            client,
            clock,
            offer,
            facts=lambda: self.facts,
            conditions=self._conditions,
            advertised=Advertised([LabelSource("goldens", self._goldens, keeps_last=True)]),
        )

    async def node(self) -> Node:
        return await self.client.get(Node, self.key)

    async def says(self, type_: str) -> tuple[str, str]:
        condition = (await self.node()).condition(type_)
        assert condition is not None
        return condition.status, condition.reason

    def _conditions(self, node: Node | None) -> tuple[NodeCondition, ...]:
        return node_conditions(self.findings, node)

    def _goldens(self) -> Mapping[str, str]:
        if self.label_fault:
            raise self.label_fault
        return self.labels


@asynccontextmanager
async def running(*work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each()) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    failed = [task.exception() for task in tasks if not task.cancelled()]
    assert failed == [], "what should run until it is stopped ended by itself"
