"""`metrics.k8s.io/v1beta1`: usage of nodes and Pods as a metrics server would serve it, for `kubectl top`.

All agents are asked at once for their summary (`/stats/summary`), at most every 15 seconds, and now and then even when nobody
wants to know, because discovery must say whether there are figures at all. An agent is believed about its own node and the Pods
bound to it; what it leaves out or writes wrong is left out here; one that does not answer is simply not there.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import aclosing
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from applecart.api.meta import Key, Resource, read_stamp, stamp
from applecart.embedded.auth.user import Attributes
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, method_not_allowed, no_such_resource, not_found
from applecart.embedded.relay.agents import AgentLost, AgentRefused, AgentUnreachable, HttpAgents
from applecart.embedded.relay.location import agent_of
from applecart.embedded.selectors import label_selector, parse_field_selector, refuse_unknown_fields
from applecart.embedded.server.core import Core
from applecart.embedded.server.objects import encode
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.store.table import NODE_FIELD
from applecart.embedded.surface.served import Served, VirtualKind
from applecart.observe.logs import logger

LARGEST = (1 << 63) - 1  # of a quantity


class Usage(msgspec.Struct, frozen=True):
    cpu_nanocores: int
    memory_bytes: int
    at: datetime


class NodeUsage(msgspec.Struct, frozen=True):
    """One node and its Pods; of each Pod the containers by name."""

    own: Usage | None
    pods: Mapping[Key, Mapping[str, Usage]]


class _Cpu(msgspec.Struct, rename="camel"):
    time: str = ""
    usage_nano_cores: int | None = None


class _Memory(msgspec.Struct, rename="camel"):
    working_set_bytes: int | None = None


class _Stats(msgspec.Struct):
    name: str = ""
    cpu: _Cpu | None = None
    memory: _Memory | None = None


class _Reference(msgspec.Struct):
    name: str
    namespace: str


class _Pod(msgspec.Struct, rename="camel"):
    pod_ref: _Reference
    containers: list[_Stats] = []


class _Summary(msgspec.Struct):
    node: _Stats
    pods: list[_Pod] = []


class BadSummary(ValueError):
    """An agent's summary that cannot be read."""


def read_summary(body: bytes, bound: Set[Key], now: datetime) -> NodeUsage:
    """`bound` are the Pods of this node; `now` stands in for an agent that tells no time."""
    try:
        summary = msgspec.json.decode(body, type=_Summary)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSummary(str(error)) from None
    pods: dict[Key, Mapping[str, Usage]] = {}
    for pod in summary.pods:
        key = Key(pod.pod_ref.namespace, pod.pod_ref.name)
        containers = {one.name: usage for one in pod.containers if (usage := _usage(one, now)) is not None}
        # A Pod of which one container is unknown would look smaller than it is.
        if key in bound and containers and len(containers) == len(pod.containers):
            pods[key] = containers
    return NodeUsage(_usage(summary.node, now), pods)


def _usage(stats: _Stats, now: datetime) -> Usage | None:
    if stats.cpu is None or stats.memory is None:
        return None
    cpu, memory = stats.cpu.usage_nano_cores, stats.memory.working_set_bytes
    if cpu is None or memory is None or not (0 <= cpu <= LARGEST and 0 <= memory <= LARGEST):
        return None
    return Usage(cpu, memory, _instant(stats.cpu.time, now))


def _instant(text: str, now: datetime) -> datetime:
    try:
        return min(read_stamp(text), now)
    except (ValueError, OverflowError):
        return now


def cpu_quantity(nanocores: int) -> str:
    for factor, suffix in ((10**9, ""), (10**6, "m"), (10**3, "u")):
        if nanocores % factor == 0:
            return f"{nanocores // factor}{suffix}"
    return f"{nanocores}n"


def memory_quantity(size_bytes: int) -> str:
    for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{suffix}"
    return str(size_bytes)


def usage_document(usage: Usage) -> dict[str, Any]:
    return {"cpu": cpu_quantity(usage.cpu_nanocores), "memory": memory_quantity(usage.memory_bytes)}


