"""Who may do what: authorization of requests, and what admission adds for nodes and for roles."""

from applecart.embedded.attributes import Attributes
from applecart.embedded.auth import escalation, node_restriction
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.user import User
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.reader import Reader
from applecart.embedded.refusals import forbidden

RBAC_GROUP = "rbac.authorization.k8s.io"


class Guard:
    """The `Access` of a server with users."""

    def __init__(self, authorizer: Authorizer, reader: Reader) -> None:
        self.authorizer = authorizer
        self._reader = reader

    def authorize(self, user: User, attributes: Attributes) -> None:
        self.authorizer.check(user, attributes)

    def admit(
        self, user: User, verb: str, kind: Kind, subresource: str, document: Document | None, old: Document | None
    ) -> None:
        about = (document or old or {}).get("metadata", {})
        namespace = about.get("namespace", "") if kind.resource.namespaced else ""
        name = about.get("name", "")
        if user.node:
            why = node_restriction.refuse(
                user,
                verb,
                kind.resource.label,
                subresource,
                document,
                old,
                self._reader,
                namespace=namespace,
                name=name,
                is_allowed=self.authorizer.is_allowed,
            )
            if why:
                raise forbidden(kind.resource, name, why)
        if kind.resource.group == RBAC_GROUP and document is not None:
            refusal = escalation.refuse(
                user,
                kind.resource.label,
                document,
                old,
                self.authorizer.rbac,
                namespace=namespace,
                name=name,
                is_allowed=self.authorizer.is_allowed,
            )
            if refusal:
                raise refusal
