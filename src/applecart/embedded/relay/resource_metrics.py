"""`metrics.k8s.io/v1beta1`: usage of nodes and Pods as a metrics server would serve it, for `kubectl top`.

The objects are made when they are asked for and live as long as the answer. Labels are those of the Node or Pod, so that
selectors work.
"""

from collections.abc import Callable, Iterator
from typing import Any

from applecart.api.meta import Key, Resource
from applecart.embedded.attributes import Attributes
from applecart.embedded.field_selectors import parse_field_selector, refuse_unknown_fields
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import bad_request, method_not_allowed, no_such_resource, not_found
from applecart.embedded.relay.scrapes import Scrapes
from applecart.embedded.relay.usage import NodeUsage, Usage, usage_document
from applecart.embedded.server.core import Core
from applecart.embedded.server.label_selector import label_selector
from applecart.embedded.server.objects import encode
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.surface.served import Served, VirtualKind
from applecart.embedded.times import stamp

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
        self._scrapes = scrapes

    @property
    def is_served(self) -> bool:
        return self._scrapes.is_any

    async def refresh(self) -> None:
        """Ask the agents now, however fresh the figures are."""
        await self._scrapes.look()

    async def answer(self, request: ApiRequest, asked: Attributes) -> Answer:
        """One request below the group's path, already authorized."""
        if asked.version != VERSION or asked.subresource or asked.resource not in ("nodes", "pods"):
            raise no_such_resource()
        if asked.verb not in ("get", "list"):
            raise method_not_allowed()
        usage = await self._scrapes.fresh()
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
                yield {
                    "metadata": self._metadata(node),
                    "timestamp": stamp(own.at),
                    "window": WINDOW,
                    "usage": usage_document(own),
                }

    def _pods(self, usage: Any, namespace: str | None) -> Iterator[Document]:
        found = {key: containers for of_node in usage.values() for key, containers in of_node.pods.items()}
        for key in sorted(found, key=lambda key: (key.namespace, key.name)):
            if namespace is None or key.namespace == namespace:
                pod = self._core.reader.get("pods", key.namespace, key.name)
                if pod is not None:
                    yield self._pod(pod, found[key])

    def _pod(self, pod: Document, containers: Any) -> Document:
        return {
            "metadata": self._metadata(pod),
            "timestamp": stamp(min(usage.at for usage in containers.values())),
            "window": WINDOW,
            "containers": [{"name": name, "usage": usage_document(usage)} for name, usage in containers.items()],
        }

    def _metadata(self, of: Document) -> Document:
        metadata = of["metadata"]
        return {
            "name": metadata["name"],
            **({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
            "creationTimestamp": stamp(self._core.clock.now()),
            **({"labels": metadata["labels"]} if metadata.get("labels") else {}),
        }


def _list(kind: Resource, items: Iterator[Document], request: ApiRequest) -> Answer:
    matches = _selection(request)
    return Answer(
        200,
        encode(
            {
                "kind": f"{kind.kind}List",
                "apiVersion": kind.api_version,
                "metadata": {},
                "items": [item for item in items if matches(item["metadata"])],
            }
        ),
    )


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