FRESH_S = 15.0  # how old figures may be; the resolution of a metrics server
LOOK_S = 60.0  # between looks that nobody asked for
AGENT_S = 5.0  # for one agent's answer
MOST_AT_ONCE = 64
SUMMARY_LIMIT_BYTES = 4 << 20
SUMMARY_PATH = "/stats/summary"

_log = logger(__name__)
_NOTHING: MappingProxyType[str, NodeUsage] = MappingProxyType({})


class Scrapes:
    """Usage by node name."""

    def __init__(self, core: Core, agents: HttpAgents) -> None:
        self._core = core
        self._agents = agents
        self._taken_s = float("-inf")
        self._under_way: asyncio.Task[None] | None = None
        self.usage: MappingProxyType[str, NodeUsage] = _NOTHING

    @property
    def is_any(self) -> bool:
        """Whether at least one agent answered the last time."""
        return bool(self.usage)

    async def fresh(self) -> MappingProxyType[str, NodeUsage]:
        """Figures that are not too old."""
        if self._core.clock.monotonic() - self._taken_s >= FRESH_S:
            await self.look()
        return self.usage

    async def look(self) -> None:
        """Ask every agent, or wait for the answers to whoever asks already."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.create_task(self._take())
        # Somebody who gives up must not take the figures away from the others who wait for them.
        await asyncio.shield(self._under_way)

    async def run(self) -> None:
        """Looks now and then; ends when it is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S if self.is_any else FRESH_S)

    async def aclose(self) -> None:
        """A look that is under way ends here."""
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.wait({self._under_way})

    async def _take(self) -> None:
        nodes = {node["metadata"]["name"]: node for node in self._core.reader.each("nodes")}
        bound = self._bound() if nodes else {}
        turn = asyncio.Semaphore(MOST_AT_ONCE)
        answers = await asyncio.gather(*(self._ask(node, frozenset(bound.get(name, ())), turn) for name, node in nodes.items()))
        self.usage = MappingProxyType({name: usage for name, usage in zip(nodes, answers, strict=True) if usage is not None})
        self._taken_s = self._core.clock.monotonic()

    async def _ask(self, node: Document, bound: frozenset[Key], turn: asyncio.Semaphore) -> NodeUsage | None:
        now: datetime = self._core.clock.now()
        try:
            async with turn, asyncio.timeout(AGENT_S):
                stream = await self._agents.get(agent_of(node), SUMMARY_PATH)
                body = bytearray()
                async with aclosing(stream.chunks()) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > SUMMARY_LIMIT_BYTES:
                            return None
            return read_summary(bytes(body), bound, now)
        except (AgentUnreachable, AgentLost, AgentRefused, Refusal, BadSummary, TimeoutError):
            return None
        except Exception:  # of one node: the others have figures all the same
            _log.exception("asking an agent for usage failed in a way nobody foresaw", node=node["metadata"]["name"])
            return None

    def _bound(self) -> dict[str, list[Key]]:
        found: dict[str, list[Key]] = {}
        for pod in self._core.store.table("pods").records():
            if node := pod.traits.fields.get(NODE_FIELD):
                found.setdefault(node, []).append(pod.key)
        return found


GROUP, VERSION = "metrics.k8s.io", "v1beta1"
NODE_METRICS = Resource(GROUP, VERSION, "NodeMetrics", "nodes", False)
POD_METRICS = Resource(GROUP, VERSION, "PodMetrics", "pods", True)
METRICS_KINDS: tuple[Served, ...] = tuple(VirtualKind(kind, verbs=("get", "list")) for kind in (NODE_METRICS, POD_METRICS))
WINDOW = "10s"  # over which a kubelet averages the CPU time of its summary
NAME, NAMESPACE = "metadata.name", "metadata.namespace"


