"""What a write must satisfy beside rights, judged on the object that would be stored: the real server's mutating admission.

New objects need a namespace that exists and stays; a new Pod gets what follows from other objects. Nodes write only what is
their own, and nobody grants what they do not hold. Everything here refuses by raising and is called by the gate alone.
"""

from dataclasses import dataclass, field

from applecart.api.meta import Key
from applecart.embedded.auth import escalation, node_restriction
from applecart.embedded.auth.rbac import GROUP as RBAC_GROUP
from applecart.embedded.auth.user import User
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.pod_admission import admit_pod
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import forbidden, not_found
from applecart.embedded.server.core import Core
from applecart.embedded.server.field_owners import FieldManager, manager_of
from applecart.embedded.server.request import ApiRequest, is_dry_run

NAMESPACES = "namespaces"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
NOBODY = FieldManager("")  # owns what a write without fields of its own changes, a deletion for example


@dataclass(frozen=True, slots=True)
class Write:
    """Who wants what done to one object."""

    user: User
    verb: str  # that was authorized, by the method of the request
    kind: Kind
    key: Key  # as the path says it; without a name for POST
    manager: FieldManager = NOBODY
    is_dry_run: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def subresource(self) -> str:
        return self.manager.subresource


def write_of(
    request: ApiRequest, verb: str, kind: Kind, key: Key, options: str, subresource: str = "", *, must_be_named: bool = False
) -> Write:
    """The write of a request; `options` names its options object, for refusals."""
    dry = is_dry_run(request.query, options)
    manager = manager_of(request, options, subresource, must_be_named=must_be_named)
    return Write(request.user, verb, kind, key, manager, dry, request.warnings)


def admit(core: Core, write: Write, document: Document | None, old: Document | None) -> None:
    """Every write: the object as it would be, what it is now, or what was posted below it."""
    user, kind = write.user, write.kind
    name = write.key.name or (document or {}).get("metadata", {}).get("name", "")
    if write.verb == "delete" and name in IMMORTAL and kind.resource.label == NAMESPACES:
        raise forbidden(kind.resource, name, "this namespace may not be deleted")
    if user.node:
        why = node_restriction.refuse(
            user,
            write.verb,
            kind.resource.label,
            write.subresource,
            document,
            old,
            core.reader,
            namespace=write.key.namespace,
            name=name,
            is_allowed=core.authorizer.is_allowed,
        )
        if why:
            raise forbidden(kind.resource, name, why)
    if kind.resource.group == RBAC_GROUP and document is not None:
        refusal = escalation.refuse(
            user,
            kind.resource.label,
            document,
            old,
            core.authorizer.rbac,
            namespace=write.key.namespace,
            name=name,
            is_allowed=core.authorizer.is_allowed,
        )
        if refusal:
            raise refusal


def admit_new(core: Core, write: Write, document: Document) -> None:
    """What else a new object must satisfy, and what it gets from others."""
    kind, name = write.kind, document["metadata"].get("name") or ""
    if core.registry.is_leaving(kind):
        raise forbidden(kind.resource, name, "create not allowed while custom resource definition is terminating")
    if kind.resource.namespaced:
        _need_namespace(core, kind, document["metadata"]["namespace"], name)
    if kind.resource.label == "pods":
        admit_pod(document, core.reader, needs_service_account=core.settings.needs_service_accounts)
    admit(core, write, document, None)


def _need_namespace(core: Core, kind: Kind, namespace: str, name: str) -> None:
    """Objects are only made in namespaces that exist and stay."""
    home = core.store.table(NAMESPACES).get(Key("", namespace))
    if home is None:
        raise not_found(core.registry.built_in("v1", NAMESPACES).resource, namespace)
    if b'"deletionTimestamp"' in home.value and "deletionTimestamp" in home.document()["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
        raise forbidden(kind.resource, name, why, causes=[{**cause, "field": "metadata.namespace"}])
