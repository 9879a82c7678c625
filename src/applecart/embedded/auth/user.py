"""Who sends a request."""

import msgspec

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

    @property
    def node(self) -> str:
        """The Node this user is the agent of; "" for everybody else."""
        is_node = NODES in self.groups and self.name.startswith(NODE_PREFIX)
        return self.name.removeprefix(NODE_PREFIX) if is_node else ""


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
