"""Who sends a request, and what it wants as read from its method and path alone.

Authorization decides on these and on nothing else, so they are derived in one place and before anything of the body is
believed.
"""

import msgspec

from applecart.api.node_access import ACCOUNT_NAMESPACE

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"  # may do everything; bound to no role, so nobody can lock the admin out
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
SERVICE_ACCOUNTS = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"  # of a user's extras: which certificate or token it was


class User(msgspec.Struct, frozen=True):
    """An identity: the same struct for certificates, tokens and impersonation."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    caller: "User | None" = None  # who acts as this user; None when they are the same

    @property
    def payer(self) -> "User":
        """Under whose name limits count: who sends the request, as whomever. The ServiceAccounts of a namespace are one there,
        because who may make one may make a thousand; but not where those of agents are."""
        payer = self.caller or self
        namespace = payer.account_namespace
        return User(f"{SERVICE_ACCOUNTS}:{namespace}", payer.groups) if namespace not in ("", ACCOUNT_NAMESPACE) else payer

    @property
    def account_namespace(self) -> str:
        """The namespace of a ServiceAccount; "" for everybody else."""
        is_account = self.name.startswith(SERVICE_ACCOUNT_PREFIX)
        return self.name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")[0] if is_account else ""

    @property
    def keeps_nodes_alive(self) -> bool:
        """Agents, by the certificate of a node or by an account where agents have theirs."""
        return bool(self.node) or self.account_namespace == ACCOUNT_NAMESPACE

    @property
    def node(self) -> str:
        """The Node this user is the agent of; "" for everybody else."""
        is_node = NODES in self.groups and self.name.startswith(NODE_PREFIX)
        return self.name.removeprefix(NODE_PREFIX) if is_node else ""


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


class Attributes(msgspec.Struct, frozen=True):
    """One request as authorization sees it."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection; in lower case, the method for other paths
    path: str = ""
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""  # plural
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    field_selector: str = ""
