"""What follows from a committed write inside the server: what nodes may read, what gathering roles grant, which names are free.

Consequences are drawn after readers see the write and before its writer hears of it, or right after; none waits.
"""

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.rbac import CLUSTER_ROLES
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.schema.definition import status_with_names, taken_names
from applecart.embedded.server.boot import aggregate
from applecart.embedded.server.core import Core
from applecart.embedded.server.objects import find, put, viewed
from applecart.embedded.server.registry import CRD_LABEL
from applecart.embedded.store.log import StoreFailed
from applecart.embedded.store.record import Change, Op
from applecart.embedded.store.table import NODE_FIELD

PODS = "pods"


class Consequences:
    """Follows the commits of a server from its start."""

    def __init__(self, core: Core, authorizer: Authorizer, definitions: Kind) -> None:
        self._core = core
        self._graph = authorizer.graph
        self._definitions = definitions
        self._is_gathering = False
        core.store.on_commit(PODS, self._pod_changed)
        core.store.on_commit(CLUSTER_ROLES, self._role_changed)
        core.store.on_commit(CRD_LABEL, self._definition_changed)

    def _pod_changed(self, change: Change) -> None:
        previous = change.previous
        is_same_node = previous is not None and previous.traits.fields.get(NODE_FIELD) == change.record.traits.fields.get(
            NODE_FIELD
        )
        if change.op is Op.MODIFIED and is_same_node:
            self._graph.passed_over(PODS)
            return
        old = previous.document() if previous else None
        self._graph.on_change(PODS, old, None if change.op is Op.DELETED else change.record.document())

    def _role_changed(self, change: Change) -> None:
        if not self._is_gathering:
            self._is_gathering = True
            self._core.store.soon(self._gather)

    def _gather(self) -> None:
        self._is_gathering = False
        if self._core.store.failure is None:
            aggregate(self._core)

    def _definition_changed(self, change: Change) -> None:
        """A name that is free again goes to a definition that waits for it."""
        if change.op is Op.DELETED:
            group = (change.record.document().get("spec") or {}).get("group") or ""
            self._core.store.soon(self._offer_names, group)

    def _offer_names(self, group: str) -> None:
        core = self._core
        others = [record.document() for record in core.store.table(CRD_LABEL).records()]
        for record in core.store.table(CRD_LABEL).records():
            tip = find(core, self._definitions, record.key)
            if tip is None:
                continue
            definition = viewed(core, self._definitions, tip)
            if definition["spec"].get("group") != group:
                continue
            status = status_with_names(definition, taken_names(others, group, record.key.name), core.clock.now())
            if status != definition.get("status"):
                definition["status"] = status
                try:
                    put(core, self._definitions, definition, is_new=False)
                except StoreFailed:
                    return
