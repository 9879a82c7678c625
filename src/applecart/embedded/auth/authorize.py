"""May this user do this: masters, then nodes, then roles.

Deny by default: an answer is yes only when somebody said yes. system:masters are bound to no role, so nobody can lock the
administrator out. Requests without identity reach the health and version paths and nothing else, whatever bindings say: an
open door must not be one careless binding away.
"""

from applecart.embedded.auth.node_authorizer import NodeAuthorizer, NodeGraph
from applecart.embedded.auth.rbac import ALLOWED, NO_OPINION, Decision, Rbac, denial
from applecart.embedded.auth.roles import Rule
from applecart.embedded.auth.user import ANONYMOUS, MASTERS, UNAUTHENTICATED, Attributes, User
from applecart.embedded.store.store import Reader

PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
NODE_RULES_UNKNOWN = "node authorizer does not support user rule resolution"


class Authorizer:
    def __init__(self, reader: Reader) -> None:
        self.graph = NodeGraph(reader)  # whoever publishes changes calls its `on_change`
        self.rbac = Rbac(reader)
        self._nodes = NodeAuthorizer(self.graph)

    def decide(self, user: User, attributes: Attributes) -> Decision:
        groups = user.groups
        if MASTERS in groups:
            return ALLOWED
        if UNAUTHENTICATED in groups or user.name == ANONYMOUS.name:
            is_public = not attributes.is_resource and attributes.verb == "get" and attributes.path in PUBLIC_PATHS
            return ALLOWED if is_public and UNAUTHENTICATED in groups else NO_OPINION
        if not user.node:
            return self.rbac.decide(user, attributes)
        of_node = self._nodes.decide(user, attributes)
        if of_node.allowed:
            return of_node
        of_roles = self.rbac.decide(user, attributes)
        if of_roles.allowed or not of_node.reason:
            return of_roles
        return Decision(False, f"{of_node.reason}\n{of_roles.reason}" if of_roles.reason else of_node.reason)

    def is_allowed(self, user: User, attributes: Attributes) -> bool:
        return self.decide(user, attributes).allowed

    def check(self, user: User, attributes: Attributes) -> None:
        """Raises the 403 of a request that is not allowed."""
        decision = self.decide(user, attributes)
        if not decision.allowed:
            raise denial(user, attributes, decision.reason)

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str], bool]:
        """Rules that hold in a namespace, what could not be resolved, and whether there may be rights beyond them."""
        rules, problems = self.rbac.rules_for(user, namespace)
        return (rules, [NODE_RULES_UNKNOWN, *problems], True) if user.node else (rules, problems, False)
