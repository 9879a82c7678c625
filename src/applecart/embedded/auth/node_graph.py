"""What each node may read because a Pod that refers to it runs there.

Kept up to date change by change: `on_change` must be called for every committed change of a Pod, right after readers see it.
Should changes have been missed before the first call, the graph notices by the resource's revision and reads all Pods once.
A question costs one dictionary lookup whatever the number of Pods.
"""

from collections import Counter

from applecart.embedded.auth.pod_references import CLAIMS, PODS, Reference, is_mirror, references
from applecart.embedded.auth.untyped import Document, mapping, name_of, namespace_of, text
from applecart.embedded.reader import Reader

PERSISTENT_VOLUMES = "persistentvolumes"
NEVER = -1  # a revision that no store has


class NodeGraph:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen_at = NEVER
        self._pods: dict[tuple[str, str], tuple[str, frozenset[Reference]]] = {}
        self._nodes: dict[str, Counter[Reference]] = {}

    def reads(self, node: str, label: str, namespace: str, name: str) -> bool:
        """Whether a Pod on the node refers to this object."""
        self._catch_up()
        readable = self._nodes.get(node)
        if readable is None:
            return False
        if label == PERSISTENT_VOLUMES:
            return self._claim_of(name) in readable
        return (label, namespace, name) in readable

    def on_change(self, label: str, old: Document | None, new: Document | None) -> None:
        """A committed change: None as `old` for a creation, as `new` for a removal."""
        if label != PODS or self._seen_at == NEVER:
            return
        pod = new if new is not None else old
        # Most changes are of a status, which refers to nothing.
        if pod is not None and not (old and new and old.get("spec") == new.get("spec") and is_mirror(old) == is_mirror(new)):
            self._put((namespace_of(pod), name_of(pod)), new)
        self._seen_at = self._reader.changed_at(PODS)

    def passed_over(self, label: str) -> None:
        """A committed change that cannot matter here: a Pod's references never change while it stays on its node."""
        if label == PODS and self._seen_at != NEVER:
            self._seen_at = self._reader.changed_at(PODS)

    def _catch_up(self) -> None:
        revision = self._reader.changed_at(PODS)
        if revision == self._seen_at:
            return
        self._pods.clear()
        self._nodes.clear()
        for pod in self._reader.each(PODS):
            self._put((namespace_of(pod), name_of(pod)), pod)
        self._seen_at = revision

    def _put(self, key: tuple[str, str], pod: Document | None) -> None:
        node = text(mapping(pod.get("spec")).get("nodeName")) if pod is not None else ""
        held = self._pods.get(key)
        now = (node, references(pod)) if pod is not None and node else None
        if held == now:
            return
        if held is not None:
            self._release(*held)
            del self._pods[key]
        if now is not None:
            self._pods[key] = now
            self._nodes.setdefault(node, Counter()).update(now[1])

    def _release(self, node: str, refs: frozenset[Reference]) -> None:
        readable = self._nodes[node]
        for reference in refs:
            readable[reference] -= 1
            if not readable[reference]:
                del readable[reference]
        if not readable:
            del self._nodes[node]

    def _claim_of(self, volume: str) -> Reference:
        """The claim that a persistent volume is bound to."""
        found = self._reader.get(PERSISTENT_VOLUMES, "", volume)
        claim = mapping(mapping(mapping(found).get("spec")).get("claimRef"))
        return CLAIMS, text(claim.get("namespace")), text(claim.get("name"))
