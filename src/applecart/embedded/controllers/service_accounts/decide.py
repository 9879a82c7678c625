"""What a token Secret lacks, by its ServiceAccount. Reads no API and signs nothing.

A Secret belongs to the account that it names, and once it carries that account's uid to no other: after the account was made
again under the same name, the old one's Secret goes. What is filled in is never overwritten, except a CA that is no longer the
cluster's.
"""

import base64

import msgspec

from applecart.api.core import SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount

ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKEN, CA, NAMESPACE = "token", "ca.crt", "namespace"


class Lacks(msgspec.Struct, frozen=True):
    """What is to be written into a Secret."""

    token: bool = False
    ca: bool = False
    namespace: bool = False

    @property
    def is_nothing(self) -> bool:
        return not (self.token or self.ca or self.namespace)


def account_named_by(secret: Secret) -> str:
    """The ServiceAccount of a token Secret; empty for every other Secret."""
    return secret.annotations.get(ACCOUNT_NAME, "") if secret.type == SERVICE_ACCOUNT_TOKEN else ""


def is_of(secret: Secret, account: ServiceAccount | None) -> bool:
    """Whether this is the account that the Secret was made for."""
    if account is None:
        return False
    uid = secret.annotations.get(ACCOUNT_UID, "")
    return account.namespace == secret.namespace and account.name == account_named_by(secret) and uid in ("", account.uid)


def lacks(secret: Secret, ca_pem: bytes) -> Lacks:
    return Lacks(
        token=not secret.data.get(TOKEN),
        ca=bool(ca_pem) and secret.data.get(CA) != encoded(ca_pem),
        namespace=not secret.data.get(NAMESPACE),
    )


def encoded(value: bytes) -> str:
    """As the data of a Secret holds it."""
    return base64.b64encode(value).decode()