class ResourceMetrics:
    """The group, as far as there are figures."""

    def __init__(self, core: Core, scrapes: Scrapes) -> None:
        self._core = core
        self.scrapes = scrapes

    async def answer(self, request: ApiRequest, asked: Attributes) -> Answer:
        """One request below the group's path, already authorized."""
        if asked.version != VERSION or asked.subresource or asked.resource not in ("nodes", "pods"):
            raise no_such_resource()
        if asked.verb not in ("get", "list"):
            raise method_not_allowed()
        usage = await self.scrapes.fresh()
        is_node = asked.resource == "nodes"
        if is_node and asked.namespace:
            raise no_such_resource()
        if asked.verb == "list":
            items = self._nodes(usage) if is_node else self._pods(usage, asked.namespace or None)
            return _list(NODE_METRICS if is_node else POD_METRICS, items, request)
        if not is_node and not asked.namespace:
            raise no_such_resource()
        return Answer(200, encode(self._one_node(usage, asked.name) if is_node else self._one_pod(usage, asked)))

    def _one_node(self, usage: Any, name: str) -> Document:
        if self._core.reader.get("nodes", "", name) is None:
            raise not_found(Resource("", "v1", "Node", "nodes", False), name)
        for item in self._nodes({name: usage[name]} if name in usage else {}):
            return _typed(NODE_METRICS, item)
        raise not_found(Resource(GROUP, VERSION, "NodeMetrics", "nodemetrics"), name)

    def _one_pod(self, usage: Any, asked: Attributes) -> Document:
        pod = self._core.reader.get("pods", asked.namespace, asked.name)
        if pod is None:
            raise not_found(Resource("", "v1", "Pod", "pods"), asked.name)
        of_node: NodeUsage | None = usage.get(pod["spec"].get("nodeName", ""))
        containers = of_node.pods.get(Key(asked.namespace, asked.name)) if of_node else None
        if not containers:
            raise not_found(Resource(GROUP, VERSION, "PodMetrics", "podmetrics"), f"{asked.namespace}/{asked.name}")
        return _typed(POD_METRICS, self._pod(pod, containers))

    def _nodes(self, usage: Any) -> Iterator[Document]:
        for name in sorted(usage):
            own: Usage | None = usage[name].own
            node = self._core.reader.get("nodes", "", name)
            if own is not None and node is not None:
                yield self._measured(node, own.at, {"usage": usage_document(own)})

    def _pods(self, usage: Any, namespace: str | None) -> Iterator[Document]:
        found = {key: containers for of_node in usage.values() for key, containers in of_node.pods.items()}
        for key in sorted(found, key=lambda key: (key.namespace, key.name)):
            if namespace is None or key.namespace == namespace:
                pod = self._core.reader.get("pods", key.namespace, key.name)
                if pod is not None:
                    yield self._pod(pod, found[key])

    def _pod(self, pod: Document, containers: Any) -> Document:
        figures = [{"name": name, "usage": usage_document(usage)} for name, usage in containers.items()]
        return self._measured(pod, min(usage.at for usage in containers.values()), {"containers": figures})

    def _measured(self, of: Document, at: datetime, figures: Document) -> Document:
        metadata = of["metadata"]
        shown = {
            "name": metadata["name"],
            **({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
            "creationTimestamp": stamp(self._core.clock.now()),
            **({"labels": metadata["labels"]} if metadata.get("labels") else {}),
        }
        return {"metadata": shown, "timestamp": stamp(at), "window": WINDOW, **figures}


def _list(kind: Resource, items: Iterator[Document], request: ApiRequest) -> Answer:
    matches = _selection(request)
    chosen = [item for item in items if matches(item["metadata"])]
    return Answer(200, encode({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {}, "items": chosen}))


def _selection(request: ApiRequest) -> Callable[[Document], bool]:
    labels = label_selector(request.query.get("labelSelector", ""))
    fields = parse_field_selector(request.query.get("fieldSelector", ""))
    refuse_unknown_fields(fields, lambda name: bad_request(f"field label not supported: {name}"), {NAME, NAMESPACE})

    def matches(metadata: Document) -> bool:
        known = {NAME: metadata["name"], NAMESPACE: metadata.get("namespace", "")}
        return labels(metadata.get("labels") or {}) and fields(known)

    return matches


def _typed(kind: Resource, document: Document) -> Document:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **document}
